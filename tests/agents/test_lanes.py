"""Database connections of the agents' loop: kept while work follows work, closed whenever that ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection
from django.db.backends.signals import connection_created

from mcp_client_app.agents import database
from mcp_client_app.agents.api import run_agent
from mcp_client_app.agents.database import LANES
from mcp_client_app.agents.loop import get_agents_loop
from mcp_client_app.models import AgentConfig
from mcp_client_app.runtime import fork_gate
from tests.agents.scripts import asks, call, says, scripted
from tests.stored import run_process

pytestmark = pytest.mark.django_db(transaction=True)

PATIENT = 3600.0


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """The threads that open connections, in order."""
    seen: list[str] = []

    def note(**kwargs: Any) -> None:
        seen.append(threading.current_thread().name)

    connection_created.connect(note)
    yield seen
    connection_created.disconnect(note)


@pytest.fixture
def patience(monkeypatch) -> Callable[[float], None]:
    """Say how long a lane keeps connections without work."""
    return lambda seconds: monkeypatch.setattr(database, "REST", seconds)


def in_a_lane(*work: Callable[[], Any]) -> list[Any]:
    """Do pieces of work in one lane, one after another; return what they return."""

    async def pieces() -> list[Any]:
        return [await sync_to_async(each)() for each in work]

    return get_agents_loop().run(pieces)


def is_open() -> bool:
    return connection.connection is not None


def look_up() -> bool:
    return AgentConfig.objects.exists()


def test_a_run_connects_once_however_much_it_writes_down(agent, opened, patience):
    patience(PATIENT)
    agent()
    articles = [call("shop__price", article=article) for article in ("tea", "salt", "rice", "oil", "jam")]

    run_agent("clerk", "Go.", model=scripted(asks(*articles), says("3.")))

    assert len([name for name in opened if "agents-db" in name]) == 1


def test_connections_are_kept_from_one_piece_of_work_to_the_next(patience):
    patience(PATIENT)

    assert in_a_lane(look_up, is_open) == [False, True]


def test_the_last_run_of_a_lane_closes_them(patience):
    patience(PATIENT)
    in_a_lane(look_up)

    assert [in_a_lane(is_open) for _ in range(LANES)] == [[False]] * LANES


def test_a_lane_that_rests_closes_them(patience):
    patience(0)

    assert in_a_lane(look_up, is_open) == [False, False]


def test_a_connection_that_has_failed_is_not_used_again(patience):
    patience(PATIENT)

    def fail() -> None:
        with pytest.raises(DatabaseError), connection.cursor() as cursor:
            cursor.execute("SELECT * FROM nowhere")

    assert in_a_lane(fail, is_open) == [None, False]


def test_a_fork_finds_them_closed(patience, monkeypatch):
    monkeypatch.setattr(fork_gate, "PATIENCE", PATIENT)
    patience(PATIENT)
    gate, worked, go_on = fork_gate.gate, threading.Event(), threading.Event()

    async def work() -> list[bool]:
        found = [await sync_to_async(lambda: look_up() or is_open())()]
        worked.set()
        await asyncio.to_thread(go_on.wait, 60)
        return [*found, await sync_to_async(is_open)()]

    found: list[bool] = []
    loop = get_agents_loop()
    runner = threading.Thread(target=lambda: found.extend(loop.run(work)))
    runner.start()
    assert worked.wait(60)
    gate.hold()
    gate.release()
    go_on.set()
    runner.join(60)

    assert found == [True, False]


def test_while_a_fork_waits_no_connection_is_kept(patience, monkeypatch):
    patience(PATIENT)
    monkeypatch.setattr(fork_gate.gate, "is_wanted", True)

    assert in_a_lane(look_up, is_open) == [False, False]


def test_a_child_writes_although_a_run_of_its_parent_goes_on():
    """As with any thread of ours: a connection that is open at the fork would spoil the child's database."""
    printed = run_process("""
import os, threading
from asgiref.sync import sync_to_async
from django.db import connections
from mcp_client_app.agents import database
from mcp_client_app.agents.loop import close_agents_loop, get_agents_loop
from mcp_client_app.models import WorkerProcess

database.REST = 3600
wrote, go_on = threading.Event(), threading.Event()

async def work():
    await sync_to_async(WorkerProcess.objects.create)(host="parent", pid=1)
    wrote.set()
    await sync_to_async(go_on.wait, thread_sensitive=False)(60)

loop = get_agents_loop()
thread = threading.Thread(target=loop.run, args=(work,))
thread.start()
assert wrote.wait(60)
child = os.fork()
if child == 0:
    try:
        WorkerProcess.objects.create(host="child", pid=2)
    finally:
        os._exit(0 if WorkerProcess.objects.filter(host="child").exists() else 1)
assert os.waitpid(child, 0)[1] == 0
go_on.set()
thread.join()
close_agents_loop()
print(sorted(WorkerProcess.objects.values_list("host", flat=True)))
WorkerProcess.objects.all().delete()
connections.close_all()
""")
    assert printed == "['child', 'parent']\n"
