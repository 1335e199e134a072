"""The example project as people deploy it: a master, its workers, and a client that talks HTTP to them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests import leftovers
from tests.stored import FAULTY, ROOT

SECONDS = 60
"""Limit of everything that waits for another process: never reached unless something hangs."""
THREADS = 8

PREPARE = """
import django
django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command
from rest_framework.authtoken.models import Token
from tests.stored import stored
call_command("migrate", verbosity=0)
stored("early", "--lifetime", "600")
stored("stubborn", "--lifetime", "600", "--scenario=ignore_eof_and_term", enabled=False)
user = get_user_model().objects.create_superuser("operator", password="-")
print(Token.objects.create(user=user).key)
"""


@dataclass(frozen=True)
class Kind:
    """A way to serve the site: what Python is told to run, with the flags of docs/deployment.md."""

    command: tuple[str, ...]
    workers: int = 2

    def with_flags(self, *flags: str) -> Kind:
        """Return the same with more flags."""
        return replace(self, command=(*self.command, *flags))


# A socket that is open before the server starts makes no client wait.
_GUNICORN = ("--workers=2", "--graceful-timeout=15", "--bind=fd://{fd}")
_UVICORN = ("-m", "uvicorn", "example_project.asgi:application", "--fd={fd}", "--log-level=warning")

KINDS = {
    "gunicorn": Kind(("-m", "gunicorn", "example_project.wsgi", "--threads=4", *_GUNICORN)),
    # The master has used a server before it forks.
    "gunicorn-preload": Kind(
        ("-m", "gunicorn", "tests.deployment.preloaded", "--threads=4", "--preload", *_GUNICORN)
    ),
    "gunicorn-uvicorn": Kind(
        (
            "-m",
            "gunicorn",
            "example_project.asgi:application",
            "--worker-class=uvicorn_worker.UvicornWorker",
            *_GUNICORN,
        )
    ),
    "uvicorn-2": Kind((*_UVICORN, "--workers=2")),
    "uvicorn-1": Kind(_UVICORN, workers=1),
}
UWSGI = Kind(
    (
        "-c",
        "import pyuwsgi; pyuwsgi.run()",
        "--http-socket=fd://{fd}",
        "--module=example_project.wsgi",
        "--master",
        "--die-on-term",
        "--threads=4",
    ),
    workers=1,
)
GEVENT = Kind(("-m", "gunicorn", "example_project.wsgi", "--worker-class=gevent", *_GUNICORN))


@dataclass(frozen=True)
class Answer:
    """What a request was answered."""

    status: int
    body: dict[str, Any]


@dataclass(frozen=True)
class Ground:
    """A directory with a migrated database, and the token of the superuser in it."""

    directory: Path
    token: str


@dataclass(frozen=True)
class Site:
    """A running site."""

    port: int
    token: str
    master: subprocess.Popen[bytes]
    workers: int
    directory: Path = field(repr=False)

    @property
    def log(self) -> str:
        """What the processes have printed."""
        return (self.directory / "log.txt").read_text()

    def send(self, method: str, place: str, body: Any = None) -> Answer:
        """Send one request on a connection of its own, so that any worker may answer."""
        return self.ask(method, f"/api/mcp/{place}", body)

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Do the same with any path of the site."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        headers = {"Authorization": f"Token {self.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        return Answer(response.status, json.loads(text) if text else {})

    def call(self, name: str, **arguments: Any) -> Answer:
        """Call a tool."""
        return self.send("POST", "tools/call/", {"name": name, "arguments": arguments})

    def at_once(self, requests: Sequence[Callable[[], Answer]]) -> list[Answer]:
        """Make requests from ``THREADS`` clients; return the answers in their order."""
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(lambda request: request(), requests))

    def burst(self, request: Callable[[], Answer]) -> list[Answer]:
        """Make one request several times at once, so that every worker has something to do."""
        return self.at_once([request] * (2 * THREADS))

    def until(self, request: Callable[[], Answer], is_so: Callable[[list[Answer]], bool]) -> list[Answer]:
        """Repeat a burst until its answers are as expected.

        Raises:
            AssertionError: They never are.
        """
        given_up = threading.Event()
        timer = threading.Timer(SECONDS, given_up.set)
        timer.start()
        try:
            while True:
                answers = self.burst(request)
                if is_so(answers):
                    return answers
                if given_up.is_set():
                    raise AssertionError(f"Never so: {Counter(map(str, answers))}\n{self.log}")
        finally:
            timer.cancel()

    def add(self, name: str, *options: str) -> None:
        """Store a raw stdio peer."""
        answer = self.send("POST", "servers/", peer(name, *options))
        assert answer.status == 201, answer

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run SQL on the site's database; return what is found."""
        return rows_of(self.directory, query, *values)

    def stop(self) -> int:
        """End the master as a process manager does; return its exit status."""
        self.master.send_signal(signal.SIGTERM)
        return self.master.wait(SECONDS)


def peer(name: str, *options: str) -> dict[str, Any]:
    """Return the body that stores a raw stdio peer."""
    return {
        "name": name,
        "command": sys.executable,
        "args": ["-S", "-E", str(FAULTY), "--lifetime", "600", *options],
        "enabled": True,
    }


def environment(directory: Path) -> dict[str, str]:
    """Return the environment of the site's processes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EXAMPLE_", "DJANGO_"))}
    return kept | {
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "EXAMPLE_VAR_DIR": str(directory),
        "EXAMPLE_DEBUG": "0",
        # gunicorn keeps a socket there.
        "HOME": str(directory),
    }


def rows_of(directory: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run SQL on the database in a site's directory; return what is found."""
    opened = sqlite3.connect(directory / "db.sqlite3", SECONDS)
    with contextlib.closing(opened) as connection, connection:
        return connection.execute(query, values).fetchall()


def prepare(directory: Path) -> Ground:
    """Make a database for sites to begin with."""
    result = subprocess.run(
        [sys.executable, "-c", PREPARE],
        cwd=ROOT,
        env=environment(directory),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return Ground(directory, result.stdout.strip())


@contextlib.contextmanager
def deployed(kind: Kind, ground: Ground, directory: Path, **variables: str) -> Iterator[Site]:
    """Run a site of its own; whatever happens, no process of it stays.

    Args:
        kind: Server and flags.
        ground: What the site's database begins with.
        directory: An empty directory, for the database and the log.
        variables: Of the processes' environment.
    """
    shutil.copytree(ground.directory, directory, dirs_exist_ok=True)
    log = directory / "log.txt"
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener, log.open("wb") as output:
        descriptor = listener.fileno()
        master = subprocess.Popen(
            [sys.executable, *(flag.format(fd=descriptor) for flag in kind.command)],
            cwd=ROOT,
            env=environment(directory) | variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[descriptor],
            start_new_session=True,
        )
        with ending(master):
            yield Site(listener.getsockname()[1], ground.token, master, kind.workers, directory)


@contextlib.contextmanager
def ending(master: subprocess.Popen[Any]) -> Iterator[None]:
    """At the end of the block stop a process that leads a session, and what is left of its group."""
    try:
        yield
    finally:
        # What a failing test leaves must harm nobody. By descriptor: a number may be another's by then.
        handles = []
        for pid in leftovers.descendants(master.pid):
            with contextlib.suppress(ProcessLookupError):
                handles.append(os.pidfd_open(pid))
        if master.poll() is None:
            master.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                master.wait(SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(master.pid, signal.SIGKILL)
        master.wait()
        for handle in handles:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)
