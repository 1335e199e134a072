"""A file of servers in the form of GAIA and Claude Desktop; several processes may read and write it."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mcp_client_app.configuration import json_text
from mcp_client_app.exceptions import ConfigurationError

if sys.platform != "win32":
    import fcntl

__all__ = ["MCPConfig"]

DEFAULT_FILE = "~/.gaia/mcp_servers.json"
ROOT = "mcpServers"
LEGACY_ROOT = "servers"


class MCPConfig:
    """Servers by name in a JSON file; every change is saved at once.

    Reads what another process has written meanwhile. Writing takes a lock (a file beside it whose name
    ends in ``.lock``; none on Windows), reads the file again, and puts a whole new one in its place, with
    mode 0600: nobody's change is lost, and nobody reads half a file. Other keys of the file are kept;
    comments are not.

    Args:
        config_file: The file; it and its folder are made when the first server is added.

    Raises:
        ConfigurationError: The file cannot be read, or is no such file; it is left as it is.
    """

    def __init__(self, config_file: str | os.PathLike[str] | None = None) -> None:
        self.config_file = Path(config_file if config_file is not None else DEFAULT_FILE).expanduser()
        self._servers: dict[str, dict[str, Any]] = {}
        self._signature: tuple[int, ...] | None = None
        self._look()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {str(self.config_file)!r}>"

    def add_server(self, name: str, config: Mapping[str, Any]) -> None:
        """Add a server, or replace its configuration.

        Raises:
            ConfigurationError: The configuration is no object, or holds what JSON cannot.
        """
        if not str(name).strip():
            raise ConfigurationError("Give the server a name.", field="name")
        if not isinstance(config, Mapping):
            raise ConfigurationError(f"The configuration of {name!r} must be an object.", server=name)
        try:
            entry = json.loads(json.dumps(dict(config), allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            raise ConfigurationError(
                f"The configuration of {name!r} cannot be written as JSON; "
                "use texts, numbers, lists and objects.",
                server=name,
            ) from None

        def add(servers: dict[str, Any]) -> bool:
            is_new: bool = servers.get(name) != entry
            servers[name] = entry
            return is_new

        self._change(add)

    def remove_server(self, name: str) -> None:
        """Remove a server; one that is not there makes no difference."""
        self._change(lambda servers: servers.pop(name, None) is not None)

    def get_server(self, name: str) -> dict[str, Any]:
        """Return a copy of a server's configuration; an empty object if there is no such server."""
        return self.get_servers().get(name, {})

    def get_servers(self) -> dict[str, dict[str, Any]]:
        """Return a copy of all configurations, by name."""
        self._look()
        return copy.deepcopy(self._servers)

    def server_exists(self, name: str) -> bool:
        """Say whether the file has a server of this name."""
        self._look()
        return name in self._servers

    # The file ----------------------------------------------------------------------------

    def _look(self) -> None:
        """Read the file unless it is the one that was read before."""
        try:
            stat = self.config_file.stat()
            signature = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if signature == self._signature:
                return
            servers = _servers(self._document())
        except FileNotFoundError:
            self._servers, self._signature = {}, None
            return
        except OSError as error:
            raise self._unreadable(error) from error
        self._servers = {name: dict(entry) for name, entry in servers.items() if isinstance(entry, Mapping)}
        self._signature = signature

    def _document(self) -> dict[str, Any]:
        text = self.config_file.read_bytes()
        try:
            document = json_text.loads(text) if text.strip() else {}
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.config_file.name}: {error}") from error
        if not isinstance(document, dict) or not all(
            isinstance(document.get(root, {}), dict) for root in (ROOT, LEGACY_ROOT)
        ):
            raise ConfigurationError(f"{self.config_file.name}: an object with the key {ROOT!r} is expected.")
        return document

    def _change(self, change: Callable[[dict[str, Any]], bool]) -> None:
        """Change the servers under the lock; ``change`` returns whether it did."""
        # A link stays one: what it leads to is replaced.
        path = Path(os.path.realpath(self.config_file))
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(path.with_name(f".{path.name}.lock")):
                try:
                    document = self._document()
                except FileNotFoundError:
                    document = {}
                servers = _servers(document)
                if change(servers):
                    document.pop(LEGACY_ROOT, None)
                    _replace(path, json.dumps({**document, ROOT: servers}, indent=2, ensure_ascii=False))
        except OSError as error:
            raise self._unreadable(error) from error
        self._look()

    def _unreadable(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(
            f"The file {str(self.config_file)!r} cannot be used: {error.strerror}; "
            "mend its rights or name another."
        )


def _servers(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return all servers of a document; where both keys have a name, the newer key counts."""
    return {**document.get(LEGACY_ROOT, {}), **document.get(ROOT, {})}


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes, and other threads of this one, out."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform != "win32":
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, text: str) -> None:
    """Put a new file in the place of another, at once and for its owner only."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # has mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
