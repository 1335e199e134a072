"""What runs at the end of a process that ``atexit`` does not reach.

The real ends of real workers are in tests/deployment.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest
from celery import signals

from mcp_client_app.client import exit_hooks, lifetimes

ROOT = Path(__file__).parents[2]


class Closing:
    """Something to be closed at the end."""

    def __init__(self, name: str, closed: list[str], error: Exception | None = None) -> None:
        self.name, self.closed, self.error = name, closed, error

    def close(self) -> None:
        self.closed.append(self.name)
        if self.error is not None:
            raise self.error


@pytest.fixture(autouse=True)
def _no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what this process has registered out of it."""
    monkeypatch.setattr(exit_hooks, "_closes", {})


def test_a_signal_of_celery_closes_each_once_in_order(caplog: pytest.LogCaptureFixture):
    closed: list[str] = []
    last, first = Closing("last", closed), Closing("first", closed, ValueError("no"))
    exit_hooks.register(last.close, priority=exit_hooks.AFTER_MANAGERS)
    for _ in range(3):  # a manager that is closed and started again registers again
        exit_hooks.register(first.close)

    signals.worker_process_shutdown.send(sender=None, pid=1, exitcode=0)

    assert closed == ["first", "last"]
    assert "could not be closed" in caplog.text


class Dying:
    """Something that lives as long as its process."""

    def __init__(self) -> None:
        self.has_died = False

    def forget(self) -> None:
        """There was no fork."""

    def close_at_exit(self) -> None:
        self.has_died = True
        raise ZeroDivisionError


def test_one_that_cannot_be_closed_keeps_no_other_from_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(lifetimes, "_alive", set())
    several = [Dying(), Dying()]
    for each in several:
        lifetimes.watch(each)

    lifetimes._close_all()

    assert all(each.has_died for each in several)
    assert "ZeroDivisionError" in caplog.text


def test_what_nobody_keeps_is_forgotten():
    exit_hooks.register(Closing("gone", []).close)
    gc.collect()
    assert exit_hooks._closes == {}


def test_a_child_of_multiprocessing_closes_once_at_its_end():
    code = """
import multiprocessing, os
from mcp_client_app.client import exit_hooks

class Telling:
    def close(self):
        os.write(1, b"closed by the child\\n" if os.getpid() != parent else b"closed by the parent\\n")

def child():
    exit_hooks.register(telling.close)
    exit_hooks.register(telling.close)

parent, telling = os.getpid(), Telling()
exit_hooks.register(telling.close)
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
assert process.exitcode == 0
"""
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, stdout=subprocess.PIPE, text=True
    )
    assert result.stdout == "closed by the child\n"


def test_without_celery_and_multiprocessing_neither_is_loaded():
    code = (
        "import sys\n"
        "from mcp_client_app.client import exit_hooks\n"
        "class Closing:\n"
        "    def close(self): pass\n"
        "closing = Closing()\n"
        "exit_hooks.register(closing.close)\n"
        "assert not {'celery', 'multiprocessing'} & set(sys.modules)\n"
    )
    # Bare: a tool that measures coverage would load some of these itself.
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=ROOT, env={})
