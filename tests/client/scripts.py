"""Runs small programs that use the core, as processes of their own: forks, exits, crashes.

Each program starts with ``SETUP``: ``manager`` and ``call`` are there, and the peer's pids are in a file.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests.client.peers import FAULTY, PATIENCE

ROOT = Path(__file__).parents[2]

SETUP = """
import logging, os, signal, sys, threading
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.sources import StaticSource
from mcp_client_app.datatypes import ManagerOptions, ServerSpec

logging.basicConfig(level="ERROR")  # as a host does: the loss of a server is worth a warning
spec = ServerSpec(
    name="srv", transport="stdio", command=sys.executable, mode="legacy",
    args=("-S", "-E", {peer!r}, "--pid-file", {pids!r}, "--wire-log", {wire!r}, *{options!r}),
)
manager = MCPClientManager(StaticSource([spec]), ManagerOptions({manager_options}))

def call(text):
    answer = manager.call_tool("srv__echo", {{"text": text}}).text
    os.write(1, answer.encode() + b"\\n")

"""


@dataclass
class Script:
    """A program that runs, or has run."""

    process: subprocess.Popen[str]
    directory: Path

    @property
    def pids(self) -> list[int]:
        """The peer's process ids, one for each start."""
        return [int(line) for line in (self.directory / "pids").read_text().split()]

    def read_line(self) -> str:
        """Return the next line that the program prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def finish(self) -> str:
        """Wait for a good end; return what was printed."""
        output, errors = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, errors
        assert not errors, errors
        return output


def start(directory: Path, body: str, *peer_options: str, manager_options: str = "") -> Script:
    """Start a program: ``SETUP``, then ``body``."""
    setup = SETUP.format(
        peer=str(FAULTY),
        pids=str(directory / "pids"),
        wire=str(directory / "wire"),
        options=peer_options,
        manager_options=manager_options,
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", setup + textwrap.dedent(body)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Script(process, directory)
