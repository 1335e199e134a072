"""The settings of the app: flat ``MCP_CLIENT_*`` names, typed, read live.

Read them through :data:`app_settings`, never through ``django.conf.settings``. Nothing is
cached, so that ``override_settings`` works; a value of the wrong type raises
``ImproperlyConfigured`` where it is read and is reported by a system check. The core
never sees this module: ``runtime`` hands it frozen values.
"""

# ruff: noqa: RUF012  (defaults are never handed out themselves: reading copies them)

from __future__ import annotations

import ipaddress
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from mcp_client_app.datatypes import InputKind

__all__ = ["PREFIX", "AppSettings", "app_settings", "is_dotted_path", "setting_names"]

PREFIX: Final = "MCP_CLIENT_"
DEFAULT_CONFIG_FILE: Final = "mcp_servers.json"

_DOTTED_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*[.:][^\W\d]\w*\Z")
_UNSET: Final = object()


def is_dotted_path(text: str) -> bool:
    """Say whether ``text`` has the form ``package.module.name`` or ``package.module:name``."""
    return _DOTTED_PATH.match(text) is not None


@dataclass(frozen=True, slots=True)
class Minimum:
    """The smallest value that a number may have."""

    value: int


Seconds = Annotated[float, Minimum(0)]
Count = Annotated[int, Minimum(0)]
Positive = Annotated[int, Minimum(1)]


