"""Validators of the stored fields.

Migrations refer to these functions by path: never move or rename one. They judge one
value at a time and know neither settings nor rows; what depends on other fields is in
``models``. No message repeats a value, which may be a secret; names are shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from mcp_client_app.naming import MAX_SERVER_NAME, is_reserved_header, is_server_name

__all__ = [
    "validate_agent_name",
    "validate_args",
    "validate_command",
    "validate_env",
    "validate_headers",
    "validate_model_name",
    "validate_plain_url",
    "validate_seconds",
    "validate_server_name",
    "validate_text_map",
    "validate_tool_patterns",
    "validate_url",
    "validate_variable_name",
    "validate_variable_names",
]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_NOT_IN_HEADERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_AGENT = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_MODEL = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:\S+\Z")
_NOT_IN_URLS = re.compile(r"[\s\x00-\x1f\x7f]")


def validate_server_name(value: str) -> None:
    """Accept what ``naming.is_server_name`` accepts, and say what that is otherwise."""
    if not is_server_name(value):
        raise ValidationError(
            _(
                "A server name is a letter followed by letters, digits, '-' and '_'; "
                "it has no '__' and no final '_', and at most %(limit)d characters."
            ),
            code="server_name",
            params={"limit": MAX_SERVER_NAME},
        )


def validate_agent_name(value: str) -> None:
    """Accept a letter followed by letters, digits, ``-`` and ``_``."""
    if not _AGENT.match(value):
        raise ValidationError(
            _("An agent's name is a letter followed by letters, digits, '-' and '_'."), code="agent_name"
        )


def validate_model_name(value: str) -> None:
    """Accept ``provider:model``; whether they exist shows when they are used."""
    if not _MODEL.match(value):
        raise ValidationError(
            _("Give provider and model with a colon between them, as in 'openai:gpt-5'."), code="model_name"
        )


def validate_tool_patterns(value: Any) -> None:
    """Accept None or a list of non-empty strings (globs)."""
    if value is None:
        return
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValidationError(_("Give a list of tool names or patterns."), code="tool_patterns")


def validate_args(value: Any) -> None:
    """Accept a list of strings without NUL."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValidationError(_("Arguments are a list of strings."), code="args")
    if any("\0" in item for item in value):
        raise ValidationError(_("An argument cannot contain a NUL character."), code="nul")


def validate_command(value: str) -> None:
    """Accept one program name or path: no NUL, no line break, no white space at the edges."""
    if re.search(r"[\0\r\n]", value) or value != value.strip():
        raise ValidationError(
            _("A command is one program, without line breaks or outer white space; arguments go to 'args'."),
            code="command",
        )


def validate_env(value: Any) -> None:
    """Accept a mapping of variable names to strings."""
    for name, text in _items_of(value, _("The environment maps names to strings.")):
        if not name or name != name.strip() or re.search(r"[=\0]", name):
            raise ValidationError(
                _("%(name)r cannot name an environment variable."), code="env_name", params={"name": name}
            )
        if "\0" in text:
            raise ValidationError(
                _("The value of %(name)r cannot contain a NUL character."), code="nul", params={"name": name}
            )


def validate_headers(value: Any) -> None:
    """Accept a mapping of RFC 9110 field names, each once, to one-line latin-1 strings."""
    seen: set[str] = set()
    for name, text in _items_of(value, _("Headers map names to strings.")):
        if not _TOKEN.match(name):
            raise ValidationError(
                _("%(name)r cannot name a header."), code="header_name", params={"name": name}
            )
        if is_reserved_header(name):
            raise ValidationError(
                _("The header %(name)r is set by the client itself; remove it."),
                code="header_reserved",
                params={"name": name},
            )
        if name.lower() in seen:
            raise ValidationError(
                _("The header %(name)r is given twice; case makes no difference."),
                code="header_twice",
                params={"name": name},
            )
        seen.add(name.lower())
        if _NOT_IN_HEADERS.search(text) or not _is_latin1(text):
            raise ValidationError(
                _("The value of the header %(name)r contains a character that HTTP does not allow."),
                code="header_value",
                params={"name": name},
            )
        if text != text.strip(" \t"):
            raise ValidationError(
                _("The value of the header %(name)r begins or ends with white space."),
                code="header_space",
                params={"name": name},
            )


def validate_text_map(value: Any) -> None:
    """Accept a mapping of strings to strings."""
    _items_of(value, _("This maps names to strings."))


def validate_url(value: str) -> None:
    """Accept an http or https URL with a host and without user information; ``${NAME}`` may stand in it."""
    text = _without_references(value)
    try:
        parts = urlsplit(text)
        host, port_is_valid = parts.hostname, parts.port != 0
    except ValueError:
        host, port_is_valid = None, False
    if _NOT_IN_URLS.search(text) or not port_is_valid or not host or parts.scheme not in ("http", "https"):
        raise ValidationError(
            _("Give a complete URL with a host that begins with 'http://' or 'https://'."), code="url"
        )
    if "@" in parts.netloc:
        raise ValidationError(
            _("A URL with a user name or password is not accepted; use the header 'Authorization'."),
            code="url_user",
        )


def validate_plain_url(value: str) -> None:
    """Accept a URL as ``validate_url`` does, but none with references."""
    if "$" in value:
        raise ValidationError(_("References to variables mean nothing here; write the URL."), code="url")
    validate_url(value)


def validate_seconds(value: float) -> None:
    """Accept a finite number of seconds; 0 stands for no limit."""
    if not math.isfinite(value) or value < 0:
        raise ValidationError(_("Give a number of seconds, 0 or more."), code="seconds")


def validate_variable_name(value: str) -> None:
    """Accept the name of an environment variable."""
    if not _VARIABLE.match(value):
        raise ValidationError(
            _("Give the name of an environment variable, without '$'; never the key itself."),
            code="variable_name",
        )


def validate_variable_names(value: Any) -> None:
    """Accept a list of names of environment variables."""
    if not isinstance(value, list) or not all(
        isinstance(item, str) and _VARIABLE.match(item) for item in value
    ):
        raise ValidationError(_("Give a list of names of environment variables."), code="variable_names")


def _items_of(value: Any, message: Any) -> Iterable[tuple[str, str]]:
    if not isinstance(value, dict) or not all(
        isinstance(name, str) and isinstance(text, str) for name, text in value.items()
    ):
        raise ValidationError(message, code="mapping")
    return value.items()


def _is_latin1(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


def _without_references(url: str) -> str:
    """Put something harmless in place of each reference: its value is judged when it is known."""
    # A leading reference may stand for the scheme alone or for scheme, host and more.
    url = re.sub(r"\A\$\{[^{}]*\}(?=://)", "http", url)
    url = re.sub(r"\A\$\{(?:[^{}]|\$\{[^{}]*\})*\}", "http://1", url)
    previous = ""
    while previous != url:
        previous, url = url, _REFERENCE.sub("1", url)
    return url
