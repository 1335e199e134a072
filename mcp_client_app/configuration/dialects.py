"""Any ``mcp.json`` in, a list of servers out.

Accepted: ``mcpServers`` (Claude, Cursor, Cline, Windsurf, Gemini), ``servers`` (VS Code),
``mcp_servers`` (Codex, as JSON), ``context_servers`` (Zed), each as an object by name or as a
list with names, and an object of servers without any such key. One bad entry never sinks
the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_client_app.configuration import json_text, keys
from mcp_client_app.configuration.entries import EntryReader
from mcp_client_app.configuration.values import EntryError
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.json_codec import scrub
from mcp_client_app.naming import slugify_server_name

__all__ = ["MAX_LABEL", "ImportedServer", "parse", "parse_text"]

MAX_LABEL = 200


@dataclass(frozen=True, kw_only=True)
class ImportedServer:
    """One entry, read. Its secrets stay out of its repr."""

    name: str
    """A valid server name, made from the one in the file."""
    label: str
    """The name in the file, or the title that the entry gives itself."""
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What the entry says, in the vocabulary of ``ServerConfig``. A value of ``env`` or ``headers``
    that is None stands for the value stored before. What the entry does not say is absent."""
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Keys that mean nothing to us, for a later export."""
    notices: Sequence[str] = ()
    """What was read otherwise than it was written. No secrets."""
    error: str | None = None
    """Why the entry cannot be imported."""


def parse_text(text: str | bytes) -> list[ImportedServer]:
    """Read a file's content, leniently.

    Raises:
        ConfigurationError: this is no JSON, or holds no servers.
    """
    duplicates: set[str] = set()
    return parse(json_text.loads(text, duplicates=duplicates), duplicates=duplicates)


def parse(data: Any, *, duplicates: Iterable[str] = ()) -> list[ImportedServer]:
    """Read decoded JSON.

    Args:
        data: the whole document.
        duplicates: keys that the document holds twice; servers among them get a notice.

    Raises:
        ConfigurationError: the document holds no servers.
    """
    twice = frozenset(duplicates)
    taken: dict[str, str] = {}
    servers: list[ImportedServer] = []
    for label, entry in _entries(data):
        server = _read(label, entry, taken, is_twice=label in twice)
        taken.setdefault(server.name.lower(), label)
        servers.append(server)
    return servers


def _read(label: str, entry: Any, taken: Mapping[str, str], *, is_twice: bool) -> ImportedServer:
    name = slugify_server_name(label)
    notices: list[str] = []
    if name != label:
        notices.append(f"The server is called {name!r} here.")
    if is_twice:
        notices.append("The name appears more than once; the last entry counts.")
    if not isinstance(entry, Mapping):
        return ImportedServer(
            name=name, label=_shown(label), notices=notices, error="The entry must be an object."
        )
    reader = EntryReader(entry)
    error = None
    try:
        reader.read()
    except EntryError as reason:
        error = str(reason)
    if name.lower() in taken:
        error = f"The name {name!r} is taken by the entry {taken[name.lower()]!r}; rename one of them."
    return ImportedServer(
        name=name,
        label=_shown(str(reader.fields.pop("label", label))),
        fields=reader.fields,
        extra=reader.extra,
        notices=(*notices, *reader.notices),
        error=error,
    )


def _shown(label: str) -> str:
    # It is shown for an entry that cannot be stored, too: half a character would break the page.
    return str(scrub(label))[:MAX_LABEL]


def _entries(data: Any) -> list[tuple[str, Any]]:
    if isinstance(data, Mapping) and isinstance(data.get("mcp"), Mapping) and not _is_entry(data["mcp"]):
        # The settings file of VS Code.
        data = data["mcp"]
    if not isinstance(data, Mapping):
        raise ConfigurationError("An object with the key 'mcpServers' is expected.")
    found = [pair for root in keys.ROOTS for pair in _container(data.get(root))]
    if found or any(root in data and not _is_entry(data[root]) for root in keys.ROOTS):
        return found
    if _is_entry(data):
        raise ConfigurationError(
            'This is one server without a name; write {"mcpServers": {"name": ...}} around it.'
        )
    return [(name, entry) for name, entry in data.items() if not name.startswith("$")]


def _container(value: Any) -> list[tuple[str, Any]]:
    """Return the named entries of a top-level value, if it holds any."""
    if isinstance(value, Mapping) and not _is_entry(value):
        return list(value.items())
    if isinstance(value, list):
        return [_named(index, entry) for index, entry in enumerate(value, 1)]
    return []


def _named(index: int, entry: Any) -> tuple[str, Any]:
    if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
        return entry["name"], {key: value for key, value in entry.items() if key != "name"}
    return f"server-{index}", entry


def _is_entry(value: Any) -> bool:
    """Say whether an object is one server rather than a map of servers."""
    return isinstance(value, Mapping) and any(
        keys.plain(key) in keys.ENTRY_MARKS and isinstance(item, str | list) for key, item in value.items()
    )
