"""Whether the installed SDK still has the dispatcher port that the link ``own`` is built on.

The SDK calls that port provisional. This module is imported where the SDK must not be loaded yet:
it reads the version from the package's metadata, and loads the SDK only for the comparison.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

__all__ = ["KNOWN_VERSIONS", "dispatcher_signature_problem", "is_known_version", "signature_problem"]

KNOWN_VERSIONS: Final = ("2.3",)
"""Minor releases of the SDK whose dispatcher port has been compared: their check loads nothing."""

_PORT: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("on_request", "on_notify", "on_notify_intercept", "*task_status"),
    "send_raw_request": ("method", "params", "opts"),
    "notify": ("method", "params", "opts"),
}
"""The methods that the SDK's session calls, with the parameters that it may pass; ``*`` marks keywords."""


def is_known_version() -> bool:
    """Say, without loading the SDK, whether the installed one is of a known minor release."""
    try:
        installed = importlib.metadata.version("mcp")
    except importlib.metadata.PackageNotFoundError:
        return False
    return any(installed == known or installed.startswith(f"{known}.") for known in KNOWN_VERSIONS)


def dispatcher_signature_problem() -> str | None:
    """Say how the installed SDK's dispatcher port differs from the known one; None if it does not.

    Loads the SDK, which takes half a second the first time.
    """
    try:
        dispatcher = importlib.import_module("mcp.shared.dispatcher").Dispatcher
    except (ImportError, AttributeError):
        return "the SDK has no mcp.shared.dispatcher.Dispatcher"
    return signature_problem(dispatcher)


@lru_cache(maxsize=4)  # asked for each connection, and a quarter of what opening one costs
def signature_problem(dispatcher: type) -> str | None:
    """Say how a dispatcher class differs from the port that we implement; None if it does not."""
    for name, known in _PORT.items():
        method = getattr(dispatcher, name, None)
        if method is None:
            return f"Dispatcher has no method {name!r}"
        found = tuple(
            f"*{parameter.name}" if parameter.kind is inspect.Parameter.KEYWORD_ONLY else parameter.name
            for parameter in list(inspect.signature(method).parameters.values())[1:]
        )
        if found != known:
            return f"Dispatcher.{name} takes ({', '.join(found)}) instead of ({', '.join(known)})"
    return None
