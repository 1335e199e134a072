"""The callables that output filters name: those of the settings, and dotted paths that code gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.module_loading import import_string

from mcp_client_app.conf import app_settings, is_dotted_path
from mcp_client_app.exceptions import ConfigurationError

__all__ = ["code_filter", "stored_filter"]

SETTING = "MCP_CLIENT_OUTPUT_FILTERS"


def stored_filter(name: str) -> Callable[..., Any]:
    """Return the callable of a name that a stored agent holds: only the settings may name code.

    Raises:
        ConfigurationError: No key of the setting, or what it names cannot be imported or called.
    """
    path = app_settings.OUTPUT_FILTERS.get(name)
    if path is None:
        raise ConfigurationError(f"{name[:100]!r} is no key of {SETTING}", field="output_filters")
    return _imported(path, SETTING)


def code_filter(name: str) -> Callable[..., Any]:
    """Return the callable of a name that code gave: a key of the setting, or else a dotted path.

    Raises:
        ConfigurationError: It is neither, or it cannot be imported or called.
    """
    if name in app_settings.OUTPUT_FILTERS or not is_dotted_path(name):
        return stored_filter(name)
    return _imported(name, "output_filters")


def _imported(path: str, field: str) -> Callable[..., Any]:
    try:
        found: Any = import_string(path.replace(":", "."))
    except ImportError as error:
        raise ConfigurationError(f"{path!r} cannot be imported: {error}", field=field) from error
    if not callable(found):
        raise ConfigurationError(f"{path!r} cannot be called", field=field)
    return found  # type: ignore[no-any-return]