class AppSettings:
    """One attribute for each setting; Django's setting of the same name after ``MCP_CLIENT_`` wins.

    Raises:
        ImproperlyConfigured: on reading a setting whose value has the wrong type or range.
    """

    SERVERS: dict[str, Any] = {}
    """Servers by name, in any form of an ``mcp.json``; read-only for people, first in precedence."""
    CONFIG_FILE: str | Path | None = None
    """An ``mcp.json``, relative to ``BASE_DIR``. Unset: ``mcp_servers.json`` if present; None: no file."""
    IN_PROCESS_SERVERS: dict[str, str] = {}
    """Servers in this process: key to dotted path of an SDK server or of a callable that makes one."""
    ALLOW_STDIO: bool = True
    """Whether servers may be started as local processes."""

    REQUEST_TIMEOUT: Seconds = 25.0
    """Seconds after which a REST or admin request gets 504 (the call's outcome is then unknown)."""
    CONNECT_TIMEOUT: Seconds = 30.0
    """Seconds for starting, connecting and the handshake; 0 = no limit."""
    LIST_TIMEOUT: Seconds = 10.0
    """Seconds for listing tools, resources or prompts; 0 = no limit."""
    CALL_TIMEOUT: Seconds = 60.0
    """Seconds for a call, with connecting and queueing; 0 = no limit."""
    SHUTDOWN_TIMEOUT: Seconds = 5.0
    """Seconds for closing a connection in good order; 0 = no limit."""
    IDLE_TIMEOUT: Seconds = 900.0
    """Seconds after which an unused stdio server is stopped until its next use; 0 = never."""
    REVISION_INTERVAL: Seconds = 2.0
    """Seconds within which a change made by another process is noticed; 0 = look before every call."""

    MAX_CONCURRENCY: Count = 0
    """Calls in flight at once per server; 0 = no limit."""
    MAX_RESULT_SIZE: Count = 10_000_000
    """Bytes of one result; longer text is cut and marked; 0 = no limit."""
    MAX_FRAME_SIZE: Positive = 64_000_000
    """Bytes of one protocol message; a longer one is skipped and its request fails."""
    MAX_STARTS: Positive = 8
    """Processes or TLS connections being started at once."""
    QUEUE_SIZE: Positive = 1000
    """Events that wait for callbacks, per server; a full queue drops the oldest and counts it."""
    CALLBACK_THREADS: Positive = 4
    """Threads that run callbacks and signal receivers."""
    STDERR_LINES: Count = 200
    """Lines of standard error kept per server."""
    MODEL_ERROR_LENGTH: Positive = 200
    """Characters of an error line as models see it."""

    ENV_ALLOW: list[str] = []
    """Globs of environment variables that any stored server may reference."""
    ENV_DENY: list[str] = []
    """Globs of environment variables that no server may reference, whatever its source; always wins."""
    BLOCKED_NETWORKS: list[str] = [
        "0.0.0.0/8",
        "100.100.100.200/32",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "255.255.255.255/32",
        "::/128",
        "fd00:ec2::254/128",
        "fe80::/10",
        "ff00::/8",
    ]
    """CIDR networks that no server may be in; default: unspecified, link-local, metadata, multicast."""
    ALLOWED_HOSTS: list[str] | None = None
    """Globs of host names that servers may have; None = all. A match is not held to the blocked networks."""
    TRUST_ENV: bool = False
    """Honour ``HTTP_PROXY`` and the like."""

    CLIENT_INFO: dict[str, str] | None = None
    """``{"name": ..., "version": ...}`` as told to servers; None = this app's own."""
    LINK: str = "own"
    """What connections talk through: ``own``, ``stock``, or the dotted path of a link class."""
    INPUT_HANDLERS: dict[str, str] = {}
    """What answers servers: ``elicitation``, ``sampling`` or ``roots`` to the dotted path of a callable."""
    UVLOOP: bool = False
    """Run the connections on uvloop."""
    REAPER: bool = True
    """Keep a small process that ends stdio servers when this process is killed."""
    DEBUG: bool = False
    """Log protocol frames at DEBUG, secrets redacted."""

    RECORD_STATES: bool = True
    """Write rows that say how this process's connections stand, for the admin and other processes."""
    AUDIT: bool = True
    """Write a row for each call."""
    AUDIT_BATCH: bool = False
    """Write these rows in batches, on a thread of ours, instead of each before its call returns."""
    AUDIT_QUEUE_SIZE: Positive = 10_000
    """Rows that may wait for that thread; beyond, calls write their own."""
    AUDIT_PAYLOADS: bool = False
    """Keep arguments and results in the audit row, redacted and cut."""
    AUDIT_PAYLOAD_SIZE: Count = 10_000
    """Characters kept of arguments and of a result."""

    MODELS: dict[str, str] = {}
    """Models of the project's own: ``provider:model`` to the dotted path of what makes one of pydantic-ai."""
    AGENT_TIME_LIMIT: Seconds = 300.0
    """Seconds of an agent's run, without the time that it waits for people; 0 = no limit."""
    APPROVAL_LIFETIME: Seconds = 86_400.0
    """Seconds for which a call waits for its approval, and an approval may then be used; 0 = ten years."""
    OUTPUT_FILTERS: dict[str, str] = {}
    """Filters of tools' results that stored agents may name: key to dotted path of a callable."""
    RESULT_STORAGE: str = ""
    """Key of ``STORAGES`` where agents' tools have binary content kept; empty = it is not kept."""
    RUN_BACKEND: str = "thread"
    """Where background runs execute: ``thread`` (in this process) or ``celery``."""
    RUN_WORKERS: Positive = 8
    """Background runs that one process executes at once; further ones get ``busy``."""
    RUN_LEASE: Positive = 30
    """Seconds after which a run whose worker gives no sign of life counts as abandoned."""
    RUN_QUEUE: str = "mcp_client"
    """Celery's queue for runs."""

    API_AUTHENTICATION: list[str] | None = None
    """Dotted paths of the REST API's authentication classes; None = REST framework's defaults."""
    API_PERMISSIONS: list[str] | None = None
    """Dotted paths of its permission classes; None = signed in, and the permission of each endpoint."""
    API_THROTTLES: list[str] | None = None
    """Dotted paths of its throttle classes; None = REST framework's defaults."""
    API_PUBLIC_HEALTH: bool = False
    """Whether ``health/`` answers to everybody; it gives numbers only."""
    API_KEY_LIFETIME: Seconds = 86_400.0
    """Seconds for which the answer to a call with an idempotency key is kept and repeated."""

    def __getattribute__(self, name: str) -> Any:
        default = super().__getattribute__(name)
        if not name.isupper():
            return default
        value = getattr(settings, PREFIX + name, _UNSET)
        if value is _UNSET:
            return default.copy() if isinstance(default, dict | list) else default
        return _checked(name, value)

    def config_file(self) -> Path | None:
        """Return the configuration file to read, or None; only an explicit one may be missing."""
        base = Path(getattr(settings, "BASE_DIR", None) or Path.cwd())
        if not hasattr(settings, f"{PREFIX}CONFIG_FILE"):
            default = base / DEFAULT_CONFIG_FILE
            return default if default.is_file() else None
        configured = self.CONFIG_FILE
        return base / Path(configured).expanduser() if configured else None


app_settings = AppSettings()


@cache
def _hints() -> Mapping[str, Any]:
    return get_type_hints(AppSettings, include_extras=True)


def setting_names() -> list[str]:
    """Return the names of all settings, without prefix, in the order of the table."""
    return list(_hints())


def _checked(name: str, value: Any) -> Any:
    hint = _hints()[name]
    try:
        value = _conform(value, hint)
        if rule := _RULES.get(name):
            rule(value)
    except _WrongValueError as error:
        raise ImproperlyConfigured(f"{PREFIX}{name} {error}") from None
    return value


class _WrongValueError(Exception):
    """What is wrong, as the rest of a sentence that begins with the setting's name; never the value."""


