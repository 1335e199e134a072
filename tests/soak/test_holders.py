"""Who holds an object is told, the odd ones first."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from tests.soak import holders

PLACE: list[Any] = []
"""A place that lives as long as the process."""


class Thing:
    """Something that should be gone."""


async def _wait_with(thing: Thing) -> None:
    await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def _clear() -> Any:
    yield
    PLACE.clear()


def told() -> list[str]:
    """Return the ways to all things; these have no name here, which would be the shortest way."""
    return holders.ways([each for each in gc.get_objects() if type(each) is Thing])


def test_the_way_from_what_lives_on_is_told():
    PLACE.append({"here": Thing()})

    (line,) = told()
    assert line == f"1 such: Thing, held by dict[here] < list < dict[PLACE] < module {__name__}"


@pytest.mark.anyio
async def test_a_task_that_was_cancelled_is_told_with_the_frame_that_it_keeps():
    task = asyncio.ensure_future(_wait_with(Thing()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    PLACE.append(task)
    del task

    (line,) = told()
    assert "held by frame _wait_with:" in line
    assert "[thing] < traceback < CancelledError < cancelled task" in line
    assert line.endswith(f"< list < dict[PLACE] < module {__name__}")


def test_what_is_held_unlike_the_others_comes_first():
    PLACE.append([Thing() for _ in range(3)])
    PLACE.append({"odd": Thing()})

    odd, others = told()
    assert odd.startswith("1 such: Thing, held by dict[odd]")
    assert others.startswith("3 such: Thing, held by list < list")
