"""Async twins: the same, off the event loop."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from mcp_client_app import services
from tests.approvals.cases import BUY, GIVEN, question, run_of, user
from tests.stored import close_connections

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.anyio]


async def test_a_call_is_asked_for_approved_and_used_from_coroutines():
    ann = await sync_to_async(user)("ann")
    run = await sync_to_async(run_of)(ann)
    place: dict[str, Any] = {"user": ann, "run": run, "call_id": "c1"}
    row = await services.arequest_approval("support", BUY, GIVEN, **place)
    assert await services.alist_approvals(ann) == [row]
    assert (await services.aget_approval(row.pk, ann)) == row
    await services.aapprove(row.pk, user=ann)
    use: dict[str, Any] = {"toolset_name": "support", "tool": BUY, "given": GIVEN, **place}
    assert await services.ause_approval(row.pk, **use) == GIVEN

    asked = await services.arequest_input("support", question(), GIVEN, tool=BUY, **place)
    await services.aanswer_input(asked.pk, user=ann, responses={"colour": {"action": "decline"}})
    state = await services.aapproval_state(run)
    assert state.decisions["c1"].input_responses == {"colour": {"action": "decline"}}

    other = await services.arequest_approval("support", BUY, GIVEN, user=ann)
    await services.adeny(other.pk, user=ann)
    assert await services.aexpire_approvals() == 0
    await close_connections()
