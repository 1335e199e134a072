"""The servers that come with the example project: their entries, their loading, the HTTP one's process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from example_project.processes import ReadyProcess
from mcp_client_app import services
from mcp_client_app.models import ServerConfig

SERVERS_DIR = Path(__file__).resolve().parent / "servers"
WEATHER_PORT = 8765
WEATHER_VARIABLE = "EXAMPLE_WEATHER_URL"

SAMPLES = {
    "welcome.txt": "Welcome! The server `files` reads and writes below this directory, and nowhere else.\n",
    "notes/shopping.txt": "oak boards\nglue\nsandpaper, grit 120\n",
}


def bundled_entries(files_dir: Path) -> dict[str, Any]:
    """Return the bundled servers in the form of an ``mcp.json``."""
    return {
        "mcpServers": {
            "files": {
                "command": sys.executable,
                "args": [str(SERVERS_DIR / "files.py"), str(files_dir)],
                "description": "Text files below one directory.",
            },
            "workshop": {
                "command": sys.executable,
                "args": [str(SERVERS_DIR / "workshop.py")],
                "description": "Tools, resources and prompts of every kind.",
            },
            "weather": {
                "type": "http",
                # The row stays the same when the port differs from run to run.
                "url": f"${{{WEATHER_VARIABLE}:-http://127.0.0.1:{WEATHER_PORT}/mcp}}",
                "description": "Invented weather over HTTP.",
            },
        }
    }


def load_bundled_servers(var_dir: Path) -> list[str]:
    """Store the bundled servers that are missing or cannot start any more; return their names.

    A server that is there keeps every change made to it. Only when the checkout or its environment has
    moved, so that the stored command or script no longer exists, is it loaded anew.
    """
    files_dir = var_dir / "files"
    if not files_dir.exists():
        _write_samples(files_dir)
    entries = bundled_entries(files_dir)["mcpServers"]
    usable = {row.name for row in ServerConfig.objects.filter(name__in=entries) if _can_start(row)}
    missing = {name: entry for name, entry in entries.items() if name not in usable}
    if missing:
        services.import_servers({"mcpServers": missing})
    return list(missing)


def _write_samples(files_dir: Path) -> None:
    for name, text in SAMPLES.items():
        sample = files_dir / name
        sample.parent.mkdir(parents=True, exist_ok=True)
        sample.write_text(text, encoding="utf-8")


def _can_start(row: ServerConfig) -> bool:
    if not row.command:
        return True
    script = next(iter(row.args), "")
    return Path(row.command).exists() and (not script.startswith("/") or Path(script).exists())


class WeatherServer:
    """The weather server as a process that never outlives this one; a context manager.

    It listens on its usual port if that is free, else on any, and says so to the rest of the project
    through an environment variable.
    """

    def __init__(self) -> None:
        self._process = _weather(WEATHER_PORT)

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._process.url

    def __enter__(self) -> Self:
        if not self._process.start():
            self._process = _weather(0)
            self._process.__enter__()
        os.environ[WEATHER_VARIABLE] = self.url
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.stop()


def _weather(port: int) -> ReadyProcess:
    script = str(SERVERS_DIR / "weather.py")
    # That the usual port is taken is no news: another one follows.
    return ReadyProcess(script, "--port", str(port), "--until-stdin-closes", quiet=port != 0)
