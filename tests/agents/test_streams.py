from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from mcp.server.mcpserver import Context
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from mcp_client_app.agents.api import astream_agent, run_agent, stream_agent
from mcp_client_app.models import AgentEvent, AgentRun, AgentServer
from mcp_client_app.testing import fake_server
from tests.agents.scripts import asks, call, says, scripted
from tests.stored import close_connections


def talker() -> FunctionModel:
    """A model that gives its answers in pieces."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        if len(messages) == 1:
            yield "Let me "
            yield "look."
            yield {1: DeltaToolCall("shop__price", '{"article": ', tool_call_id="c1")}
            yield {1: DeltaToolCall(None, '"tea"}')}
        else:
            yield "It costs "
            yield "3."

    return FunctionModel(stream_function=answer)


EXPECTED = [
    ("run.started", True),
    ("text.start", False),
    ("text.delta", False),
    ("round", True),
    ("tool.call", True),
    ("tool.result", True),
    ("text.start", False),
    ("text.delta", False),
    ("run.completed", True),
]


def check(events, calls):
    assert [(event.kind, event.number is not None) for event in events] == EXPECTED
    assert [event.number for event in events if event.number] == [1, 2, 3, 4, 5]
    texts = [event.data["text"] for event in events if event.kind.startswith("text.")]
    assert texts == ["Let me ", "look.", "It costs ", "3."]
    assert calls == [("price", "tea")]
    (call_event,) = [event for event in events if event.kind == "tool.call"]
    assert dict(call_event.data) == {
        "id": "c1",
        "name": "shop__price",
        "arguments": {"article": "tea"},
        "valid": True,
    }
    (result,) = [event for event in events if event.kind == "tool.result"]
    assert (result.data["id"], result.data["outcome"], result.data["text"]) == ("c1", "ok", "tea costs 3")
    assert {event.run_id for event in events} == {str(AgentRun.objects.get().pk)}


def test_a_stream_tells_everything_in_order(agent, calls):
    agent()
    check(list(stream_agent("clerk", "Go.", model=talker())), calls)
    assert AgentRun.objects.get().text == "It costs 3."


async def test_so_does_an_asynchronous_one(agent, calls):
    await sync_to_async(agent)()
    events = [event async for event in astream_agent("clerk", "Go.", model=talker())]

    await sync_to_async(check)(events, calls)
    await close_connections()


def test_pieces_of_text_are_not_stored(agent):
    agent()
    list(stream_agent("clerk", "Go.", model=talker()))

    kinds = AgentEvent.objects.values_list("kind", flat=True)
    assert not [kind for kind in kinds if kind.startswith("text.")]
    (event,) = AgentEvent.objects.filter(kind="round")
    assert event.data == {"number": 1, "text": "Let me look."}


def test_a_model_that_knows_no_pieces_is_streamed_as_a_whole(agent):
    agent()
    model = scripted(asks(call("shop__price", article="tea"), text="I look."), says("3."))
    events = list(stream_agent("clerk", "Go.", model=model))

    assert [event.data["text"] for event in events if event.kind == "text.start"] == ["I look.", "3."]
    assert events[-1].is_last


def test_a_model_that_knows_pieces_only_can_be_waited_for(agent, calls):
    agent()
    assert run_agent("clerk", "Go.", model=talker()).text == "It costs 3."
    assert calls == [("price", "tea")]


def test_a_stream_ends_where_the_run_waits_for_people(agent, settings):
    agent(approval="always")
    settings.MCP_CLIENT_MODELS = {"scripted:test": "tests.agents.scripts.buyer"}
    events = list(stream_agent("clerk", "Buy tea."))

    assert [event.kind for event in events][-2:] == ["approval.required", "run.paused"]
    assert len(events[-2].data["approvals"]) == 2


def test_progress_of_a_call_is_told_to_who_listens(agent, add_mcp_server):
    async def dig(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        return "dug"

    row = agent()
    AgentServer.objects.create(
        agent=row, server=add_mcp_server("mine", fake_server("mine", tools={"dig": dig}))
    )
    events = list(stream_agent("clerk", "Dig.", model=scripted(asks(call("mine__dig", "d1")), says("Done."))))

    (progress,) = [event for event in events if event.kind == "tool.progress"]
    assert progress.number is None
    assert dict(progress.data) == {
        "id": "d1",
        "name": "mine__dig",
        "progress": 1,
        "total": 2,
        "message": "half",
    }
