from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mcp_client_app.client.callbacks import CallbackExecutor
from tests.client.peers import PATIENCE, Gate

Make = Callable[..., CallbackExecutor]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[CallbackExecutor] = []

    def make(threads: int = 4, queue_size: int = 1000, **options: Any) -> CallbackExecutor:
        made.append(CallbackExecutor(threads=threads, queue_size=queue_size, **options))
        return made[-1]

    yield make
    for executor in made:
        executor.close(PATIENCE)


def test_callbacks_of_one_key_keep_their_order_and_never_overlap(make: Make):
    executor = make()
    seen: dict[str, list[int]] = {key: [] for key in "abc"}
    running: set[str] = set()

    def note(key: str, number: int) -> None:
        assert key not in running
        running.add(key)
        seen[key].append(number)
        running.discard(key)

    for number in range(300):
        for key in seen:
            executor.post(key, lambda key=key, number=number: note(key, number))  # type: ignore[misc]
    assert executor.flush(PATIENCE)
    assert seen == {key: list(range(300)) for key in "abc"}


def test_a_slow_callback_delays_its_own_key_only(make: Make):
    executor = make(threads=2)
    gate, other, same = Gate(), threading.Event(), threading.Event()
    executor.post("slow", gate)
    executor.post("slow", same.set)
    executor.post("other", other.set)
    assert other.wait(PATIENCE)
    assert not same.is_set()
    gate.open()
    assert same.wait(PATIENCE)


def test_idle_threads_that_were_called_already_are_not_counted_on_twice(make: Make):
    executor = make(threads=3)
    executor.post("warm", threading.Event().set)
    assert executor.flush(PATIENCE)
    # One thread is idle now. Both of these must run at once, though both are posted before it wakes.
    both = threading.Barrier(2)

    def meet() -> None:
        both.wait(PATIENCE)

    with executor._condition:
        executor.post("a", meet)
        executor.post("b", meet)
    assert executor.flush(PATIENCE)
    assert not both.broken


def test_there_are_never_more_threads_than_allowed(make: Make):
    executor = make(threads=2)
    gate = Gate()
    names: set[int] = set()

    def note() -> None:
        names.add(threading.get_ident())
        gate()

    for key in "abcdef":
        executor.post(key, note)
    gate.wait_until_entered()
    gate.open()
    assert executor.flush(PATIENCE)
    assert len(names) <= 2


def test_a_full_queue_drops_its_oldest_and_counts(make: Make):
    executor = make(queue_size=3)
    gate = Gate()
    seen: list[int] = []
    executor.post("a", gate)
    gate.wait_until_entered()
    for number in range(10):
        executor.post("a", lambda number=number: seen.append(number))  # type: ignore[misc]
    gate.open()
    assert executor.flush(PATIENCE)
    assert seen == [7, 8, 9]
    assert executor.dropped == {"a": 7}


def test_a_failing_callback_is_logged_and_the_next_one_runs(make: Make, caplog: pytest.LogCaptureFixture):
    executor = make()
    ran = threading.Event()

    def fail() -> None:
        raise ZeroDivisionError

    executor.post("key-of-the-server", fail)
    executor.post("key-of-the-server", ran.set)
    assert ran.wait(PATIENCE)
    assert "'key-of-the-server' failed" in caplog.text


def test_every_callback_is_wrapped(make: Make):
    wrapped: list[str] = []

    def around(callback: Callable[[], None]) -> None:
        wrapped.append("before")
        callback()
        wrapped.append("after")

    executor = make(around=around)
    executor.post("a", lambda: wrapped.append("within"))
    assert executor.flush(PATIENCE)
    assert wrapped == ["before", "within", "after"]


def test_flushing_does_not_wait_for_ever(make: Make):
    executor = make()
    gate = Gate()
    executor.post("a", gate)
    assert not executor.flush(0.01)
    gate.open()
    assert executor.flush(PATIENCE)


def test_closing_runs_what_is_queued_and_takes_nothing_more(make: Make):
    executor = make(threads=1)
    seen: list[int] = []
    for number in range(20):
        executor.post(f"{number}", lambda number=number: seen.append(number))  # type: ignore[misc]
    executor.close(PATIENCE)
    assert seen == list(range(20))
    executor.post("late", lambda: seen.append(-1))
    assert seen == list(range(20))
    assert not [thread for thread in threading.enumerate() if thread.name == "mcp-callback"]


def test_a_callback_may_close_the_executor_that_runs_it(make: Make):
    executor = make()
    closed = threading.Event()

    def close() -> None:
        executor.close(PATIENCE)
        closed.set()

    executor.post("a", close)
    assert closed.wait(PATIENCE)


def test_a_forked_child_posts_into_nothing(make: Make):
    executor = make()
    child = os.fork()
    if child == 0:
        executor.post("a", lambda: os._exit(1))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
