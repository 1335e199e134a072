"""One server of an ``mcp.json``, in whatever dialect, read into the fields of ``ServerConfig``.

Only form is judged here: that a list is a list, which transport is meant. Whether the
server can work is judged by the model, for every way in. A notice says what was read
otherwise than it was written; no notice and no error repeats a value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from mcp_client_app.configuration import keys
from mcp_client_app.configuration.expansion import placeholders, references
from mcp_client_app.configuration.keys import plain
from mcp_client_app.configuration.values import (
    EntryError,
    as_boolean,
    as_number,
    as_text,
    as_texts,
    as_variable,
    split_line,
    texts,
)
from mcp_client_app.datatypes import Transport

__all__ = ["EntryReader"]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_PER_USER = re.compile(r"\{\{\s*\w+\s*\}\}")
_LARGEST_SECONDS = 1000
_FOR_PROCESSES = ("command", "args", "env", "cwd")
_FOR_HTTP = ("url", "headers")


class EntryReader:
    """Reads one entry; ``fields``, ``extra`` and ``notices`` are the outcome, complete after :meth:`read`.

    ``fields`` holds only what the entry says, so that another import leaves the rest alone.
    """

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.fields: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}
        self.notices: list[str] = []
        self._rest = dict(entry)
        self._implied: Transport | None = None
        """The transport that the spelling of the URL's key implies."""

    def read(self) -> None:
        """Read everything.

        Raises:
            EntryError: the entry cannot be imported; the fields read so far stay.
        """
        self._check_text()
        self._flatten()
        self._read_own_keys()
        self._read_process()
        self._read_http()
        self._read_transport()
        self._read_limits()
        self._read_state()
        self._read_filters()
        self._keep_the_rest()
        self._drop_irrelevant()
        self._check_references()

    # Access to what has not been read yet ---------------------------------------------

    def _take(self, *names: str) -> Iterable[tuple[str, Any]]:
        """Take keys away by their plain names, in the order given; yield key and value as found."""
        for name in names:
            for key in [key for key in self._rest if plain(key) == name]:
                yield key, self._rest.pop(key)

    def _check_text(self) -> None:
        if any(_UNSTORABLE.search(text) for text in texts(self._rest)):
            raise EntryError("A text contains a NUL or half a character, which cannot be stored.")

    def _flatten(self) -> None:
        """Lift a transport that is an object of its own into the entry."""
        for key in [key for key, value in self._rest.items() if isinstance(value, Mapping)]:
            if plain(key) == "transport":
                nested = self._rest.pop(key)
                known = {plain(name) for name in self._rest}
                self._rest |= {name: value for name, value in nested.items() if plain(name) not in known}

    def _read_own_keys(self) -> None:
        for name, read in keys.OWN_KEYS.items():
            for key, value in self._take(plain(name)):
                if value is not None:
                    self.fields[name] = read(key, value)
        for name, is_ours in keys.SHARED_KEYS.items():
            if is_ours(self._rest.get(name)):
                self.fields[name] = self._rest.pop(name)
        for _, value in self._take("name"):
            if isinstance(value, str):
                self.fields.setdefault("label", value)
        for _, value in self._take("envvars"):
            self.fields["inherited_names"] = as_texts("env_vars", value)

    # Local processes -----------------------------------------------------------------

    def _read_process(self) -> None:
        args: list[str] | None = None
        for key, value in self._take("args"):
            args = self._read_args(key, value)
        for _, value in self._take("command"):
            self._read_command(value, args)
        if args is not None:
            self.fields.setdefault("args", args)
        for key, value in self._take("env", "environment"):
            self.fields["env"] = self._read_map(key, value)

    def _read_args(self, key: str, value: Any) -> list[str]:
        if value is None:
            return []
        if isinstance(value, str):
            self.notices.append(f"{key!r} is one text; it was split as a shell would.")
            return split_line(key, value)
        return as_texts(key, value)

    def _read_command(self, value: Any, args: list[str] | None) -> None:
        if isinstance(value, list) and value:
            head, *more = as_texts("command", value)
        elif isinstance(value, str):
            head, more = value.strip(), []
            if self._is_line(head, args):
                head, *more = split_line("command", head)
                self.notices.append("'command' is a whole command line; it was split as a shell would.")
        elif value is None:
            return
        else:
            raise EntryError("'command' must be a string.")
        self.fields["command"] = head
        self.fields["args"] = more + (args or [])

    def _is_line(self, command: str, args: list[str] | None) -> bool:
        """Say whether a command is a command line rather than a path with spaces in it."""
        first, *others = command.split()[:2] or [""]
        return bool(others) and (args is None or not re.search(r"[/\\]", first))

    # Servers at a URL ----------------------------------------------------------------

    def _read_http(self) -> None:
        for name, transport in keys.URLS.items():
            for key, value in self._take(name):
                if not isinstance(value, str):
                    raise EntryError(f"{key!r} must be a string.")
                if "url" in self.fields:
                    self.notices.append(f"{key!r} is left out: the entry has another URL that goes first.")
                    continue
                self.fields["url"], self._implied = value.strip(), transport
        maps = [self._read_map(key, value) for key, value in self._take("httpheaders", "headers")]
        headers = {name: text for given in maps for name, text in given.items()}
        taken = {name.lower() for name in headers}
        headers |= {name: text for name, text in self._referenced_headers() if name.lower() not in taken}
        if headers or maps:
            self.fields["headers"] = headers

    def _referenced_headers(self) -> Iterable[tuple[str, str]]:
        for key, value in self._take("bearertokenenvvar"):
            if value is not None:
                yield "Authorization", f"Bearer ${{{as_variable(key, value)}}}"
        for key, value in self._take("envhttpheaders"):
            for name, variable in self._read_map(key, value).items():
                yield name, f"${{{as_variable(key, variable)}}}"

    def _read_map(self, key: str, value: Any) -> dict[str, Any]:
        """Read names and texts; None stays: it stands for a value that is kept."""
        if value is None:
            return {}
        if isinstance(value, list) and all(isinstance(item, str) and "=" in item for item in value):
            value = dict(item.split("=", 1) for item in value)
        if not isinstance(value, Mapping):
            raise EntryError(f"{key!r} must be an object of names and strings.")
        return {
            name: None if item is None else as_text(f"{key}.{name}", item) for name, item in value.items()
        }

    # Transport -----------------------------------------------------------------------

    def _read_transport(self) -> None:
        named: set[Transport] = set()
        for key, value in self._take("type", "transport", "transporttype"):
            if value is not None and (transport := self._transport_named(key, value)):
                named.add(transport)
        if len(named) > 1:
            raise EntryError("The entry names two different transports.")
        self.fields["transport"] = (named.pop() if named else self._inferred_transport()).value

    def _transport_named(self, key: str, value: Any) -> Transport | None:
        if not isinstance(value, str):
            raise EntryError(f"{key!r} must be a string.")
        spelling = plain(value)
        if spelling in ("websocket", "ws"):
            raise EntryError("The websocket transport is not supported; use streamable HTTP.")
        if spelling not in keys.TRANSPORTS:
            near = difflib.get_close_matches(spelling, keys.TRANSPORTS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " Use 'stdio', 'http' or 'sse'."
            raise EntryError(f"{key!r} names an unknown transport.{hint}")
        return keys.TRANSPORTS[spelling]

    def _inferred_transport(self) -> Transport:
        if "in_process" in self.fields:
            return Transport.IN_PROCESS
        if "command" in self.fields:
            return Transport.STDIO
        if "url" not in self.fields:
            raise EntryError("The entry has neither a command nor a URL.")
        if self._implied:
            return self._implied
        transport = (
            Transport.SSE if _path_of(self.fields["url"]).endswith("/sse") else Transport.STREAMABLE_HTTP
        )
        self.notices.append(f"The transport is not named; it was taken to be {transport.value!r} by the URL.")
        return transport

    def _drop_irrelevant(self) -> None:
        """Move what the transport does not use out of the way: another client may have put it there."""
        transport = self.fields["transport"]
        unused: list[str] = []
        if transport != Transport.STDIO:
            unused += _FOR_PROCESSES
        if transport not in (Transport.STREAMABLE_HTTP, Transport.SSE):
            unused += _FOR_HTTP
        for name in unused:
            if value := self.fields.pop(name, None):
                self.extra[name] = value
                self.notices.append(
                    f"{name!r} has no use with the transport {transport!r}; it is kept aside."
                )

    # Limits, state, filters ----------------------------------------------------------

    def _read_limits(self) -> None:
        # Where a read limit is given beside it, `timeout` is the limit of the handshake.
        with_read_limit = any(plain(key) == "ssereadtimeout" for key in self._rest)
        for name, (field, unit) in keys.LIMITS.items():
            if with_read_limit and name == "timeout":
                field = "connect_timeout"
            for key, value in self._take(name):
                if value is None:
                    continue
                seconds = self._seconds(key, value, unit)
                if field in self.fields:
                    self.notices.append(f"{key!r} is left out: another key gives the same limit.")
                else:
                    self.fields[field] = seconds

    def _seconds(self, key: str, value: Any, unit: str) -> float:
        number = as_number(key, value)
        if unit == "s":
            return number
        if unit == "?" and number <= _LARGEST_SECONDS:
            return number
        if unit == "?":
            self.notices.append(f"{key!r} is over {_LARGEST_SECONDS}: read as milliseconds.")
        return number / 1000

    def _read_state(self) -> None:
        wishes = [as_boolean(key, value) for key, value in self._take(*keys.ENABLED) if value is not None]
        wishes += [
            not as_boolean(key, value) for key, value in self._take(*keys.DISABLED) if value is not None
        ]
        if wishes:
            self.fields["enabled"] = all(wishes)
            if len(set(wishes)) > 1:
                self.notices.append("The entry is both enabled and disabled; it is imported disabled.")

    def _read_filters(self) -> None:
        blocked: list[str] = []
        for key, value in self._take(*keys.ALLOWED):
            allowed = value
            if isinstance(value, Mapping):
                allowed, more = _filter_object(key, value)
                blocked += more
            if allowed is None:
                self.fields.setdefault("allowed_tools", None)
                continue
            if self.fields.get("allowed_tools") is not None:
                raise EntryError(f"{key!r} is a second list of allowed tools.")
            self.fields["allowed_tools"] = as_texts(key, allowed)
        if isinstance(self._rest.get("tools"), list):
            listed = as_texts("tools", self._rest.pop("tools"))
            self.fields.setdefault("allowed_tools", None if listed == ["*"] else listed)
        found = [(key, value) for key, value in self._take(*keys.BLOCKED) if value is not None]
        for key, value in found:
            blocked += as_texts(key, value)
        if found or blocked:
            self.fields["blocked_tools"] = blocked

    # The rest ------------------------------------------------------------------------

    def _keep_the_rest(self) -> None:
        for key, value in self._rest.items():
            if plain(key) in keys.APPROVALS and value:
                self.notices.append(
                    f"{key!r} grants nothing here: it is kept, and calls stay subject to approval."
                )
            elif plain(key) in keys.SIGN_IN and value:
                self.notices.append(f"{key!r} is kept, but signing in is not set up by an import.")
            elif plain(key) == "envfile" and value:
                self.notices.append(f"{key!r} is not read: it names a file on another machine. Use 'env'.")
        self.extra |= self._rest
        self._rest = {}

    def _check_references(self) -> None:
        """Report what only an editor can fill in.

        Raises:
            EntryError: the entry depends on a workspace, which a server does not have.
        """
        waiting: list[str] = []
        for name in (*_FOR_PROCESSES, *_FOR_HTTP):
            for text in texts(self.fields.get(name)):
                self._check_text_of(name, text)
                waiting += placeholders(text)
        if waiting:
            names = ", ".join(f"${{{name}}}" for name in dict.fromkeys(waiting))
            self.notices.append(f"Values have to be filled in before the server can be enabled: {names}.")

    def _check_text_of(self, field: str, text: str) -> None:
        unknown = [name for name in references(text) if name in keys.EDITOR_VARIABLES]
        unknown += [name for name in placeholders(text) if not name.startswith("input:")]
        if unknown:
            raise EntryError(
                f"{field!r} uses ${{{unknown[0]}}}, which only an editor knows; write the value itself."
            )
        if _PER_USER.search(text):
            self.notices.append(f"{field!r} holds a placeholder in double braces; it is sent as it stands.")


def _filter_object(key: str, value: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Read a filter that is an object of lists to allow and lists to block."""
    parts = {plain(name): item for name, item in value.items()}
    allowed = next(
        (parts[name] for name in ("allow", "allowed", "include", "enabled") if name in parts), None
    )
    blocked = next(
        (parts[name] for name in ("block", "blocked", "exclude", "deny", "disabled") if name in parts), None
    )
    return allowed, [] if blocked is None else as_texts(key, blocked)


def _path_of(url: str) -> str:
    try:
        return urlsplit(url).path.rstrip("/")
    except ValueError:
        return ""
