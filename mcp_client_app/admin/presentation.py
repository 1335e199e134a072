"""Values as people like to read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from mcp_client_app import json_codec
from mcp_client_app.configuration.secrets import without_secrets
from mcp_client_app.models import ToolCall

__all__ = ["json_block", "lines", "outcome", "pretty", "secret_list"]


def pretty(value: Any) -> str:
    """Return any JSON value with indentation, fit for a page."""
    return json.dumps(json_codec.scrub(value), indent=2, ensure_ascii=False, default=str)


def json_block(value: Any) -> SafeString:
    """Return any JSON value as HTML."""
    return format_html('<pre class="mcp-json">{}</pre>', pretty(value))


def lines(items: list[str] | None, *, empty: str = "-") -> str | SafeString:
    """Return a list of strings as HTML, one a line."""
    return format_html('<pre class="mcp-json">{}</pre>', "\n".join(items)) if items else empty


def secret_list(values: Mapping[str, str]) -> str | SafeString:
    """Return names as HTML, with values that consist of references; others are only said to be set."""
    if not values:
        return "-"
    shown = without_secrets(values)
    return lines([f"{name}: {shown[name] or _('set')}" for name in values])


def outcome(call: ToolCall) -> SafeString:
    """Return how a call has ended as HTML."""
    tone = "bad" if call.is_error else "good"
    return format_html('<span class="mcp-state mcp-{}">{}</span>', tone, call.code)
