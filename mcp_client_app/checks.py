"""System checks: what is wrong with the settings and the configuration file, before anything runs.

Ids (``mcp_client_app.``): E001 a setting's value, E002 the configuration file, E003 a server
of the settings, E004 a server of the file, W001 an unknown setting, W002 a server that was
read otherwise than it was written, W003 an SDK with another interface, W004 a backend of runs
that is not installed; with ``--deploy`` W010 to W014. No check connects, opens the database, or
imports what a setting names. No message holds a value that may be secret.
"""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004 (Django's name)
from django.core.exceptions import ImproperlyConfigured, ValidationError

from mcp_client_app.client.compat import dispatcher_signature_problem, is_known_version
from mcp_client_app.conf import PREFIX, app_settings, setting_names
from mcp_client_app.configuration.dialects import ImportedServer, parse, parse_text
from mcp_client_app.datatypes import Transport
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models import ServerConfig

__all__ = [
    "check_deployment",
    "check_known_sdk",
    "check_run_backend",
    "check_sdk",
    "check_servers",
    "check_setting_names",
    "check_settings",
]

_TAG: Final = "mcp_client_app"
_PRIVATE: Final = ("10.0.0.1", "127.0.0.1", "172.16.0.1", "192.168.0.1", "::1", "fc00::1")
"""One address of each private network."""


@register(_TAG)
def check_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E001: each setting has a value of its type."""
    return [Error(problem, id=f"{_TAG}.E001") for name in setting_names() if (problem := _problem_of(name))]


@register(_TAG)
def check_setting_names(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W001: there are no other settings with our prefix."""
    known = [PREFIX + name for name in setting_names()]
    messages: list[CheckMessage] = []
    for name in sorted(name for name in dir(settings) if name.startswith(PREFIX) and name not in known):
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "Remove it."
        messages.append(Warning(f"{name!r} is no setting of this app.", hint=hint, id=f"{_TAG}.W001"))
    return messages


@register(_TAG)
def check_servers(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E002 to E004, W002: the servers of the settings and of the file can be read and are sound."""
    messages: list[CheckMessage] = []
    for source, server in _servers(messages):
        origin, error_id = _ORIGINS[source]
        where = f"The server {server.label!r} of {origin}"
        messages += [Error(f"{where}: {text}", id=f"{_TAG}.{error_id}") for text in _problems(source, server)]
        messages += [Warning(f"{where}: {text}", id=f"{_TAG}.W002") for text in server.notices]
    return messages


@register(_TAG)
def check_sdk(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W003: an SDK that was not known when this was released still has the interface that we use."""
    return [] if is_known_version() else _sdk_messages()


@register(_TAG)
def check_run_backend(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W004: if runs are for Celery, Celery is there."""
    if _problem_of("RUN_BACKEND") or app_settings.RUN_BACKEND != "celery" or find_spec("celery"):
        return []
    return [
        Warning(
            f"{PREFIX}RUN_BACKEND is 'celery', which is not installed: no run can begin in the background.",
            hint="Install 'django-mcp-client-app[celery]', or unset the setting.",
            id=f"{_TAG}.W004",
        )
    ]


@register(_TAG, deploy=True)
def check_known_sdk(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W003 for a known release, too: it may have been altered. Loads the SDK."""
    return _sdk_messages() if is_known_version() else []


def _sdk_messages() -> list[CheckMessage]:
    problem = dispatcher_signature_problem()
    if problem is None:
        return []
    return [
        Warning(
            f"The installed MCP SDK has another dispatcher interface: {problem}.",
            hint="Connections use the link 'stock' until you install a version of 'mcp' that this app knows.",
            id=f"{_TAG}.W003",
        )
    ]


@register(_TAG, deploy=True)
def check_deployment(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W010 to W014: settings that deserve a second thought on a machine that others reach."""
    if not all(_problem_of(name) is None for name in ("ALLOW_STDIO", "BLOCKED_NETWORKS", "ALLOWED_HOSTS")):
        return []
    messages: list[CheckMessage] = []
    if app_settings.ALLOW_STDIO:
        messages.append(
            Warning(
                "Servers may be started as processes of this machine.",
                hint=f"Set {PREFIX}ALLOW_STDIO = False if none is, and give the permission "
                "'run_code_serverconfig' to nobody who should not run programs here.",
                id=f"{_TAG}.W010",
            )
        )
    for source, server in _servers([]):
        if _sends_headers_in_plain_text(server.fields):
            messages.append(
                Warning(
                    f"The server {server.label!r} of {_ORIGINS[source][0]} gets its headers over plain http.",
                    hint="Use https, or keep the server on this machine.",
                    id=f"{_TAG}.W011",
                )
            )
    if app_settings.ALLOWED_HOSTS is None and not _blocks_private_networks(app_settings.BLOCKED_NETWORKS):
        messages.append(
            Warning(
                "Servers may be in private networks: who edits one reaches what this machine reaches.",
                hint=f"Name hosts in {PREFIX}ALLOWED_HOSTS or add networks to {PREFIX}BLOCKED_NETWORKS.",
                id=f"{_TAG}.W012",
            )
        )
    if _problem_of("DEBUG") is None and app_settings.DEBUG:
        messages.append(
            Warning("Protocol frames are logged.", hint=f"Unset {PREFIX}DEBUG.", id=f"{_TAG}.W013")
        )
    if _problem_of("AUDIT") is None and not app_settings.AUDIT:
        messages.append(Warning("Calls leave no audit row.", hint=f"Unset {PREFIX}AUDIT.", id=f"{_TAG}.W014"))
    return messages


_ORIGINS: Final[Mapping[str, tuple[str, str]]] = {
    ServerConfig.Source.SETTINGS: (f"{PREFIX}SERVERS", "E003"),
    ServerConfig.Source.FILE: ("the configuration file", "E004"),
}


def _problem_of(name: str) -> str | None:
    try:
        getattr(app_settings, name)
    except ImproperlyConfigured as error:
        return str(error)
    return None


def _servers(messages: list[CheckMessage]) -> Iterator[tuple[str, ImportedServer]]:
    """Yield the servers of settings and file with their source; report what cannot be read at all."""
    if _problem_of("SERVERS") is None:
        try:
            yield from ((ServerConfig.Source.SETTINGS, server) for server in parse(app_settings.SERVERS))
        except ConfigurationError as error:
            messages.append(Error(f"{PREFIX}SERVERS: {error}", id=f"{_TAG}.E003"))
    if _problem_of("CONFIG_FILE") is None and (path := app_settings.config_file()):
        try:
            yield from ((ServerConfig.Source.FILE, server) for server in parse_text(path.read_bytes()))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            messages.append(
                Error(
                    f"The configuration file {path.name!r} cannot be read: {reason}.",
                    hint=f"Mend the path in {PREFIX}CONFIG_FILE, or set it to None.",
                    id=f"{_TAG}.E002",
                )
            )
        except ConfigurationError as error:
            messages.append(Error(f"The configuration file {path.name!r}: {error}", id=f"{_TAG}.E002"))


def _problems(source: str, server: ImportedServer) -> Iterable[str]:
    if server.error:
        return [server.error]
    row = ServerConfig(name=server.name, source=source)
    row.apply_import(server)
    try:
        row.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        return [f"{field}: {message}" for field, found in error.message_dict.items() for message in found]
    except ImproperlyConfigured:
        # Reported as E001 already.
        return []
    return []


def _sends_headers_in_plain_text(fields: Mapping[str, Any]) -> bool:
    if fields.get("transport") not in (Transport.STREAMABLE_HTTP, Transport.SSE) or not fields.get("headers"):
        return False
    try:
        parts = urlsplit(str(fields.get("url", "")))
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1")


def _blocks_private_networks(blocked: Iterable[str]) -> bool:
    networks = [ipaddress.ip_network(network) for network in blocked]
    return all(any(ipaddress.ip_address(address) in network for network in networks) for address in _PRIVATE)
