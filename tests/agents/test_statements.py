"""What a run asks of the database: so much for each call, and nothing twice."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.db.backends.signals import connection_created

from mcp_client_app.agents.api import run_agent
from mcp_client_app.agents.loop import get_agents_loop
from mcp_client_app.agents.telling import Telling
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import RunStateError
from mcp_client_app.models import AgentEvent, AgentRun
from mcp_client_app.services.run_leases import claim, finish
from tests.agents.scripts import asks, call, says, scripted

ARTICLES = ("tea", "salt", "rice", "oil", "jam", "corn")


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """What is sent over connections that are opened while the test runs, as those of a run are."""
    seen: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    def watch(connection: Any, **kwargs: Any) -> None:
        if note not in connection.execute_wrappers:
            connection.execute_wrappers.append(note)

    connection_created.connect(watch)
    yield seen
    connection_created.disconnect(watch)


def tables(seen: list[str]) -> Counter[str]:
    """Count statements by what they do to which table."""
    found = [re.match(r"(\w+).*?mcp_client_app_(\w+)", sql, re.DOTALL) for sql in seen]
    return Counter(f"{each[1]} {each[2]}" for each in found if each is not None)


def priced(*articles: str) -> Any:
    return scripted(asks(*(call("shop__price", article=each) for each in articles)), says("Done."))


def test_a_call_costs_its_ledger_its_audit_and_its_events(agent, statements, settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 3600
    agent()
    run_agent("clerk", "Go.", model=priced("tea"))
    statements.clear()
    run_agent("clerk", "Go.", model=priced("tea"))
    one = tables(statements)
    statements.clear()
    run_agent("clerk", "Go.", model=priced(*ARTICLES))
    more = tables(statements) - one

    # Events of several calls are written together, or one after another: that depends on the calls.
    for kind in ("INSERT agentevent", "SELECT agentrun", "UPDATE agentrun"):
        del more[kind]
    others = len(ARTICLES) - 1
    assert more == {
        "SELECT runcall": others,  # while the run is locked
        "INSERT runcall": others,
        "UPDATE runcall": others,
        "INSERT toolcall": others,
        "SELECT serverconfig": others,  # which the audit refers to
    }


def test_a_run_reads_its_agent_once_and_no_ledger_that_is_empty(agent, statements, settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 3600
    agent()
    run_agent("clerk", "Go.", model=scripted(says("Done.")))
    statements.clear()

    run_agent("clerk", "Go.", model=scripted(says("Done.")))

    asked = tables(statements)
    assert asked["SELECT agentconfig"] == 2  # its state, and itself
    assert asked["SELECT agentserver"] == 1
    assert asked["SELECT runcall"] == 1  # what has no end, at the end


def test_what_calls_side_by_side_begin_with_is_stored_together(agent, statements):
    agent()

    result = run_agent("clerk", "Go.", model=priced(*ARTICLES))

    stored = [sql for sql in statements if re.match(r"INSERT .*agentevent", sql)]
    assert AgentRun.objects.get(pk=result.run_id).event_count == 2 * len(ARTICLES) + 3
    # The start, the round, all calls, at most one for each result, the end.
    assert len(stored) <= len(ARTICLES) + 4


def told(run: AgentRun, *kinds: str, owner: str = "us") -> list[BaseException | None]:
    """Tell several things at once."""

    async def tell() -> list[BaseException | None]:
        telling = Telling(run, owner)
        return await asyncio.gather(*(telling.tell(kind, {}) for kind in kinds), return_exceptions=True)

    return get_agents_loop().run(tell)


@pytest.fixture
def run(agent) -> AgentRun:
    """A run that this worker holds."""
    made = AgentRun.objects.create(agent=agent(), agent_name="clerk", prompt="Go.")
    held = claim(made.pk, "us")
    assert held is not None
    return held


def test_what_is_told_at_once_is_one_transaction_in_order(run, statements):
    assert told(run, "a", "b", "c") == [None] * 3

    assert tables(statements) == {"UPDATE agentrun": 1, "SELECT agentrun": 1, "INSERT agentevent": 1}
    rows = AgentEvent.objects.filter(run=run).order_by("number")
    assert list(rows.values_list("number", "kind")) == [(1, "run.started"), (2, "a"), (3, "b"), (4, "c")]


def test_all_who_told_something_hear_that_the_run_is_lost(run):
    assert [type(error) for error in told(run, "a", "b", owner="others")] == [RunStateError] * 2
    assert AgentEvent.objects.filter(run=run).count() == 1


def test_who_is_cancelled_takes_the_events_of_nobody_with_him(run):
    async def tell() -> Any:
        telling = Telling(run, "us")
        mine, yours = (asyncio.ensure_future(telling.tell(kind, {})) for kind in ("mine", "yours"))
        await asyncio.sleep(0)
        mine.cancel()
        return await asyncio.gather(mine, yours, return_exceptions=True)

    cancelled, stored = get_agents_loop().run(tell)

    assert isinstance(cancelled, asyncio.CancelledError)
    assert stored is None
    assert AgentEvent.objects.filter(run=run, kind="yours").exists()


def test_what_is_told_too_late_is_not_written(run):
    finish(run.pk, "us", RunStatus.COMPLETED)

    assert [type(error) for error in told(run, "late")] == [RunStateError]
    kinds = AgentEvent.objects.filter(run=run).order_by("number").values_list("kind", flat=True)
    assert list(kinds) == ["run.started", "run.completed"]
