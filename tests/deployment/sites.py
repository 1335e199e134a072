"""The example project as people deploy it: a master, its workers, and a client that talks HTTP to them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
call_command("migrate", verbosity=0)
user = get_user_model().objects.create_superuser("operator", password="-")
print(Token.objects.create(user=user).key)
"""

MODULES = {
    # The flags of docs/deployment.md; a socket that is open before the server starts makes no client wait.
    "gunicorn": (
        "gunicorn",
        "example_project.wsgi",
        "--workers=2",
        "--threads=4",
        "--graceful-timeout=15",
        "--bind=fd://{fd}",
    ),
    "uvicorn-2": (
        "uvicorn",
        "example_project.asgi:application",
        "--workers=2",
        "--fd={fd}",
        "--lifespan=off",
        "--log-level=warning",
    ),
    "uvicorn-1": (
        "uvicorn",
        "example_project.asgi:application",
        "--fd={fd}",
        "--lifespan=off",
        "--log-level=warning",
    ),
}
WORKERS = {"gunicorn": 2, "uvicorn-2": 2, "uvicorn-1": 1}


@dataclass(frozen=True)
class Answer:
    """What a request was answered."""

    status: int
    body: dict[str, Any]


@dataclass(frozen=True)
class Site:
    """A running site."""

    port: int
    token: str
    master: subprocess.Popen[bytes]
    workers: int
    log: Path = field(repr=False)

    def send(self, method: str, place: str, body: Any = None) -> Answer:
        """Send one request on a connection of its own, so that any worker may answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        headers = {"Authorization": f"Token {self.token}", "Content-Type": "application/json"}
        try:
            connection.request(
                method, f"/api/mcp/{place}", json.dumps(body) if body is not None else None, headers
            )
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
                    raise AssertionError(f"Never so: {Counter(map(str, answers))}\n{self.log.read_text()}")
        finally:
            timer.cancel()

    def add(self, name: str, *options: str) -> None:
        """Store a raw stdio peer."""
        answer = self.send("POST", "servers/", peer(name, *options))
        assert answer.status == 201, answer

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


def prepare(directory: Path) -> str:
    """Make the site's database; return the token of a superuser."""
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
    return result.stdout.strip()


@contextlib.contextmanager
def deployed(kind: str, directory: Path) -> Iterator[Site]:
    """Run the site with one of ``MODULES``; whatever happens, no process of it stays."""
    token = prepare(directory)
    log = directory / "log.txt"
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener, log.open("wb") as output:
        module, *flags = MODULES[kind]
        descriptor = listener.fileno()
        master = subprocess.Popen(
            [sys.executable, "-m", module, *(flag.format(fd=descriptor) for flag in flags)],
            cwd=ROOT,
            env=environment(directory),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[descriptor],
            start_new_session=True,
        )
        try:
            yield Site(listener.getsockname()[1], token, master, WORKERS[kind], log)
        finally:
            if master.poll() is None:
                master.terminate()
                try:
                    master.wait(SECONDS)
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(master.pid, signal.SIGKILL)
                    master.wait()
