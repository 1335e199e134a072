from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.models import ServerConfig, ServerState, WorkerProcess

pytestmark = pytest.mark.django_db


def worker(**fields) -> WorkerProcess:
    return WorkerProcess.objects.create(**{"host": "web", "pid": 7, **fields})


def test_a_worker_lives_while_it_was_seen_in_the_last_three_minutes():
    now = timezone.now()
    fresh = worker(pid=1, seen_at=now - timedelta(seconds=180))
    stale = worker(pid=2, seen_at=now - timedelta(seconds=181))

    assert list(WorkerProcess.objects.alive(now)) == [fresh]
    assert list(WorkerProcess.objects.gone(now)) == [stale]
    assert (fresh.is_alive(now), stale.is_alive(now)) == (True, False)


def test_a_worker_that_reports_lives_again():
    stale = worker(seen_at=timezone.now() - timedelta(days=1))

    stale.touch()

    assert list(WorkerProcess.objects.alive()) == [stale]
    assert not WorkerProcess.objects.gone().exists()
    assert str(stale) == "web:7"


def test_two_processes_may_share_host_and_pid_but_not_the_start():
    moment = timezone.now()
    worker(started_at=moment)
    worker(started_at=moment + timedelta(seconds=1))

    with pytest.raises(IntegrityError), transaction.atomic():
        worker(started_at=moment)


def test_a_state_counts_while_its_worker_lives():
    server = ServerConfig.objects.create(name="a", command="x")
    alive, dead = worker(pid=1), worker(pid=2, seen_at=timezone.now() - timedelta(hours=1))
    state = ServerState.objects.create(worker=alive, server=server, state="ready")
    ServerState.objects.create(worker=dead, server=server, state="ready")

    assert list(ServerState.objects.current()) == [state]
    assert str(state) == "a: ready"


def test_there_is_one_state_for_each_worker_server_and_principal():
    server, process = ServerConfig.objects.create(name="a", command="x"), worker()
    ServerState.objects.create(worker=process, server=server)
    ServerState.objects.create(worker=process, server=server, principal="ada")

    with pytest.raises(IntegrityError), transaction.atomic():
        ServerState.objects.create(worker=process, server=server)


def test_states_go_with_their_worker_and_their_server():
    server, process = ServerConfig.objects.create(name="a", command="x"), worker()
    ServerState.objects.create(worker=process, server=server)
    process.delete()
    assert not ServerState.objects.exists()

    ServerState.objects.create(worker=worker(), server=server)
    server.delete()
    assert not ServerState.objects.exists()


def test_choices_cover_every_state_of_the_core():
    assert [value for value, _ in ServerState.STATES] == list(ConnectionState)
