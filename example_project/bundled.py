"""The servers that come with the example project: their entries, their loading, the HTTP one's process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mcp_client_app import services
from mcp_client_app.models import ServerConfig

SERVERS_DIR = Path(__file__).resolve().parent / "servers"
WEATHER_PORT = 8765
WEATHER_VARIABLE = "EXAMPLE_WEATHER_URL"
STOP_SECONDS = 5

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
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        try:
            if not any(self._start(port) for port in (WEATHER_PORT, 0)):
                raise RuntimeError("The weather server did not start; its own message stands above.")
        except BaseException:
            self.stop()
            raise
        os.environ[WEATHER_VARIABLE] = self.url
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process and wait for it; harmless when there is none."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def _start(self, port: int) -> bool:
        """Start the process; say whether it came up on ``port``."""
        command = [
            sys.executable,
            str(SERVERS_DIR / "weather.py"),
            "--port",
            str(port),
            "--until-stdin-closes",
        ]
        self._process = process = subprocess.Popen(
            command,
            # The pipe closes with this process, however it ends.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # That the usual port is taken is no news: another one follows.
            stderr=subprocess.DEVNULL if port else None,
            text=True,
        )
        line = process.stdout.readline() if process.stdout else ""
        word, _, url = line.strip().partition(" ")
        if word == "READY":
            self.url = url
            return True
        self.stop()
        return False