def _conform(value: Any, hint: Any) -> Any:
    """Return ``value`` in the form that ``hint`` promises, or raise."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _at_least(value, *get_args(hint))
    if origin in (Union, types.UnionType):
        return _one_of(value, hint)
    if origin is list and isinstance(value, list | tuple | set | frozenset):
        return [_conform(element, get_args(hint)[0]) for element in value]
    if origin is dict and isinstance(value, Mapping):
        key_hint, value_hint = get_args(hint)
        return {_conform(key, key_hint): _conform(element, value_hint) for key, element in value.items()}
    if hint is Any:
        return value
    # True and False are ints to Python, not to a reader of settings.
    if hint is float and type(value) is int:
        return float(value)
    if origin or not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise _mismatch(value, hint)
    return value


def _at_least(value: Any, hint: Any, minimum: Minimum) -> Any:
    number = _conform(value, hint)
    # Written so that NaN fails, too.
    if not number >= minimum.value:
        raise _WrongValueError(f"must be {minimum.value} or more.")
    return number


def _one_of(value: Any, hint: Any) -> Any:
    for choice in get_args(hint):
        try:
            return _conform(value, choice)
        except _WrongValueError:
            continue
    raise _mismatch(value, hint)


_WORDS: Final[Mapping[Any, str]] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a string",
    Path: "a path",
    types.NoneType: "None",
}


def _describe(hint: Any) -> str:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(choice) for choice in get_args(hint))
    if origin is list:
        return "a list of strings"
    if origin is dict:
        return "a dictionary of strings" if get_args(hint)[1] is str else "a dictionary"
    return _WORDS[hint]


def _mismatch(value: Any, hint: Any) -> _WrongValueError:
    return _WrongValueError(f"must be {_describe(hint)}, not {type(value).__name__}.")


# Rules that a type does not tell -----------------------------------------------------


def _check_networks(networks: list[str]) -> None:
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError:
            raise _WrongValueError(
                f"holds {network!r}, which is no network; write it like '10.0.0.0/8' or 'fe80::/10'."
            ) from None


def _check_in_process(paths: dict[str, str]) -> None:
    for key, path in paths.items():
        if not is_dotted_path(path):
            raise _WrongValueError(
                f"names {path!r} for {key!r}; write a dotted path such as 'package.module.server'."
            )


def _check_input_handlers(paths: dict[str, str]) -> None:
    for kind, path in paths.items():
        if kind not in list(InputKind):
            kinds = ", ".join(repr(known.value) for known in InputKind)
            raise _WrongValueError(f"names {kind!r}, which no server asks for; there are {kinds}.")
        if not is_dotted_path(path):
            raise _WrongValueError(
                f"names {path!r} for {kind!r}; write a dotted path such as 'package.module.function'."
            )


def _check_output_filters(paths: dict[str, str]) -> None:
    for key, path in paths.items():
        if key == "drop_binary":
            raise _WrongValueError(f"has the key {key!r}, which is the name of a built-in filter.")
        if not is_dotted_path(path):
            raise _WrongValueError(
                f"names {path!r} for {key!r}; write a dotted path such as 'package.module.function'."
            )


def _check_models(paths: dict[str, str]) -> None:
    for name, path in paths.items():
        if not name.partition(":")[2]:
            raise _WrongValueError(f"holds {name!r}; write provider and model, such as 'scripted:demo'.")
        if not is_dotted_path(path):
            raise _WrongValueError(
                f"names {path!r} for {name!r}; write a dotted path such as 'package.module.function'."
            )


def _check_link(link: str) -> None:
    if link not in ("own", "stock") and not is_dotted_path(link):
        raise _WrongValueError("must be 'own', 'stock' or the dotted path of a link class.")


def _check_backend(backend: str) -> None:
    if backend not in ("thread", "celery") and not is_dotted_path(backend):
        raise _WrongValueError(
            "must be 'thread', 'celery' or the dotted path of a callable that takes a run's id."
        )


def _check_storage(alias: str) -> None:
    if alias and alias not in settings.STORAGES:
        raise _WrongValueError(f"names {alias!r}, which is no key of STORAGES.")


def _check_classes(paths: list[str] | None) -> None:
    for path in paths or ():
        if not is_dotted_path(path):
            raise _WrongValueError(f"holds {path!r}; write the dotted path of a class.")


def _check_client_info(info: dict[str, str] | None) -> None:
    if info is not None and (not info.get("name") or not set(info) <= {"name", "version"}):
        raise _WrongValueError("must hold 'name', may hold 'version', and nothing else.")


def _check_server_names(servers: dict[str, Any]) -> None:
    # The entries themselves are read by ``configuration``: one bad entry must not hide the others.
    if any(not name for name in servers):
        raise _WrongValueError("holds a server without a name.")


_RULES: Final[Mapping[str, Any]] = {
    "API_AUTHENTICATION": _check_classes,
    "API_PERMISSIONS": _check_classes,
    "API_THROTTLES": _check_classes,
    "BLOCKED_NETWORKS": _check_networks,
    "CLIENT_INFO": _check_client_info,
    "INPUT_HANDLERS": _check_input_handlers,
    "IN_PROCESS_SERVERS": _check_in_process,
    "LINK": _check_link,
    "MODELS": _check_models,
    "OUTPUT_FILTERS": _check_output_filters,
    "RESULT_STORAGE": _check_storage,
    "RUN_BACKEND": _check_backend,
    "SERVERS": _check_server_names,
}
