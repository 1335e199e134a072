from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mcp_client_app.client.loop import EventRelay, LoopThread, forbid_running_loop
from mcp_client_app.exceptions import AsyncContextError, ManagerClosedError
from tests.client.peers import PATIENCE, Gate

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread("mcp-test-loop")
    yield thread
    thread.stop()


async def where() -> str:
    return threading.current_thread().name


async def fail() -> None:
    raise KeyError("what")


# Handing over ------------------------------------------------------------------------


def test_threads_and_coroutines_get_results_of_the_loop_thread(loop: LoopThread):
    assert loop.run(where) == "mcp-test-loop"
    assert asyncio.run(loop.arun(where)) == "mcp-test-loop"


def test_exceptions_come_to_whoever_waits(loop: LoopThread):
    with pytest.raises(KeyError, match="what"):
        loop.run(fail)
    with pytest.raises(KeyError, match="what"):
        asyncio.run(loop.arun(fail))


def test_something_that_is_no_coroutine_fails_its_caller_only(loop: LoopThread):
    with pytest.raises(TypeError):
        loop.run(lambda: 5)  # type: ignore[arg-type,return-value]
    assert loop.run(where) == "mcp-test-loop"


def test_jobs_start_in_an_empty_context(loop: LoopThread):
    async def look() -> str:
        return variable.get()

    variable.set("of this request")
    assert loop.run(look) == "unset"

    async def from_a_coroutine() -> str:
        variable.set("of that request")
        return await loop.arun(look)

    assert asyncio.run(from_a_coroutine()) == "unset"


def test_many_threads_and_loops_get_their_own_results(loop: LoopThread, threads: ThreadPoolExecutor):
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    def from_a_thread(start: int) -> list[int]:
        return [loop.run(lambda n=n: double(n)) for n in range(start, start + 50)]  # type: ignore[misc]

    async def several(start: int) -> list[int]:
        return await asyncio.gather(*(loop.arun(lambda n=n: double(n)) for n in range(start, start + 50)))  # type: ignore[misc]

    jobs = [threads.submit(from_a_thread, n) for n in range(10)]
    jobs += [threads.submit(asyncio.run, several(n)) for n in range(10)]
    expected = [[2 * n for n in range(start, start + 50)] for start in range(10)]
    assert [job.result(PATIENCE) for job in jobs] == expected * 2


def test_a_coroutine_on_the_loop_itself_takes_no_detour(loop: LoopThread):
    async def inner() -> str:
        return await loop.arun(where)

    assert loop.run(inner) == "mcp-test-loop"


def test_the_loop_never_waits_for_itself(loop: LoopThread):
    async def wait_for_ourselves() -> str:
        return loop.run(where)

    with pytest.raises(AsyncContextError, match="cannot wait for itself"):
        loop.run(wait_for_ourselves)


def test_a_failing_callback_does_not_hold_up_the_next_one(loop: LoopThread, caplog: pytest.LogCaptureFixture):
    gate, ran = Gate(), threading.Event()

    def fail() -> None:
        raise ZeroDivisionError

    loop.call_soon(gate)
    gate.wait_until_entered()
    loop.call_soon(fail)
    loop.call_soon(ran.set)
    gate.open()
    assert ran.wait(PATIENCE)
    assert "ZeroDivisionError" in caplog.text


# Cancelling --------------------------------------------------------------------------


class Hanging:
    """A coroutine that hangs, and what becomes of it."""

    def __init__(self) -> None:
        self.started, self.cancelled = threading.Event(), threading.Event()

    async def __call__(self) -> None:
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


def test_cancelling_the_waiting_coroutine_cancels_the_job(loop: LoopThread):
    hanging = Hanging()

    async def give_up() -> None:
        waiting = asyncio.create_task(loop.arun(hanging))
        await asyncio.to_thread(hanging.started.wait, PATIENCE)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(give_up())
    assert hanging.cancelled.wait(PATIENCE)


def test_an_interrupted_thread_cancels_the_job(loop: LoopThread):
    hanging = Hanging()

    def interrupt(event: Any) -> None:
        raise KeyboardInterrupt

    relay = EventRelay(interrupt)

    async def start() -> None:
        relay.put("now")
        await hanging()

    with pytest.raises(KeyboardInterrupt):
        loop.run(start, relay)
    assert hanging.cancelled.wait(PATIENCE)


