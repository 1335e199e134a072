"""From a stored server to what the core is given: references filled in, limits completed.

The only way into the core. It trusts no row to have been validated: a row may have been
written by code, by a fixture, or under other settings.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.core.exceptions import ValidationError

from mcp_client_app import validators
from mcp_client_app.conf import app_settings
from mcp_client_app.configuration.expansion import expand, placeholders, references
from mcp_client_app.datatypes import ProtocolMode, ServerSpec, StrictOptions, ToolFilter, Transport
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models.server_fields import ServerFields

__all__ = [
    "LIMITS",
    "ResolvedServer",
    "has_references",
    "refused_references",
    "resolve",
    "unfilled_places",
]

T = TypeVar("T")

LIMITS: Final = (
    "connect_timeout",
    "list_timeout",
    "call_timeout",
    "shutdown_timeout",
    "idle_timeout",
    "max_concurrency",
    "max_result_size",
)
"""Fields that are null for the setting of the same name."""

_BY_TRANSPORT: Final[Mapping[str, tuple[str, ...]]] = {
    Transport.STDIO: ("command", "args", "env", "cwd"),
    Transport.STREAMABLE_HTTP: ("url", "headers"),
    Transport.SSE: ("url", "headers"),
    Transport.IN_PROCESS: (),
}
"""The fields in which references count."""

_BARE_WORDS: Final = frozenset({"env", "headers"})


@dataclass(frozen=True, slots=True)
class ResolvedServer:
    """A server that is ready for the core, and what should be said about it."""

    spec: ServerSpec
    warnings: tuple[str, ...] = ()
    """For the status: unset variables, by name. No secrets."""


def resolve(row: ServerFields, variables: Mapping[str, str] | None = None) -> ResolvedServer:
    """Make the frozen value that the core works with.

    Args:
        row: the server; it need not be saved.
        variables: the environment; this process's if None.

    Raises:
        ConfigurationError: the server cannot work; ``server`` and mostly ``field`` are set.
    """
    try:
        return _Resolver(row, os.environ if variables is None else variables).resolve()
    except ConfigurationError as error:
        error.server = row.name
        raise


def refused_references(row: ServerFields) -> dict[str, list[str]]:
    """Return the variables that the row refers to and may not read, by field name."""
    may_read = _reading_right(row)
    refused: dict[str, list[str]] = {}
    for name, _, text in _texts(row):
        for variable in references(text, bare_words=name in _BARE_WORDS):
            if not may_read(variable):
                refused.setdefault(name, []).append(variable)
    if row.transport == Transport.STDIO:
        # Passing a variable on is reading it.
        for variable in _list(row.inherited_names):
            if not may_read(variable):
                refused.setdefault("inherited_names", []).append(variable)
    return {name: list(dict.fromkeys(found)) for name, found in refused.items()}


def unfilled_places(row: ServerFields) -> list[str]:
    """List where somebody has to fill in a value by hand, such as ``env.TOKEN``."""
    return [place for _, place, text in _texts(row) if placeholders(text)]


def has_references(row: ServerFields) -> bool:
    """Say whether the row refers to any variable."""
    return bool(row.inherited_names) or any(
        references(text, bare_words=name in _BARE_WORDS) for name, _, text in _texts(row)
    )


def _reading_right(row: ServerFields) -> Callable[[str], bool]:
    """Return the predicate that says which variables the row may read.

    The deny list holds for every source, without regard to case. The settings and the file
    are the operator's own; a stored row reads what is allowed to all, or was granted more.
    """
    deny = [glob.casefold() for glob in app_settings.ENV_DENY]
    allow = app_settings.ENV_ALLOW
    is_trusted = row.is_read_only or row.may_reference_environment

    def may_read(name: str) -> bool:
        if any(fnmatch.fnmatchcase(name.casefold(), glob) for glob in deny):
            return False
        return is_trusted or any(fnmatch.fnmatchcase(name, glob) for glob in allow)

    return may_read


def _texts(row: ServerFields) -> list[tuple[str, str, str]]:
    """List the texts in which references count: field, place within it, text."""
    found: list[tuple[str, str, str]] = []
    for name in _BY_TRANSPORT.get(row.transport, ()):
        value = getattr(row, name)
        if isinstance(value, Mapping):
            found += [(name, f"{name}.{key}", text) for key, text in value.items() if isinstance(text, str)]
        elif isinstance(value, list):
            found += [
                (name, f"{name}.{index}", text) for index, text in enumerate(value) if isinstance(text, str)
            ]
        elif isinstance(value, str):
            found.append((name, name, value))
    return found


def _list(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


class _Resolver:
    def __init__(self, row: ServerFields, variables: Mapping[str, str]) -> None:
        self.row = row
        self.variables = variables
        self.may_read = _reading_right(row)
        self.warnings: list[str] = []

    def resolve(self) -> ResolvedServer:
        row = self.row
        transport = self._known("transport", Transport, row.transport)
        mode = self._known("mode", ProtocolMode, row.mode)
        strict = self._known("strict", StrictOptions.from_names, row.strict)
        self._validate("allowed_tools", validators.validate_tool_patterns, row.allowed_tools)
        self._validate("blocked_tools", validators.validate_tool_patterns, row.blocked_tools)
        details = {
            Transport.STDIO: self._process,
            Transport.STREAMABLE_HTTP: self._http,
            Transport.SSE: self._http,
            Transport.IN_PROCESS: self._in_process,
        }[transport]()
        spec = ServerSpec(
            name=row.name,
            transport=transport,
            revision=row.revision,
            mode=mode,
            auto_reconnect=row.auto_reconnect,
            trust_annotations=row.trust_annotations,
            strict=strict,
            filter=ToolFilter(
                None if row.allowed_tools is None else tuple(row.allowed_tools),
                tuple(row.blocked_tools or ()),
            ),
            link=self._link(),
            **self._limits(),
            **details,
        )
        return ResolvedServer(spec, tuple(self.warnings))

    def _limits(self) -> dict[str, Any]:
        values = {name: getattr(self.row, name) for name in LIMITS}
        return {
            name: getattr(app_settings, name.upper()) if value is None else value
            for name, value in values.items()
        }

    def _link(self) -> str:
        # A stored row names no code; only the operator does.
        if self.row.link not in ("", "own", "stock") and not self.row.is_read_only:
            raise ConfigurationError("Only the settings and the file may name a link class.", field="link")
        return self.row.link or app_settings.LINK

    def _process(self) -> dict[str, Any]:
        row = self.row
        if not app_settings.ALLOW_STDIO:
            raise ConfigurationError(
                "Local processes are switched off (MCP_CLIENT_ALLOW_STDIO).", field="transport"
            )
        self._validate("args", validators.validate_args, row.args)
        self._validate("env", validators.validate_env, row.env)
        self._validate("inherited_names", validators.validate_variable_names, row.inherited_names)
        command = self._expand("command", row.command)
        if not command:
            raise ConfigurationError("A stdio server needs a command.", field="command")
        refused = [name for name in row.inherited_names if not self.may_read(name)]
        if refused:
            raise ConfigurationError(
                f"The variable {refused[0]!r} may not be passed on (see MCP_CLIENT_ENV_ALLOW).",
                field="inherited_names",
                variable=refused[0],
            )
        return {
            "command": command,
            "args": tuple(self._expand(f"args.{index}", text) for index, text in enumerate(row.args)),
            "env": {
                name: self._expand(f"env.{name}", text, bare_words=True) for name, text in row.env.items()
            },
            "cwd": self._expand("cwd", row.cwd) or None,
            "inherit_environment": row.inherit_environment,
            "inherited_names": tuple(row.inherited_names),
        }

    def _http(self) -> dict[str, Any]:
        url = self._expand("url", self.row.url)
        self._validate("url", validators.validate_url, url)
        self._validate("headers", validators.validate_text_map, self.row.headers)
        # Secrets that come from files often end with a newline.
        headers = {
            name: self._expand(f"headers.{name}", text, bare_words=True).rstrip("\r\n")
            for name, text in self.row.headers.items()
        }
        self._validate("headers", validators.validate_headers, headers)
        return {"url": url, "headers": headers, "terminate_on_close": self.row.terminate_on_close}

    def _in_process(self) -> dict[str, Any]:
        path = app_settings.IN_PROCESS_SERVERS.get(self.row.in_process)
        if path is None:
            raise ConfigurationError(
                f"{self.row.in_process!r} is no key of MCP_CLIENT_IN_PROCESS_SERVERS.", field="in_process"
            )
        return {"in_process": path}

    def _expand(self, field: str, text: str, *, bare_words: bool = False) -> str:
        expanded = expand(text, self.variables, bare_words=bare_words, field=field, may_read=self.may_read)
        self.warnings += expanded.warnings
        return expanded.value

    def _known(self, field: str, kind: Callable[[Any], T], value: Any) -> T:
        try:
            return kind(value)
        except (TypeError, ValueError):
            raise ConfigurationError(f"{field!r} has an unknown value.", field=field) from None

    def _validate(self, field: str, validator: Callable[[Any], None], value: Any) -> None:
        try:
            validator(value)
        except ValidationError as error:
            raise ConfigurationError(" ".join(error.messages), field=field) from None
