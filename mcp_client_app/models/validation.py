"""What makes a stored server sound, beyond the single field: the rules between fields and with the settings.

``ServerConfig.clean`` calls this; forms, serializers, imports and checks call ``full_clean``.
Nothing here asks who saves: that is for the services.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from mcp_client_app.conf import app_settings, is_dotted_path
from mcp_client_app.datatypes import StrictOptions, Transport
from mcp_client_app.models.resolution import refused_references, unfilled_places
from mcp_client_app.models.server_fields import ServerFields

__all__ = ["STRICT_NAMES", "server_errors"]

STRICT_NAMES: Final = tuple(option.name for option in fields(StrictOptions))

_PROCESS_FIELDS: Final = ("command", "args", "env", "cwd", "inherited_names")
_LISTS: Final = ("args", "inherited_names", "strict", "blocked_tools")
_OBJECTS: Final = ("env", "headers", "extra")
_HTTP_FIELDS: Final = ("url", "headers")
_OWN_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    Transport.STDIO: _PROCESS_FIELDS,
    Transport.STREAMABLE_HTTP: _HTTP_FIELDS,
    Transport.SSE: _HTTP_FIELDS,
    Transport.IN_PROCESS: ("in_process",),
}


class _Errors(dict[str, list[ValidationError]]):
    def add(self, field: str, message: Any, code: str, **params: Any) -> None:
        self.setdefault(field, []).append(ValidationError(message, code=code, params=params))


def server_errors(row: ServerFields) -> dict[str, list[ValidationError]]:
    """Return what is wrong, by field; empty if nothing is. The fields' own validators have run."""
    errors = _Errors()
    _check_kinds(row, errors)
    if row.transport in _OWN_FIELDS:
        _check_required(row, errors)
        _check_irrelevant(row, errors)
    _check_in_process(row, errors)
    _check_options(row, errors)
    _check_references(row, errors)
    return errors


def _check_kinds(row: ServerFields, errors: _Errors) -> None:
    # Django runs no validators on an empty value, and to it an empty list is as good as an empty object.
    for field in _LISTS:
        if not isinstance(getattr(row, field), list):
            errors.add(field, _("Give a list; it may be empty."), "list")
    if row.allowed_tools is not None and not isinstance(row.allowed_tools, list):
        errors.add("allowed_tools", _("Give a list or null."), "list")
    for field in _OBJECTS:
        if not isinstance(getattr(row, field), dict):
            errors.add(field, _("Give an object; it may be empty."), "object")


def _check_required(row: ServerFields, errors: _Errors) -> None:
    required = {Transport.STDIO: "command", Transport.IN_PROCESS: "in_process"}.get(
        Transport(row.transport), "url"
    )
    if not getattr(row, required):
        errors.add(required, _("This transport needs a value here."), "required")
    if row.transport == Transport.STDIO and not app_settings.ALLOW_STDIO:
        errors.add(
            "transport", _("Local processes are switched off (MCP_CLIENT_ALLOW_STDIO)."), "stdio_not_allowed"
        )


def _check_irrelevant(row: ServerFields, errors: _Errors) -> None:
    for field in (*_PROCESS_FIELDS, *_HTTP_FIELDS, "in_process"):
        if field not in _OWN_FIELDS[row.transport] and getattr(row, field):
            errors.add(field, _("This transport has no use for a value here; empty it."), "irrelevant")


def _check_in_process(row: ServerFields, errors: _Errors) -> None:
    if row.transport == Transport.IN_PROCESS and row.in_process:
        known = app_settings.IN_PROCESS_SERVERS
        if row.in_process not in known:
            errors.add(
                "in_process",
                _("%(key)r is no key of MCP_CLIENT_IN_PROCESS_SERVERS."),
                "in_process_key",
                key=row.in_process,
            )


def _check_options(row: ServerFields, errors: _Errors) -> None:
    if isinstance(row.strict, list) and not set(map(str, row.strict)) <= set(STRICT_NAMES):
        errors.add("strict", _("Choose among: %(names)s."), "strict", names=", ".join(STRICT_NAMES))
    if row.link in ("", "own", "stock"):
        return
    if not row.is_read_only:
        errors.add("link", _("Choose 'own' or 'stock'; only the settings may name a link class."), "link")
    elif not is_dotted_path(row.link):
        errors.add("link", _("Give 'own', 'stock' or the dotted path of a link class."), "link")


def _check_references(row: ServerFields, errors: _Errors) -> None:
    for field, names in refused_references(row).items():
        errors.add(
            field,
            _(
                "Referring to environment variables needs a permission, or their names in "
                "MCP_CLIENT_ENV_ALLOW (%(count)d not readable here). To mean plain text, write '$$'."
            ),
            "reference",
            count=len(names),
        )
    if row.enabled:
        for place in unfilled_places(row):
            errors.add(
                place.partition(".")[0],
                _("The value of %(place)r has to be filled in before the server can be enabled."),
                "placeholder",
                place=place,
            )
