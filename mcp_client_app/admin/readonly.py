"""What makes an admin read-only: for rows that the app itself writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.http import HttpRequest

__all__ = ["ReadOnly"]


class ReadOnly:
    """Mixed into a ``ModelAdmin`` or an inline: rows are looked at, filtered and searched, never changed."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody adds rows by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes them."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes them."""
        return False
