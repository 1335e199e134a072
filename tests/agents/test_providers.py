"""Whole conversations over HTTP, by the providers' own packages, with fakes as strict as the providers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from mcp_client_app.agents.api import arun_agent, astream_agent, run_agent, stream_agent
from mcp_client_app.agents.result import AgentResult
from mcp_client_app.datatypes import RunStatus
from tests.agents.providers import PROVIDERS, WAYS, clerk, fields_for, texts, told
from tests.servers.model_answers import USAGE
from tests.servers.model_apis import Asked, Call, ModelApi, Turn
from tests.stored import close_connections

__all__ = ["clerk"]

SCRIPT = (
    Turn(
        "Let me look at both.",
        (
            Call("shop__price", {"article": "tea"}),
            Call("peer__add", {"a": 1, "b": 2}),
            Call("shop__price", {"article": "salt"}),
            Call("peer__meet", {"count": 2}),
            Call("peer__meet", {"count": 2}),
        ),
    ),
    Turn("", (Call("peer__echo", {"text": "Grüße, 世界"}), Call("peer__fail", {"message": "no stock"}))),
    Turn("Now I order.", (Call("shop__order", {"article": "tea", "count": 3}),)),
    Turn("It is all done:\nthree teas."),
)
RESULTS = [
    ["tea costs 3", '{\n  "result": 3.0\n}', "salt costs 3", "met 2", "met 2"],
    ["Grüße, 世界", "Error calling mcp tool peer__fail: Error executing tool fail: no stock"],
    ["3 tea ordered"],
]

every_api = pytest.mark.parametrize("kind", PROVIDERS)
each_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
def api() -> Iterator[ModelApi]:
    with ModelApi(SCRIPT) as served:
        yield served


def check(result: AgentResult, api: ModelApi, calls: list[tuple[str, Any]]) -> None:
    """See that the whole script has run, right to its last message."""
    assert (result.status, result.code, result.text) == (RunStatus.COMPLETED, "", SCRIPT[-1].text)
    assert api.refusals == []
    assert [asked.turns for asked in api.asked] == [0, 1, 2, 3]
    assert [told(asked) for asked in api.asked[1:]] == RESULTS
    assert {asked.prompt for asked in api.asked} == {"Buy tea."}
    assert sorted(calls[:2]) == [("price", "salt"), ("price", "tea")]
    assert calls[2:] == [("order", ("tea", 3))]
    assert result.tool_rounds == 3
    assert result.usage["requests"] == 4
    assert (result.usage["input_tokens"], result.usage["output_tokens"]) == (4 * USAGE[0], 4 * USAGE[1])


@every_api
@each_way
def test_a_conversation_of_many_rounds_servers_and_parallel_calls(api, clerk, calls, kind, way):
    clerk(kind, api, peer=True, instructions="You buy things.")

    result = WAYS[way]("clerk", "Buy tea.")

    check(result, api, calls)
    assert {asked.streamed for asked in api.asked} == {way == "in_pieces"}
    assert all("You buy things." in asked.instructions for asked in api.asked)
    assert {"shop__price", "peer__add", "peer__echo"} < set(api.asked[0].tools)
    assert len({asked.tools for asked in api.asked}) == 1


@every_api
def test_the_same_from_a_coroutine(api, clerk, calls, kind):
    clerk(kind, api, peer=True)

    async def use() -> AgentResult:
        try:
            return await arun_agent("clerk", "Buy tea.")
        finally:
            await close_connections()

    check(asyncio.run(use()), api, calls)


@every_api
def test_text_is_told_as_it_comes(api, clerk, kind):
    clerk(kind, api, peer=True)

    events = list(stream_agent("clerk", "Buy tea."))

    assert list(texts(events)) == [turn.text for turn in SCRIPT if turn.text]
    assert sum(event.kind == "text.delta" for event in events) > 6
    assert [event.data["text"] for event in events if event.kind == "round"] == [
        turn.text for turn in SCRIPT if turn.calls
    ]
    asked_for = [event.data["name"] for event in events if event.kind == "tool.call"]
    assert asked_for == [call.name for turn in SCRIPT for call in turn.calls]
    results = {event.data["id"] for event in events if event.kind == "tool.result"}
    assert results == {event.data["id"] for event in events if event.kind == "tool.call"}


def test_text_is_told_to_coroutines_too(api, clerk):
    clerk("anthropic", api, peer=True)

    async def use() -> list[Any]:
        try:
            return [event async for event in astream_agent("clerk", "Buy tea.")]
        finally:
            await close_connections()

    assert list(texts(asyncio.run(use()))) == [turn.text for turn in SCRIPT if turn.text]


# One conversation after the other ------------------------------------------------------


def continuing(asked: Asked) -> Turn:
    """Ask for one price per question, then answer."""
    if not asked.results or asked.rounds == 0:
        return Turn("", (Call("shop__price", {"article": asked.prompt}),))
    return Turn(f"So it is: {told(asked)[0]}.")


@every_api
@each_way
def test_a_conversation_goes_on_where_it_ended(clerk, calls, kind, way):
    with ModelApi(continuing) as api:
        clerk(kind, api)
        first = WAYS[way]("clerk", "tea")
        second = WAYS[way]("clerk", "salt", history=first.messages)
        third = WAYS[way]("clerk", "oil", history=second.messages)

    assert [each.text for each in (first, second, third)] == [
        f"So it is: {article} costs 3." for article in ("tea", "salt", "oil")
    ]
    assert api.refusals == []
    assert [asked.turns for asked in api.asked] == [0, 1, 2, 3, 4, 5]
    assert [asked.prompt for asked in api.asked] == ["tea", "tea", "salt", "salt", "oil", "oil"]
    assert calls == [("price", "tea"), ("price", "salt"), ("price", "oil")]


STRANGE = "functions.price:0/" + "x" * 60
"""An id as other providers make them: too long for one, with characters that another refuses."""


@pytest.mark.parametrize("before", PROVIDERS)
@pytest.mark.parametrize("after", PROVIDERS)
def test_a_conversation_goes_on_with_another_provider(clerk, calls, before, after):
    """Ids of calls are the first provider's; the second one has rules of its own."""

    def strange(asked: Asked) -> Turn:
        if asked.rounds:
            return Turn("done")
        ids = (STRANGE, f"{STRANGE}2") if before == "chat" else ("", "")
        calls = [Call("shop__price", {"article": str(n)}, given) for n, given in enumerate(ids)]
        return Turn("", tuple(calls))

    with ModelApi(strange) as first, ModelApi(strange) as second:
        row = clerk(before, first)
        result = run_agent("clerk", "one")
        assert result.text == "done"
        for field, value in fields_for(after, second).items():
            setattr(row, field, value)
        row.save()
        again = run_agent("clerk", "two", history=result.messages)

    assert (again.status, again.text) == (RunStatus.COMPLETED, "done")
    assert first.refusals == second.refusals == []
    assert [asked.turns for asked in second.asked] == [2, 3]
    assert sorted(calls) == [("price", "0"), ("price", "0"), ("price", "1"), ("price", "1")]
