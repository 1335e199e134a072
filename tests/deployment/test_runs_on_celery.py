"""Agents on Celery's workers, some of which are killed: all runs end truthfully, none writes twice."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from tests import leftovers
from tests.deployment.broker import BROKER, require_redis
from tests.deployment.sites import SECONDS, Ground, ending, environment, rows_of
from tests.deployment.test_celery import WORKER
from tests.deployment.watching import eventually
from tests.stored import ROOT

pytestmark = [pytest.mark.services, pytest.mark.timeout(600)]

LONG = 300
"""Seconds for what many runs take."""
Ask = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def prefix() -> Iterator[str]:
    """Of everything that is written to Redis; it goes afterwards."""
    chosen = f"mcp-client-app-runs-{os.getpid()}:"
    with contextlib.closing(redis.Redis.from_url(BROKER)) as client:
        require_redis(client)
        yield chosen
        for key in client.scan_iter(f"{chosen}*"):
            client.delete(key)


@dataclass(frozen=True)
class Office:
    """The database, who orders runs, and where they write."""

    directory: Path
    variables: dict[str, str]
    ask: Ask

    @property
    def written(self) -> list[str]:
        """The lines that the tool has written."""
        path = self.directory / "written.txt"
        return path.read_text().splitlines() if path.exists() else []

    def order(self, name: str, gate: Path) -> dict[str, str]:
        """Return the prompt of a run that goes on once there is a gate."""
        return {"name": name, "path": str(self.directory / "written.txt"), "gate": str(gate)}

    def statuses(self) -> Counter[str]:
        """Return how many runs stand where."""
        counted = rows_of(self.directory, "SELECT status, count(*) FROM mcp_client_app_agentrun GROUP BY 1")
        return Counter(dict(counted))

    def pass_time(self) -> None:
        """Have queued runs wait as long as they are given; the leases of others are shorter."""
        overdue = "UPDATE mcp_client_app_agentrun SET lease_until = '2000-01-01' WHERE status = 'queued'"
        rows_of(self.directory, overdue)

    @contextlib.contextmanager
    def worker(self, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a worker."""
        with (self.directory / "log.txt").open("ab") as output:
            main = subprocess.Popen(
                [
                    *(sys.executable, "-m", "celery", "-A", "tests.deployment.clerks", *WORKER),
                    f"--queues={self.variables['TEST_CELERY_PREFIX']}runs",
                    *flags,
                ],
                cwd=ROOT,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            with ending(main):
                yield main


@pytest.fixture
def office(prefix: str, ground: Ground, tmp_path: Path) -> Iterator[Office]:
    """A site with an agent, on a database of its own, and a process that orders runs."""
    directory = tmp_path / "office"
    shutil.copytree(ground.directory, directory)
    variables = environment(directory) | {
        "DJANGO_SETTINGS_MODULE": "tests.deployment.clerks",
        # A queue for each test: what a killed worker has taken comes back at any time.
        "TEST_CELERY_PREFIX": f"{prefix}{tmp_path.name}:",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "tests.deployment.clerk_orders"],
        cwd=ROOT,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        wishes, answers = process.stdin, process.stdout

        def ask(wish: dict[str, Any]) -> Any:
            wishes.write(json.dumps(wish) + "\n")
            wishes.flush()
            line = answers.readline()
            assert line, "It has ended; see standard error."
            return json.loads(line)

        ask({"prepare": True})
        yield Office(directory, variables, ask)


def test_of_200_runs_on_two_workers_one_of_which_is_killed_all_end_and_none_writes_twice(office: Office):
    opened, gate = office.directory, office.directory / "gate"
    first = [office.order(f"run {number}", opened) for number in range(80)]
    held = [office.order(f"run {number}", gate) for number in range(80, 84)]
    last = [office.order(f"run {number}", opened) for number in range(84, 200)]
    with office.worker("--concurrency=2") as killed, office.worker("--concurrency=2"):
        office.ask({"start": [*first, *held, *last]})
        eventually(lambda: {f"run {number} 1" for number in range(80, 84)} <= set(office.written), LONG)
        started = leftovers.descendants(killed.pid)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait(SECONDS)
        # What it had begun was done, and nobody was told. Two of the runs are those of the other worker.
        assert leftovers.survivors(started) == []
        gate.touch()

        def all_are_over() -> bool:
            office.pass_time()
            office.ask({"reap": True})
            return set(office.statuses()) == {"completed"}

        eventually(all_are_over, LONG)

    assert office.statuses() == {"completed": 200}
    lines = Counter(office.written)
    assert lines == {f"run {number} {part}": 1 for number in range(200) for part in (1, 2)}
    texts = Counter(text for (text,) in rows_of(office.directory, "SELECT text FROM mcp_client_app_agentrun"))
    assert texts.pop("written / written") == 198
    [(unknown, count)] = texts.items()
    assert count == 2
    assert "unknown" in unknown
    assert unknown.endswith(" / written")
    calls = "SELECT status, count(*) FROM mcp_client_app_runcall GROUP BY 1"
    assert dict(rows_of(office.directory, calls)) == {"done": 398, "unknown": 2}
    gaps = "SELECT count(*) FROM mcp_client_app_agentevent GROUP BY run_id HAVING count(*) != max(number)"
    assert rows_of(office.directory, gaps) == []


def test_the_run_of_a_pool_process_that_is_killed_goes_on_by_itself(office: Office):
    gate = office.directory / "gate"
    with office.worker("--concurrency=1") as main:
        office.ask({"start": [office.order("run", gate)]})
        eventually(lambda: office.written == ["run 1"])
        owner = "SELECT lease_owner FROM mcp_client_app_agentrun"
        [(name,)] = rows_of(office.directory, owner)
        child = int(name.split(":")[1])
        assert child in leftovers.descendants(main.pid)
        os.kill(child, signal.SIGKILL)
        gate.touch()
        eventually(lambda: office.statuses() == {"completed": 1})

    assert office.written == ["run 1", "run 2"]
    [(attempts, text)] = rows_of(office.directory, "SELECT attempts, text FROM mcp_client_app_agentrun")
    assert attempts == 2
    assert "unknown" in text


@pytest.mark.parametrize(
    "flags", [("--pool=prefork", "--concurrency=1"), ("--pool=threads", "--concurrency=8")], ids=" ".join
)
def test_a_run_is_cancelled_from_another_process(flags: tuple[str, ...], office: Office):
    never = office.directory / "never"
    with office.worker(*flags):
        [run] = office.ask({"start": [office.order("run", never)]})
        eventually(lambda: office.written == ["run 1"])
        assert office.ask({"cancel": run}) == "running"
        eventually(lambda: office.statuses() == {"cancelled": 1})

    assert office.written == ["run 1"]
    [(status,)] = rows_of(office.directory, "SELECT status FROM mcp_client_app_runcall")
    assert status == "unknown"
    kinds = "SELECT kind FROM mcp_client_app_agentevent ORDER BY number DESC LIMIT 1"
    assert rows_of(office.directory, kinds) == [("run.cancelled",)]
