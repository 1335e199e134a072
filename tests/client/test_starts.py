from __future__ import annotations

import asyncio

import pytest

from mcp_client_app.client import starts
from mcp_client_app.client.starts import StartSlots

pytestmark = pytest.mark.anyio


async def test_a_slot_is_waited_for_and_given_back_once():
    slots = StartSlots(1)
    release = await slots.acquire()
    waiting = asyncio.create_task(slots.acquire())
    await asyncio.sleep(0)
    assert not waiting.done()
    release()
    release()  # again does no harm: there is still one slot
    second = await waiting
    third = asyncio.create_task(slots.acquire())
    await asyncio.sleep(0)
    assert not third.done()
    second()
    (await third)()


async def test_a_start_that_takes_long_gives_its_slot_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(starts, "LONGEST", 0.0)
    slots = StartSlots(1)
    await slots.acquire()
    async with asyncio.timeout(20):
        await slots.acquire()


async def test_there_is_always_one_slot():
    (await StartSlots(0).acquire())()
