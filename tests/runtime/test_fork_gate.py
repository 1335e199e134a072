"""Forks wait for the database work of our threads."""

from __future__ import annotations

import threading

import pytest

from mcp_client_app.runtime import fork_gate
from mcp_client_app.runtime.fork_gate import ForkGate
from tests.stored import run_process


def in_thread(work) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.fixture
def gate() -> ForkGate:
    return ForkGate()


def test_a_fork_waits_until_nobody_is_inside(gate):
    happened, entered, leave = [], threading.Event(), threading.Event()

    def work() -> None:
        with gate.no_fork():
            entered.set()
            assert leave.wait(60)
            happened.append("left")

    def fork() -> None:
        gate.hold()
        happened.append("forked")
        gate.release()

    worker = in_thread(work)
    assert entered.wait(60)
    forker = in_thread(fork)
    while not gate._condition._waiters:
        assert forker.is_alive()
    leave.set()
    for thread in (worker, forker):
        thread.join(60)
    assert happened == ["left", "forked"]


def test_while_a_process_forks_nobody_gets_inside(gate):
    happened, started = [], threading.Event()

    def work() -> None:
        started.set()
        with gate.no_fork():
            happened.append("inside")

    gate.hold()
    worker = in_thread(work)
    assert started.wait(60)
    happened.append("forked")
    gate.release()
    worker.join(60)
    assert happened == ["forked", "inside"]


def test_whoever_is_inside_may_fork(gate, monkeypatch):
    monkeypatch.setattr(fork_gate, "PATIENCE", 3600)
    with gate.no_fork():
        with gate.no_fork():
            pass
        gate.hold()
        gate.release()


def test_a_fork_does_not_wait_for_ever(gate, monkeypatch):
    monkeypatch.setattr(fork_gate, "PATIENCE", 0.01)
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with gate.no_fork():
            entered.set()
            assert leave.wait(60)

    worker = in_thread(work)
    assert entered.wait(60)
    gate.hold()
    gate.release()
    leave.set()
    worker.join(60)


@pytest.mark.django_db(transaction=True)
def test_a_child_finds_the_database_as_it_is_although_a_thread_was_writing():
    """Without the gate the child takes the lock of its parent's thread for its own and waits in vain."""
    printed = run_process("""
import os, threading
from django.db import connections, transaction
from mcp_client_app.models import WorkerProcess
from mcp_client_app.runtime.options import with_database_closed

writing, go_on = threading.Event(), threading.Event()

def write():
    with transaction.atomic():
        WorkerProcess.objects.create(host="parent", pid=1)
        writing.set()
        assert go_on.wait(60)

thread = threading.Thread(target=with_database_closed, args=(write,))
thread.start()
assert writing.wait(60)
# Registered last, so called first: the fork has begun when the thread may go on.
os.register_at_fork(before=go_on.set)
child = os.fork()
if child == 0:
    try:
        connections["default"].settings_dict["OPTIONS"]["timeout"] = 1
        WorkerProcess.objects.create(host="child", pid=2)
    finally:
        os._exit(0 if WorkerProcess.objects.filter(host="child").exists() else 1)
assert os.waitpid(child, 0)[1] == 0
thread.join()
print(sorted(WorkerProcess.objects.values_list("host", flat=True)))
WorkerProcess.objects.all().delete()
connections.close_all()
""")
    assert printed == "['child', 'parent']\n"
