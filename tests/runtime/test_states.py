"""The rows in which a process tells how its connections stand."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.datatypes import ConnectionState, ServerStatus, Transport
from mcp_client_app.models import ServerConfig, ServerState, WorkerProcess
from mcp_client_app.runtime import close_mcp_manager, get_mcp_manager, worker_states
from mcp_client_app.runtime.observer import DjangoObserver
from tests.stored import stored

pytestmark = pytest.mark.django_db(transaction=True)


def told() -> None:
    """Wait until what has happened is written."""
    engine = get_mcp_manager()._engine
    assert engine is not None
    assert engine.flush_callbacks(20)


def status(name: str = "peer", state: ConnectionState = ConnectionState.READY, **fields) -> ServerStatus:
    return ServerStatus(name=name, transport=Transport.STDIO, state=state, **fields)


# Written ---------------------------------------------------------------------------------


@pytest.mark.parametrize("zones", [True, False])
def test_a_connection_writes_how_it_stands(settings, zones):
    settings.USE_TZ = zones
    stored("peer")

    get_mcp_manager().connect("peer")
    told()

    worker = WorkerProcess.objects.get()
    state = ServerState.objects.get()
    assert (worker.pid, worker.is_alive()) == (os.getpid(), True)
    assert (state.worker, state.server.name, state.state) == (worker, "peer", "ready")
    assert (state.principal, state.server_name, state.link) == ("shared", "faulty", "own")
    assert state.tools == 13
    assert state.revision == ServerConfig.objects.get().revision


def test_a_failure_is_written_with_reason_and_code():
    stored("peer", command="surely-no-such-program")

    services.connect_all()
    told()

    state = ServerState.objects.get()
    assert (state.state, state.code) == ("failed", "configuration")
    assert "surely-no-such-program" in state.reason


def test_a_stop_is_written():
    stored("peer")
    get_mcp_manager().connect("peer")

    services.disconnect("peer")
    told()

    assert ServerState.objects.get().state == "stopped"


def test_an_edited_server_is_idle_until_its_next_use():
    row = stored("peer")
    get_mcp_manager().connect("peer")
    row.env = {"A": "1"}
    row.save()

    get_mcp_manager().call_tool("peer__pid")
    told()
    assert ServerState.objects.get().state == "ready"

    row.disable()
    with pytest.raises(LookupError):
        get_mcp_manager().call_tool("pid", server="peer")
    get_mcp_manager().release("peer", "shared")  # returns once the old connection is closed
    told()
    assert ServerState.objects.get().state == "idle"


def test_a_connection_of_a_block_of_code_is_nobody_elses_business():
    stored("peer")

    with get_mcp_manager().connect_server("peer"):
        told()
    assert services.test_server("peer").ok
    told()

    assert not ServerState.objects.exists()


def test_a_report_is_one_transaction_that_begins_with_a_write():
    stored("peer")
    observer = DjangoObserver()

    for first in ("INSERT", "UPDATE"):
        with CaptureQueriesContext(connection) as captured:
            observer.state_changed(status())
        verbs = [query["sql"].split()[0] for query in captured]
        assert verbs[:2] == ["BEGIN", first]
        assert verbs.count("BEGIN") == 1


def test_the_rows_go_with_the_manager():
    stored("peer")
    get_mcp_manager().connect("peer")
    told()
    assert ServerState.objects.exists()

    close_mcp_manager()

    assert not ServerState.objects.exists()
    assert not WorkerProcess.objects.exists()


def test_a_write_that_comes_through_after_the_end_leaves_no_rows(monkeypatch):
    monkeypatch.setattr(worker_states, "PATIENCE", 0.05)
    stored("peer")
    states = worker_states.WorkerStates()
    # Another thread holds the database, so that the write hangs.
    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        ServerConfig.objects.update(label="busy")
        writing = threads.submit(recorded_and_closed, states)
        while not states._lock.locked():
            assert not writing.done()

        states.leave()

    writing.result(30)
    assert not WorkerProcess.objects.exists()


def recorded_and_closed(states: worker_states.WorkerStates) -> None:
    try:
        states.record(status())
    finally:
        connections.close_all()


def test_a_site_may_do_without(settings):
    settings.MCP_CLIENT_RECORD_STATES = False
    stored("peer")

    get_mcp_manager().connect("peer")
    told()

    assert not WorkerProcess.objects.exists()


def test_the_states_of_live_processes_can_be_asked_for():
    server = stored("peer")
    alive = WorkerProcess.objects.create(host="a", pid=1)
    gone = WorkerProcess.objects.create(host="b", pid=2, seen_at=timezone.now() - timedelta(hours=1))
    for worker in (alive, gone):
        ServerState.objects.create(worker=worker, server=server, state="ready")

    assert [state.worker.host for state in services.worker_states()] == ["a"]
    assert [state.worker.host for state in services.worker_states("PEER")] == ["a"]
    assert services.worker_states("other") == []


# The sign of life -------------------------------------------------------------------------


def test_each_minute_the_process_says_that_it_lives_and_clears_away_the_dead():
    stored("peer")
    observer = DjangoObserver()
    observer.state_changed(status())
    long_ago = timezone.now() - timedelta(minutes=2)
    WorkerProcess.objects.update(seen_at=long_ago)
    WorkerProcess.objects.create(host="dead", pid=1, seen_at=timezone.now() - timedelta(hours=1))

    observer.tick()

    worker = WorkerProcess.objects.get()
    assert worker.host != "dead"
    assert worker.seen_at > long_ago


def test_a_process_that_was_taken_for_dead_tells_everything_again():
    stored("one")
    stored("two")
    observer = DjangoObserver()
    observer.state_changed(status("one"))
    observer.state_changed(status("two", ConnectionState.LOST))
    WorkerProcess.objects.all().delete()
    assert not ServerState.objects.exists()

    observer.tick()

    states = dict(ServerState.objects.values_list("server__name", "state"))
    assert states == {"one": "ready", "two": "lost"}


def test_a_server_that_is_gone_has_no_state():
    observer = DjangoObserver()

    observer.state_changed(status("nobody"))

    assert not ServerState.objects.exists()


def test_nothing_is_written_after_the_end():
    stored("peer")
    observer = DjangoObserver()
    observer.state_changed(status())
    observer.closed()

    observer.state_changed(status(state=ConnectionState.STOPPED))

    assert not WorkerProcess.objects.exists()


@pytest.mark.anyio
async def test_an_end_on_an_event_loop_leaves_the_rows_to_expire(caplog):
    observer = DjangoObserver()
    observer.closed()

    assert caplog.text == ""


def test_what_servers_say_is_made_to_fit():
    stored("peer")

    DjangoObserver().state_changed(
        status(reason="nul \0 and half a \ud800 character", server_name="x" * 500, server_version="\0" * 300)
    )

    state = ServerState.objects.get()
    assert "\0" not in state.reason
    assert len(state.server_name) == 200
    assert state.server_version == "�" * 200


# Failures ------------------------------------------------------------------------------------


def test_a_database_that_fails_costs_neither_the_call_nor_the_signal(caplog):
    """States are written on other threads: make every new connection of theirs fail."""
    stored("peer")

    def failing(execute, sql, params, many, context):
        if "workerprocess" in sql or "serverstate" in sql:
            raise OperationalError("the database is away")
        return execute(sql, params, many, context)

    def install(connection, **kwargs):
        connection.execute_wrappers.append(failing)

    from django.db.backends.signals import connection_created

    connection_created.connect(install)
    try:
        assert get_mcp_manager().call_tool("peer__echo", {"text": "hi"}).text == "hi"
        told()
    finally:
        connection_created.disconnect(install)
        connections["default"].execute_wrappers.clear()
    assert "could not be recorded: OperationalError" in caplog.text
    assert not WorkerProcess.objects.exists()
