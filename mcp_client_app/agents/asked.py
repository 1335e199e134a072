"""What a model asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Asked"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One call, as the model wants it made."""

    call_id: str
    name: str
    arguments: Any
    """An object, or its JSON text, as the model gave it."""
