"""The published servers as specs, and a manager that drives them.

The servers are installed on first need (``scripts/install_published.py``). Where that is not possible
the tests that need them are skipped with the reason; with ``CI`` set that is a failure.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.observers import Observer
from mcp_client_app.client.sources import StaticSource
from mcp_client_app.datatypes import LogMessage, ServerSpec, Transport

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / ".published"
NODE_PACKAGES = INSTALLED / "node" / "node_modules" / "@modelcontextprotocol"
PYTHON_BIN = INSTALLED / "python" / "bin"
NOT_POSSIBLE = 3
PORT_ATTEMPTS = 3

HTTP_MODES = {
    Transport.STREAMABLE_HTTP: ("streamableHttp", "/mcp"),
    Transport.SSE: ("sse", "/sse"),
}


# The manager -------------------------------------------------------------------------


class LogKeeper(Observer):
    """Keeps what servers log, for tests that wait for it."""

    def __init__(self) -> None:
        self.messages: queue.SimpleQueue[LogMessage] = queue.SimpleQueue()

    def logged(self, message: LogMessage) -> None:
        self.messages.put(message)


@dataclass
class Driven:
    """A manager under test and what its servers log."""

    manager: MCPClientManager
    logs: queue.SimpleQueue[LogMessage]


@contextlib.contextmanager
def driven(*specs: ServerSpec) -> Iterator[Driven]:
    """Give a manager of these servers; close it afterwards."""
    keeper = LogKeeper()
    manager = MCPClientManager(StaticSource(specs), observers=[keeper])
    try:
        yield Driven(manager, keeper.messages)
    finally:
        manager.close()


@pytest.fixture
def manager_with() -> Iterator[Callable[..., MCPClientManager]]:
    """Make managers of the servers given; close them at the end of the test."""
    with ExitStack() as stack:

        def make(*specs: ServerSpec) -> MCPClientManager:
            return stack.enter_context(driven(*specs)).manager

        yield make


# The servers -------------------------------------------------------------------------


def install(part: str) -> None:
    """Make sure that these servers are there; skip or fail if they cannot be."""
    command = [sys.executable, str(ROOT / "scripts" / "install_published.py"), "--part", part]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == NOT_POSSIBLE:
        pytest.skip(done.stderr.strip())
    if done.returncode:
        pytest.fail(done.stderr.strip(), pytrace=False)


@pytest.fixture(scope="session")
def node_program() -> Callable[[str], tuple[str, str]]:
    """Return command and script of an npm server by its short name, such as ``memory``."""
    install("node")
    return lambda name: ("node", str(NODE_PACKAGES / f"server-{name}" / "dist" / "index.js"))


@pytest.fixture(scope="session")
def python_program() -> Callable[[str], str]:
    """Return the command of a PyPI server by its short name, such as ``time``."""
    install("python")
    return lambda name: str(PYTHON_BIN / f"mcp-server-{name}")


@pytest.fixture(scope="module", params=list(Transport)[:3], ids=str)
def everything(
    request: pytest.FixtureRequest, node_program: Callable[[str], tuple[str, str]]
) -> Iterator[Driven]:
    """Drive server-everything, over stdio, streamable HTTP and SSE in turn."""
    command, script = node_program("everything")
    transport: Transport = request.param
    with ExitStack() as stack:
        if transport is Transport.STDIO:
            spec = ServerSpec(
                name="everything",
                transport=transport,
                command=command,
                args=(script, "stdio"),
                env={"GREETING": "hello from the row"},
            )
        else:
            mode, path = HTTP_MODES[transport]
            address = stack.enter_context(serving(command, script, mode))
            spec = ServerSpec(name="everything", transport=transport, url=address + path)
        yield stack.enter_context(driven(spec))


@contextlib.contextmanager
def serving(command: str, script: str, mode: str) -> Iterator[str]:
    """Run server-everything as a web server; give scheme, host and port."""
    process, port = _start_on_free_port(command, script, mode)
    assert process.stderr
    # It tells of every message: a full pipe would stop it.
    drain = threading.Thread(target=process.stderr.read, name="drain", daemon=True)
    drain.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        drain.join()
        process.stderr.close()


def _start_on_free_port(command: str, script: str, mode: str) -> tuple[subprocess.Popen[str], int]:
    for _ in range(PORT_ATTEMPTS):
        # The server takes a port, not a socket: somebody else may be quicker, so try again.
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process = subprocess.Popen(
            [command, script, mode],
            env={**os.environ, "PORT": str(port)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr
        for line in process.stderr:
            if line.rstrip().endswith(f"on port {port}"):
                return process, port
        process.wait()
        process.stderr.close()
    raise AssertionError("server-everything did not start.")


@pytest.fixture
def filesystem(node_program: Callable[[str], tuple[str, str]], tmp_path: Path) -> tuple[ServerSpec, Path]:
    """Return server-filesystem and the one directory that it may touch."""
    folder = tmp_path / "files"
    folder.mkdir()
    command, script = node_program("filesystem")
    spec = ServerSpec(
        name="files", transport=Transport.STDIO, command=command, args=(script, str(folder.resolve()))
    )
    return spec, folder.resolve()


@pytest.fixture
def memory(node_program: Callable[[str], tuple[str, str]], tmp_path: Path) -> ServerSpec:
    """Return server-memory with a file of its own."""
    command, script = node_program("memory")
    return ServerSpec(
        name="memory",
        transport=Transport.STDIO,
        command=command,
        args=(script,),
        env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")},
    )


@pytest.fixture
def clock(python_program: Callable[[str], str]) -> ServerSpec:
    """Return mcp-server-time."""
    return ServerSpec(
        name="time",
        transport=Transport.STDIO,
        command=python_program("time"),
        args=("--local-timezone", "Europe/Berlin"),
    )


@pytest.fixture
def git(python_program: Callable[[str], str], tmp_path: Path) -> tuple[ServerSpec, Path]:
    """Return mcp-server-git and its repository: one commit, one changed file."""
    repository = tmp_path / "repository"
    repository.mkdir()
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    # Whatever the machine's own settings are: hooks, signing, names of branches.
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def run(*arguments: str) -> None:
        subprocess.run(["git", *identity, *arguments], cwd=repository, env=environment, check=True)

    run("init", "--quiet", "--initial-branch=main")
    (repository / "notes.txt").write_text("one\n")
    run("add", "notes.txt")
    run("commit", "--quiet", "--message=The first note")
    (repository / "notes.txt").write_text("one\ntwo\n")
    spec = ServerSpec(
        name="git",
        transport=Transport.STDIO,
        command=python_program("git"),
        args=("--repository", str(repository)),
    )
    return spec, repository
