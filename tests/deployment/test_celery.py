"""Celery's workers, with a real broker: tasks call tools in the pools' processes and threads."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from tests import leftovers
from tests.deployment.broker import BROKER, require_redis
from tests.deployment.sites import SECONDS, Ground, ending, environment, rows_of
from tests.deployment.watching import eventually
from tests.stored import ROOT

pytestmark = pytest.mark.services

WORKER = ("worker", "--loglevel=warning", "--without-gossip", "--without-mingle", "--without-heartbeat")
PREFIX = f"mcp-client-app-{os.getpid()}:"
"""Of everything that a run of the tests writes."""
Answer = tuple[int, str]
"""Who has called, and what the tool has answered."""
Ask = Callable[[dict[str, Any]], list[Any]]
"""Has the process that orders tasks do something."""


@pytest.fixture(scope="module")
def orders() -> Iterator[Ask]:
    """Orders over Redis. Without one the tests are skipped, but not in CI. What was written there goes."""
    with contextlib.closing(redis.Redis.from_url(BROKER)) as client:
        require_redis(client)
        try:
            with subprocess.Popen(
                [sys.executable, "-m", "tests.deployment.ordering"],
                cwd=ROOT,
                env=os.environ | {"TEST_CELERY_PREFIX": PREFIX},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                answers, wishes = process.stdout, process.stdin

                def ask(wish: dict[str, Any]) -> list[Any]:
                    wishes.write(json.dumps(wish) + "\n")
                    wishes.flush()
                    line = answers.readline()
                    assert line, "Celery says nothing; see standard error."
                    found: list[Any] = json.loads(line)
                    return found

                yield ask
        finally:
            for key in client.scan_iter(f"{PREFIX}*"):
                client.delete(key)


@dataclass(frozen=True)
class Worker:
    """A running worker, and its queue: what a killed one has taken from Redis is lost to nobody else."""

    main: subprocess.Popen[bytes]
    queue: str
    ask: Ask

    def send(self, *calls: tuple[str, dict[str, Any]]) -> list[str]:
        """Order calls; return their ids."""
        return self.ask({"send": calls, "queue": self.queue})

    def get(self, ids: Sequence[str]) -> list[Answer]:
        """Wait for answers."""
        answers = self.ask({"get": ids})
        failures = [answer for answer in answers if isinstance(answer, str)]
        assert not failures, failures
        return [(pid, text) for pid, text in answers]

    def call(self, *calls: tuple[str, dict[str, Any]]) -> list[Answer]:
        """Order calls all at once; return the answers in their order."""
        return self.get(self.send(*calls))

    def peers(self, name: str, count: int, old: frozenset[str] = frozenset()) -> dict[int, str]:
        """Call a peer until ``count`` processes have, and none uses one of ``old``; return who uses which."""
        found: dict[int, str] = {}

        def are_there() -> bool:
            ids = self.send(*[(f"{name}__pid", {})] * 4 * count)
            found.clear()
            # A task that Celery has just given to a process that was killed fails.
            found.update(answer for answer in self.ask({"get": ids}) if not isinstance(answer, str))
            return len(found) == count and not old & set(found.values())

        eventually(are_there)
        return found


@contextlib.contextmanager
def worker(orders: Ask, ground: Ground, directory: Path, *flags: str, **variables: str) -> Iterator[Worker]:
    """Run a worker with a database of its own."""
    shutil.copytree(ground.directory, directory, dirs_exist_ok=True)
    with (directory / "log.txt").open("wb") as output:
        main = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "celery",
                "-A",
                "tests.deployment.work",
                *WORKER,
                f"--queues={directory.name}",
                *flags,
            ],
            cwd=ROOT,
            env=environment(directory) | {"TEST_CELERY_PREFIX": PREFIX} | variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        with ending(main):
            yield Worker(main, directory.name, orders)


POOLS = {"prefork": 2, "threads": 1}
"""How many processes of a pool of two call tools."""


@pytest.mark.parametrize("pool", POOLS)
def test_tasks_get_right_replies_follow_edits_and_end_well(
    pool: str, orders: Ask, ground: Ground, tmp_path: Path
):
    go, wire = tmp_path / "go", tmp_path / "wire"
    with worker(orders, ground, tmp_path, f"--pool={pool}", "--concurrency=2") as site:
        wanted = [f"task {number}" for number in range(60)]
        answers = site.call(*[("early__echo", {"text": each}) for each in wanted])
        assert [text for _, text in answers] == wanted
        old = site.peers("early", POOLS[pool])
        assert len(set(old.values())) == POOLS[pool]

        # Saved by another process: followed with the next look.
        [(stored,)] = rows_of(tmp_path, "SELECT args FROM mcp_client_app_serverconfig WHERE name = 'early'")
        arguments = [*json.loads(stored), "--wire-log", str(wire)]
        edit = "UPDATE mcp_client_app_serverconfig SET args = ?, revision = revision + 1 WHERE name = 'early'"
        rows_of(tmp_path, edit, json.dumps(arguments))
        new = site.peers("early", POOLS[pool], frozenset(old.values()))
        assert set(new) == set(old)
        assert leftovers.survivors({int(pid) for pid in old.values()}) == []
        tell = "SELECT pid FROM mcp_client_app_workerprocess"
        eventually(lambda: {pid for (pid,) in rows_of(tmp_path, tell)} == set(new))

        # A warm shutdown: the running task gets its answer, then everything ends.
        waiting = site.send(("early__wait", {"path": str(go)}))
        eventually(lambda: str(go) in wire.read_text())
        started = leftovers.descendants(site.main.pid)
        site.main.send_signal(signal.SIGTERM)
        go.touch()
        [(_, text)] = site.get(waiting)
        assert text == "there"
        assert site.main.wait(SECONDS) == 0
        assert leftovers.survivors(started) == []
        assert rows_of(tmp_path, "SELECT * FROM mcp_client_app_workerprocess") == []


def test_recycled_pool_processes_take_their_servers_along(orders: Ask, ground: Ground, tmp_path: Path):
    with worker(
        orders, ground, tmp_path, "--pool=prefork", "--concurrency=2", "--max-tasks-per-child=5"
    ) as site:
        answers = site.call(*[("early__pid", {})] * 30)
        users = dict(answers)
        assert len(users) >= 6
        # One peer for each process, whatever that process has called.
        assert {(pid, peer) for pid, peer in answers} == set(users.items())
        living = leftovers.descendants(site.main.pid)
        assert leftovers.survivors({int(peer) for pid, peer in users.items() if pid not in living}) == []


@pytest.mark.parametrize("pool", POOLS)
def test_rows_that_wait_are_written_when_a_worker_ends(
    pool: str, orders: Ask, ground: Ground, tmp_path: Path
):
    calls = "SELECT count(*) FROM mcp_client_app_toolcall WHERE server_name = 'early' AND code = 'ok'"
    settings = {"DJANGO_SETTINGS_MODULE": "tests.deployment.batching"}
    with worker(orders, ground, tmp_path, f"--pool={pool}", "--concurrency=2", **settings) as site:
        assert len(site.call(*[("early__echo", {"text": "hi"})] * 20)) == 20
        assert rows_of(tmp_path, calls) == [(0,)]
        site.main.send_signal(signal.SIGTERM)
        assert site.main.wait(SECONDS) == 0

    assert rows_of(tmp_path, calls) == [(20,)]


@pytest.mark.parametrize("killed", ["child", "main", "cold"])
def test_killed_pool_processes_leave_no_server(killed: str, orders: Ask, ground: Ground, tmp_path: Path):
    with worker(orders, ground, tmp_path, "--pool=prefork", "--concurrency=2") as site:
        rows_of(tmp_path, "UPDATE mcp_client_app_serverconfig SET enabled = 1 WHERE name = 'stubborn'")
        peers = site.peers("stubborn", 2)
        child = min(peers)
        started = leftovers.descendants(site.main.pid)
        if killed == "child":
            lost = leftovers.descendants(child)
            os.kill(child, signal.SIGKILL)
            assert leftovers.survivors({child, *lost}) == []
            assert child not in site.peers("stubborn", 2)
            site.main.kill()
        else:
            site.main.send_signal(signal.SIGKILL if killed == "main" else signal.SIGQUIT)
            site.main.wait(SECONDS)
            assert leftovers.survivors(started) == []
