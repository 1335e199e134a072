"""The project under a real web server, on a database of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.places import ROOT
from benchmarks.servers.fast import fast_server

__all__ = ["Site", "deployed", "postgresql", "prepared"]

PREPARE = """
import django
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
call_command("migrate", verbosity=0)
User.objects.create_superuser("operator")
"""

COMMANDS = {
    "gunicorn": (
        "gunicorn",
        "benchmarks.project.wsgi",
        "--workers=2",
        "--threads=8",
        "--keep-alive=60",
        "--bind=fd://{fd}",
        "--log-level=warning",
    ),
    # By its port: on a socket that it is handed, it leaves Nagle's algorithm on, which costs 40 ms a request.
    "uvicorn": (
        "uvicorn",
        "benchmarks.project.asgi:application",
        "--port={port}",
        "--loop=uvloop",
        "--lifespan=off",
        "--log-level=warning",
        "--no-access-log",
    ),
}
SECONDS = 60


@dataclass(frozen=True)
class Site:
    """A running site."""

    port: int
    master: int
    has_workers: bool

    def cpu_seconds(self) -> float:
        """Return the CPU time of the processes that serve, MCP servers not counted; 0 without ``/proc``."""
        if not Path("/proc/self/stat").exists():
            return 0.0
        processes = [str(self.master)]
        if self.has_workers:
            for place in Path(f"/proc/{self.master}/task").glob("*/children"):
                processes += place.read_text().split()
        # Of the whole process: threads that have ended count. The name before it may hold spaces.
        stats = (Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in processes)
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")

    def wait(self) -> None:
        """Wait until it accepts connections.

        Raises:
            BenchmarkError: It does not.
        """
        until = time.monotonic() + SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), SECONDS).close()
            except ConnectionRefusedError as error:
                if time.monotonic() > until:
                    raise BenchmarkError(f"The site does not answer within {SECONDS} s.") from error
                time.sleep(0.05)
            else:
                return


@contextlib.contextmanager
def deployed(server: str, *, audit: str = "off", database: str = "") -> Iterator[Site]:
    """Run the project under a web server; ``database`` names one of PostgreSQL, else it is SQLite.

    Raises:
        BenchmarkError: It does not start.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        environment = prepared(folder, audit=audit, database=database)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=256))
        descriptor, port = listener.fileno(), listener.getsockname()[1]
        if server == "uvicorn":
            listener.close()
        log = stack.enter_context((folder / "log.txt").open("wb"))
        module, *flags = COMMANDS[server]
        master = subprocess.Popen(
            [sys.executable, "-m", module, *(flag.format(fd=descriptor, port=port) for flag in flags)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[descriptor] if server == "gunicorn" else [],
            start_new_session=True,
        )
        stack.callback(_stop, master)
        try:
            site = Site(port, master.pid, has_workers=server == "gunicorn")
            site.wait()
            yield site
        except BenchmarkError as error:
            log.flush()
            raise BenchmarkError(f"{error}\n{(folder / 'log.txt').read_text()[-3000:]}") from error


def prepared(folder: Path, *, audit: str = "off", database: str = "") -> dict[str, str]:
    """Make the project's database, in the folder unless it is one of PostgreSQL; return the environment.

    Raises:
        BenchmarkError: It cannot be made.
    """
    command, *arguments = fast_server().over("stdio")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "benchmarks.project.settings",
        "BENCHMARK_SQLITE": str(folder / "db.sqlite3"),
        "BENCHMARK_POSTGRESQL": database,
        "BENCHMARK_SERVER": json.dumps({"command": command, "args": arguments}),
        "BENCHMARK_AUDIT": audit,
        "HOME": str(folder),  # gunicorn keeps a socket there
    }
    made = subprocess.run(
        [sys.executable, "-c", PREPARE],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise BenchmarkError(f"The project's database cannot be made:\n{made.stderr}")
    return environment


def _stop(master: subprocess.Popen[bytes]) -> None:
    master.terminate()
    try:
        master.wait(SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(master.pid, signal.SIGKILL)
        master.wait()


@contextlib.contextmanager
def postgresql() -> Iterator[str | None]:
    """Make a database that is dropped in the end; None if there is no PostgreSQL."""
    import psycopg

    try:
        connection = psycopg.connect(
            host=os.environ.get("PGHOST", "127.0.0.1"),
            port=os.environ.get("PGPORT", "5432"),
            user=os.environ.get("PGUSER", "postgres"),
            dbname=os.environ.get("PGDATABASE", "test"),
            autocommit=True,
            connect_timeout=5,
        )
    except psycopg.OperationalError:
        yield None
        return
    with connection:
        name = f"benchmark_{os.getpid()}_{os.urandom(3).hex()}"
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield name
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
