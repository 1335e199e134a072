"""Readers of runs are told that something is new: by this process at once, of others' doings by looking."""

from __future__ import annotations

import asyncio
import gc
import os
import queue
import threading
import uuid
from typing import Any

import pytest
from django.db import OperationalError, transaction
from django.db.backends.signals import connection_created

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentRun
from mcp_client_app.services import run_feed
from mcp_client_app.services.run_feed import Look, Passing, RunFeed, feed
from tests.runs.conftest import NewRun, give_up
from tests.stored import run_process

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 60.0


@pytest.fixture(autouse=True)
def _nobody_watches_at_the_end():
    yield
    while feed._thread is not None:
        pass


@pytest.fixture
def asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the table: what is told, this process tells."""
    monkeypatch.setattr(RunFeed, "_look", lambda self, runs: None)


@pytest.mark.usefixtures("asleep")
def test_what_this_process_stores_is_told_at_once_and_in_order(new_run: NewRun):
    run = new_run()
    with feed.watch(run.pk) as watch:
        services.claim(run.pk, "a")
        feed.pass_on(run.pk, "text.delta", {"text": "x"})
        services.append_events(run.pk, [("round", {}), ("round", {})])
        told = [watch.get(PATIENCE) for _ in range(3)]
    assert told == [Look(1), Passing("text.delta", {"text": "x"}), Look(3)]


def test_all_that_are_watched_are_looked_for_with_one_query():
    runs = AgentRun.objects.bulk_create(AgentRun(agent_name="support", prompt="Go.") for _ in range(100))
    asked: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        asked.put((sql.partition(" ")[0], len(params or ())))
        return execute(sql, params, many, context)

    def watch_connection(connection: Any, **kwargs: Any) -> None:
        if threading.current_thread().name == "mcp-run-feed":
            connection.execute_wrappers[:] = [note]

    connection_created.connect(watch_connection)
    try:
        watches = [feed.watch(run.pk) for run in runs]
        seen = [asked.get(timeout=PATIENCE)]
        while seen[-1] != ("SELECT", len(runs)):  # the first looks may have found fewer
            seen.append(asked.get(timeout=PATIENCE))
    finally:
        connection_created.disconnect(watch_connection)
        for watch in watches:
            watch.close()
    assert {kind for kind, _ in seen} == {"SELECT"}


@pytest.mark.usefixtures("asleep")
def test_what_is_rolled_back_is_not_told(new_run: NewRun):
    run = new_run()
    with feed.watch(run.pk) as watch:
        with transaction.atomic():
            services.append_events(run.pk, [("round", {})])
            assert watch.get(0) is None
            transaction.set_rollback(True)
        services.append_events(run.pk, [("round", {})])
        assert watch.get(PATIENCE) == Look(1)


def test_what_another_process_stores_is_found(new_run: NewRun):
    run = new_run()
    with feed.watch(run.pk) as watch:
        append = f"services.append_events({str(run.pk)!r}, [('round', {{}})] * 3)"
        run_process(f"from mcp_client_app import services\n{append}")
        assert watch.get(PATIENCE) == Look(3)


@pytest.mark.parametrize("what", ["gone", "over", "given up"])
def test_what_its_worker_does_not_tell_is_to_be_looked_at(new_run: NewRun, what: str):
    run = new_run(owner="a")
    with feed.watch(run.pk) as watch:
        assert watch.get(PATIENCE) == Look(1)
        if what == "gone":
            run.delete()
        elif what == "over":
            type(run).objects.update(status=RunStatus.FAILED.value)
        else:
            give_up(run)
        assert watch.get(PATIENCE) == Look()


def test_a_run_that_waits_for_people_is_not_looked_at_again_and_again(new_run: NewRun, monkeypatch: Any):
    monkeypatch.setattr(run_feed, "LONGEST", run_feed.SHORTEST)
    run = new_run(owner="a")
    services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=[])
    looks, enough = [], threading.Event()
    look = RunFeed._look

    def counted(self: RunFeed, runs: Any) -> None:
        look(self, runs)
        looks.append(runs)
        if len(looks) == 5:
            enough.set()

    monkeypatch.setattr(RunFeed, "_look", counted)
    with feed.watch(run.pk) as watch:
        assert enough.wait(PATIENCE)
        assert watch.get(0) == Look(2)
        assert watch.get(0) is None


def test_a_reader_that_takes_nothing_gathers_nothing(new_run: NewRun, monkeypatch: Any):
    monkeypatch.setattr(run_feed, "LONGEST", run_feed.SHORTEST)
    run = new_run(owner="a")
    services.finish(run.pk, "a", RunStatus.COMPLETED)
    looks, enough, go_on = [], threading.Event(), threading.Event()
    look = RunFeed._look

    def counted(self: RunFeed, runs: Any) -> None:
        look(self, runs)
        looks.append(runs)
        if len(looks) == 5:
            enough.set()
            go_on.wait(PATIENCE)

    monkeypatch.setattr(RunFeed, "_look", counted)
    with feed.watch(run.pk) as watch:
        assert enough.wait(PATIENCE)
        assert [watch.get(0), watch.get(0)] == [Look(2), None]
        go_on.set()
        assert watch.get(PATIENCE) == Look()


@pytest.mark.usefixtures("asleep")
def test_who_does_not_listen_is_told_of_what_is_stored_alone(new_run: NewRun):
    run = new_run()
    with feed.watch(run.pk, listens=False) as watch:
        assert not feed.has_listeners(run.pk)
        feed.pass_on(run.pk, "text.delta", {})
        services.append_events(run.pk, [("round", {})])
        assert watch.get(PATIENCE) == Look(1)
        with feed.watch(run.pk):
            assert feed.has_listeners(run.pk)
    assert not feed.has_listeners(run.pk)


@pytest.mark.usefixtures("asleep")
def test_a_watch_that_is_forgotten_ends(new_run: NewRun):
    run = new_run()
    watch = feed.watch(run.pk)
    assert feed.has_listeners(run.pk)
    del watch
    gc.collect()
    assert not feed.has_listeners(run.pk)


@pytest.mark.usefixtures("asleep")
def test_coroutines_wait_on_their_loop(new_run: NewRun):
    run = new_run()

    async def wait() -> list[Any]:
        with feed.watch(run.pk) as watch:
            nothing = await watch.aget(0)
            told = threading.Thread(target=feed.pass_on, args=(run.pk, "text.delta", {}))
            waiting = asyncio.ensure_future(watch.aget(PATIENCE))
            await asyncio.sleep(0)
            told.start()
            found = await waiting
            told.join()
            return [nothing, found]

    assert asyncio.run(wait()) == [None, Passing("text.delta", {})]


@pytest.mark.usefixtures("asleep")
def test_a_reader_whose_loop_has_ended_stops_nobody(new_run: NewRun):
    run = new_run()
    with feed.watch(run.pk) as left, feed.watch(run.pk) as watch:
        asyncio.run(left.aget(0))
        feed.pass_on(run.pk, "text.delta", {})
        assert watch.get(PATIENCE) == Passing("text.delta", {})


def test_a_database_that_is_away_is_told_of_once_and_waited_for(
    new_run: NewRun, monkeypatch: Any, caplog: Any
):
    run, standing = new_run(), run_feed._standing
    failures: list[Any] = []

    def fail(runs: Any) -> Any:
        if len(failures) < 3:
            failures.append(runs)
            raise OperationalError("away")
        return standing(runs)

    monkeypatch.setattr(run_feed, "_standing", fail)
    monkeypatch.setattr(run_feed, "LONGEST", run_feed.SHORTEST)
    services.append_events(run.pk, [("round", {})])
    with feed.watch(run.pk) as watch:
        assert watch.get(PATIENCE) == Look(1)
    assert len(failures) == 3
    assert [record.levelname for record in caplog.records if "looked for" in record.message] == ["ERROR"]


def test_a_forked_child_watches_for_itself():
    with feed.watch(uuid.uuid4()):
        child = os.fork()
        if not child:
            os._exit(0 if feed._thread is None and not feed._watched else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert feed._thread is not None
