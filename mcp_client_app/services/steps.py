"""Work that is the same for threads and for coroutines: written once, as steps that either can take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from asgiref.sync import sync_to_async

__all__ = ["Step", "Steps", "adrive", "at_once", "drive", "in_thread"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that may block: as a thread does it, and as a coroutine does."""

    now: Callable[[], Any]
    later: Callable[[], Awaitable[Any]]


Steps = Generator[Step, Any, T]


def in_thread(function: Callable[[], T]) -> Step:
    """Return the step of calling what uses the database: for coroutines, in the thread kept for that."""
    return Step(function, sync_to_async(function))


def at_once(function: Callable[[], T]) -> Step:
    """Return the step of calling what neither blocks nor uses the database."""

    async def later() -> T:
        return function()

    return Step(function, later)


def drive(steps: Steps[T]) -> T:
    """Take the steps in this thread; returns what they come to."""
    try:
        step = next(steps)
        while True:
            try:
                value = step.now()
            except BaseException as error:  # noqa: BLE001 - the steps decide
                step = steps.throw(error)
            else:
                step = steps.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def adrive(steps: Steps[T]) -> T:
    """Async twin of ``drive``."""
    try:
        step = next(steps)
        while True:
            try:
                value = await step.later()
            except BaseException as error:  # noqa: BLE001 - the steps decide
                step = steps.throw(error)
            else:
                step = steps.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