def test_a_job_that_is_cancelled_before_its_turn_never_begins(loop: LoopThread):
    gate = Gate()
    begun: list[str] = []

    async def begin() -> None:
        begun.append("begun")

    async def give_up_early() -> None:
        loop.call_soon(gate)
        gate.wait_until_entered()
        waiting = asyncio.create_task(loop.arun(begin))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        gate.open()

    asyncio.run(give_up_early())
    loop.run(where)  # by now all that was handed over before has been dealt with
    assert begun == []


# Events ------------------------------------------------------------------------------


def counting(relay: EventRelay, count: int) -> Callable[[], Any]:
    async def count_up() -> str:
        for number in range(count):
            relay.put(number)
            if number % 7 == 0:
                await asyncio.sleep(0)
        return "end"

    return count_up


def test_events_come_in_order_before_the_end_in_the_waiting_thread(loop: LoopThread):
    for _ in range(50):
        seen: list[tuple[int, str]] = []

        def note(number: int, seen: list[tuple[int, str]] = seen) -> None:
            seen.append((number, threading.current_thread().name))

        relay = EventRelay(note)
        assert loop.run(counting(relay, 30), relay) == "end"
        assert seen == [(n, threading.current_thread().name) for n in range(30)]


def test_events_come_in_order_before_the_end_on_the_waiting_loop(loop: LoopThread):
    async def wait() -> None:
        for _ in range(50):
            seen: list[int] = []

            async def note(number: int, seen: list[int] = seen) -> None:
                await asyncio.sleep(0)
                seen.append(number)

            relay = EventRelay(note)
            assert await loop.arun(counting(relay, 30), relay) == "end"
            assert seen == list(range(30))

    asyncio.run(wait())


def test_of_too_many_events_the_oldest_are_dropped(loop: LoopThread):
    seen: list[int] = []
    relay = EventRelay(seen.append, size=5)

    async def burst() -> None:
        for number in range(100):
            relay.put(number)

    loop.run(burst, relay)
    assert seen[-5:] == [95, 96, 97, 98, 99]
    assert seen == sorted(seen)


def test_a_failing_event_callback_is_logged(loop: LoopThread, caplog: pytest.LogCaptureFixture):
    def fail(event: Any) -> None:
        raise ZeroDivisionError

    relay = EventRelay(fail)
    assert loop.run(counting(relay, 2), relay) == "end"
    relay = EventRelay(fail)
    assert asyncio.run(loop.arun(counting(relay, 2), relay)) == "end"
    assert caplog.text.count("A progress callback failed") == 4


# The end -----------------------------------------------------------------------------


def test_whoever_waits_when_the_loop_stops_is_told(threads: ThreadPoolExecutor):
    loop = LoopThread("mcp-test-loop")
    jobs = [Hanging() for _ in range(3)]
    waiting = [
        threads.submit(loop.run, jobs[0]),
        threads.submit(loop.run, jobs[1], EventRelay(print)),
        threads.submit(asyncio.run, loop.arun(jobs[2])),
    ]
    for job in jobs:
        assert job.started.wait(PATIENCE)
    loop.stop()
    for each in waiting:
        assert isinstance(each.exception(PATIENCE), ManagerClosedError)
    assert all(job.cancelled.is_set() for job in jobs)
    assert loop.loop.is_closed()


def test_a_stopped_loop_takes_nothing_and_can_be_stopped_again():
    loop = LoopThread("mcp-test-loop")
    loop.stop()
    loop.stop()
    assert not loop.is_alive
    with pytest.raises(ManagerClosedError):
        loop.run(where)
    with pytest.raises(ManagerClosedError):
        asyncio.run(loop.arun(where))
    with pytest.raises(ManagerClosedError):
        loop.call_soon(lambda: None)


def test_a_loop_can_be_stopped_by_a_thread_that_runs_a_loop_itself():
    loop = LoopThread("mcp-test-loop")

    async def stop() -> None:
        loop.stop()

    asyncio.run(stop())
    assert loop.loop.is_closed()


def test_tasks_that_were_left_are_cancelled_and_their_farewell_is_heard():
    loop = LoopThread("mcp-test-loop")
    left = Hanging()

    async def leave() -> None:
        loop.loop.left = asyncio.create_task(left())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    loop.run(leave)
    loop.stop()
    assert left.cancelled.is_set()


# Sync verbs on a loop ----------------------------------------------------------------


def test_a_blocking_verb_is_forbidden_on_a_running_loop(monkeypatch: pytest.MonkeyPatch):
    async def block() -> None:
        forbid_running_loop("call_tool")

    forbid_running_loop("call_tool")
    with pytest.raises(AsyncContextError, match="'await acall_tool"):
        asyncio.run(block())
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    asyncio.run(block())
