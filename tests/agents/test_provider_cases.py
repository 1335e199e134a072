"""What goes wrong in conversations with providers, over HTTP: they take the next request all the same."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections
from mcp.types import BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, TextContent

from mcp_client_app import services
from mcp_client_app.agents.api import cancel_agent_run, run_agent, stream_agent
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentConfig, AgentRun, AgentServer
from mcp_client_app.testing import fake_server
from tests.agents.conftest import at_rest
from tests.agents.providers import PROVIDERS, WAYS, clerk, texts, told
from tests.servers.model_apis import KEY, Asked, Call, Failure, ModelApi, Turn
from tests.servers.sdk_server import PNG, make_server

__all__ = ["clerk"]

every_api = pytest.mark.parametrize("kind", PROVIDERS)
DONE = Turn("done")


def asks(*calls: Call) -> Turn:
    return Turn("", calls)


def bodies(api: ModelApi) -> str:
    """Return all that was sent."""
    return json.dumps(api.requests, ensure_ascii=False)


# Tools ---------------------------------------------------------------------------------


@every_api
def test_without_tools_there_is_no_list_of_them(clerk, kind):
    with ModelApi([Turn("hello")]) as api:
        row = clerk(kind, api)
        AgentServer.objects.filter(agent=row).delete()
        assert run_agent("clerk", "hi").text == "hello"
    assert "tools" not in api.requests[0]
    assert api.refusals == []


@every_api
def test_tools_of_one_name_on_two_servers_are_two_tools(clerk, add_mcp_server, kind):
    def search_for(place: str) -> Callable[..., str]:
        def search(text: str) -> str:
            return f"{text} in {place}"

        return search

    calls = asks(Call("east__search", {"text": "a"}), Call("west__search", {"text": "b"}))
    with ModelApi([calls, DONE]) as api:
        row = clerk(kind, api)
        for name in ("east", "west"):
            server = add_mcp_server(name, fake_server(name, tools={"search": search_for(name)}))
            AgentServer.objects.create(agent=row, server=server)
        run_agent("clerk", "go")
    assert told(api.asked[1]) == ["a in east", "b in west"]


@every_api
def test_tools_that_come_during_a_run_are_offered_in_its_next_round(clerk, add_mcp_server, kind):
    script = [asks(Call("grows__grow")), asks(Call("grows__added")), DONE]
    with ModelApi(script) as api:
        row = clerk(kind, api)
        AgentServer.objects.create(agent=row, server=add_mcp_server("grows", make_server()))
        result = run_agent("clerk", "go")
    assert (result.text, api.refusals, result.detail) == ("done", [], "")
    assert api.refusals == []
    assert ["grows__added" in asked.tools for asked in api.asked] == [False, True, True]
    assert told(api.asked[2]) == ["here"]


@every_api
def test_fixed_arguments_are_sent_to_the_server_and_never_to_a_provider(clerk, add_mcp_server, kind):
    seen = []

    def login(token: str, name: str) -> str:
        seen.append((token, name))
        return f"hello {name}"

    script = [
        asks(Call("door__login", {"name": "ann", "token": "guessed"}), Call("door__login", {"x": 1})),
        DONE,
    ]
    with ModelApi(script) as api:
        row = clerk(kind, api)
        AgentServer.objects.create(
            agent=row,
            server=add_mcp_server("door", fake_server("door", tools={"login": login})),
            fixed_arguments={"login": {"token": "planted-secret"}},
        )
        result = run_agent("clerk", "go")
    assert seen == [("planted-secret", "ann")]
    assert told(api.asked[1])[0] == "hello ann"
    assert told(api.asked[1])[1].startswith("Error calling mcp tool door__login:")
    assert "planted-secret" not in bodies(api) + json.dumps(result.messages)
    (tool,) = [tool for tool in api.requests[0]["tools"] if "door__login" in json.dumps(tool)]
    assert "token" not in json.dumps(tool)


# Calls ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "way"),
    # Whole answers of Anthropic hold objects; only in pieces can they be broken.
    [("chat", "whole"), ("chat", "in_pieces"), ("responses", "whole"), ("anthropic", "in_pieces")],
)
def test_of_parallel_calls_each_gets_its_answer_whatever_is_wrong_with_the_others(clerk, calls, kind, way):
    asked_for = asks(
        Call("shop__price", {"article": "tea"}),
        Call("shop__order", "{article: tea"),
        Call("shop__order", {"artikel": "tea"}),
        Call("shop__fail", {"why": "no stock"}),
        Call("multi_tool_use", {"uses": []}),
        Call("shop__nothing", ""),
        Call("shop__nothing", "[1]"),
        Call("shop__price", {"article": "salt"}),
    )
    with ModelApi([asked_for, DONE]) as api:
        clerk(kind, api)
        result = WAYS[way]("clerk", "go")
    assert (result.status, result.text) == (RunStatus.COMPLETED, "done")
    assert api.refusals == []
    answers = told(api.asked[1])
    assert len(answers) == 8
    assert answers[0] == "tea costs 3"
    assert answers[1].startswith("Error calling mcp tool shop__order:")
    assert "no valid JSON" in answers[1]
    assert '"artikel"' in answers[2]
    assert answers[3] == "Error calling mcp tool shop__fail: Error executing tool fail: no stock"
    assert "shop__price" in answers[4]  # the names that there are
    assert answers[6].startswith("Error calling mcp tool shop__nothing:")
    assert answers[7] == "salt costs 3"
    assert sorted(call for call in calls if call[0] != "nothing") == [
        ("fail", "no stock"),
        ("price", "salt"),
        ("price", "tea"),
    ]
    if kind == "anthropic":
        failed = [text.startswith("Error calling mcp tool") for text in answers]
        assert [call in api.asked[1].failed for call in api.asked[1].results] == failed


@every_api
def test_empty_and_endless_results_make_requests_that_are_taken(clerk, add_mcp_server, kind):
    server = make_server()
    server.add_tool(lambda: CallToolResult(content=[]), name="nothing")
    server.add_tool(lambda: CallToolResult(content=[TextContent(type="text", text=" ")]), name="blank")
    script = [asks(Call("bare__nothing"), Call("bare__blank"), Call("shop__long")), DONE]
    with ModelApi(script) as api:
        row = clerk(kind, api, result_limit=1000)
        AgentServer.objects.create(agent=row, server=add_mcp_server("bare", server))
        assert run_agent("clerk", "go").text == "done"
    nothing, blank, long = told(api.asked[1])
    assert nothing == blank == "(The tool returned nothing.)"
    assert long == "x" * 1000 + "\n[cut: 199000 more characters]"
    assert api.refusals == []


@every_api
def test_output_filters_hold_in_a_run(clerk, shop, kind):
    with ModelApi([asks(Call("shop__price", {"article": "tea"}), Call("shop__long")), DONE]) as api:
        row = clerk(kind, api)
        filters = {"pri*": [{"cut": 3}], "long": [{"pick": "$.a"}]}
        AgentServer.objects.filter(agent=row).update(output_filters=filters)
        run_agent("clerk", "go")
    price, long = told(api.asked[1])
    assert price == "tea\n[cut: 8 more characters]"
    assert "output filter 1 (pick $.a) failed: there is nothing at its path" in long
    assert "xxx" not in bodies(api)


@every_api
def test_a_server_that_dies_in_a_call_is_an_answer_and_the_run_goes_on(clerk, kind):
    script = [
        asks(Call("peer__crash"), Call("shop__price", {"article": "tea"})),
        asks(Call("peer__echo", {"text": "again"})),
        DONE,
    ]
    with ModelApi(script) as api:
        clerk(kind, api, peer=True)
        assert run_agent("clerk", "go").text == "done"
    crashed, price = told(api.asked[1])
    assert crashed.startswith("Error calling mcp tool peer__crash:")
    assert price == "tea costs 3"
    # It is started again, or its tools are away for a while: told either way.
    (again,) = told(api.asked[2])
    assert again == "again" or again.startswith("Error calling mcp tool peer__echo:")
    assert api.refusals == []


# Content -------------------------------------------------------------------------------

ZIP = "UEsDBAoAAAAAAIdPVlkAAAAAAAAAAAAAAAAEAAAAdGV4"


def bundle() -> CallToolResult:
    blob = BlobResourceContents(uri="peer://a.zip", blob=ZIP, mime_type="application/octet-stream")
    return CallToolResult(content=[EmbeddedResource(type="resource", resource=blob)])


def broken() -> CallToolResult:
    """A failure with a picture: providers take text alone there."""
    picture = ImageContent(type="image", data=ZIP, mime_type="image/png")
    return CallToolResult(content=[TextContent(type="text", text="no light"), picture], is_error=True)


@every_api
def test_images_are_seen_and_other_binary_content_is_told_of(clerk, add_mcp_server, kind):
    names = ("image", "audio", "mixed", "bundle", "broken")
    with ModelApi([asks(*(Call(f"media__{name}") for name in names)), DONE]) as api:
        row = clerk(kind, api)
        server = make_server()
        for tool in (bundle, broken):
            server.add_tool(tool)
        AgentServer.objects.create(agent=row, server=add_mcp_server("media", server))
        assert run_agent("clerk", "go").text == "done"
    assert api.refusals == []
    assert api.asked[1].images == 1
    answers = dict(zip(names, told(api.asked[1]), strict=True))
    assert answers["audio"] == "[audio: audio/wav, 4 bytes, not shown]"
    assert answers["mixed"].startswith("first\n[link to peer://notes: notes]\n[resource peer://inline]")
    assert answers["bundle"].startswith("[file from peer://a.zip: application/octet-stream")
    assert answers["broken"].startswith("Error calling mcp tool media__broken: no light")
    assert ZIP not in bodies(api)
    encoded = base64.b64encode(PNG).decode()
    assert bodies(api).count(encoded) == 1
    assert encoded not in "".join(answers.values())


# Ends ----------------------------------------------------------------------------------


@every_api
def test_a_run_without_end_stops_at_its_rounds_and_can_be_continued(clerk, calls, kind):
    def endless(asked: Asked) -> Turn:
        if asked.prompt == "stop":
            return DONE
        return Turn("Once more.", (Call("shop__price", {"article": str(asked.turns)}),))

    with ModelApi(endless) as api:
        clerk(kind, api, max_rounds=3)
        result = run_agent("clerk", "go")
        assert (result.status, result.code) == (RunStatus.LIMIT_REACHED, "max_rounds")
        assert result.tool_rounds == 3
        assert calls == [("price", str(number)) for number in range(3)]
        assert run_agent("clerk", "stop", history=result.messages).text == "done"
    assert api.refusals == []


@every_api
@pytest.mark.parametrize("status", [400, 401, 404, 429, 503])
def test_a_provider_that_fails_ends_the_run_without_telling_the_key(clerk, caplog, monkeypatch, kind, status):
    # The packages try again by themselves, after a while.
    monkeypatch.setattr("openai._base_client.AsyncAPIClient._sleep_for_retry", _at_once)
    monkeypatch.setattr("anthropic._base_client.AsyncAPIClient._sleep_for_retry", _at_once)
    failure = Failure(status, f"Incorrect API key provided: {KEY}.", {"retry-after-ms": "1"})
    with ModelApi([asks(Call("shop__price", {"article": "tea"})), failure]) as api:
        clerk(kind, api)
        result = run_agent("clerk", "go")
    assert (result.status, result.code) == (RunStatus.FAILED, "model_error")
    assert str(status) in result.detail
    told_of = [
        result.detail,
        result.messages,
        list(AgentRun.objects.get().events.values_list("data", flat=True)),
    ]
    assert KEY not in json.dumps(told_of) + caplog.text


async def _at_once(*_: Any, **__: Any) -> None:
    return None


@every_api
def test_a_run_cancelled_while_the_model_speaks_hangs_up_and_can_be_continued(clerk, kind):
    def speak(asked: Asked) -> Turn:
        return DONE if asked.prompt == "and?" else Turn("one two three", hold=True)

    with ModelApi(speak) as api:
        clerk(kind, api)
        events = []
        heard = threading.Event()

        def listen() -> None:
            for event in stream_agent("clerk", "go"):
                events.append(event)
                if event.kind in ("text.start", "text.delta"):
                    heard.set()

        listener = threading.Thread(target=_closing(listen))
        listener.start()
        try:
            assert heard.wait(30)
            cancel_agent_run(AgentRun.objects.get().pk)
            assert api.hung_up.wait(30)
        finally:
            api.resume.set()
            listener.join()
        run = at_rest(AgentRun.objects.get().pk)
        assert run.state is RunStatus.CANCELLED
        assert events[-1].kind == "run.cancelled"
        assert run.text == "".join(texts(events)).strip() == "one"
        assert run_agent("clerk", "and?", history=run.messages).text == "done"
    assert api.refusals == []


def _closing(work: Callable[[], None]) -> Callable[[], None]:
    """Have a thread close its database connections."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    return run


# People --------------------------------------------------------------------------------


@pytest.fixture
def careful(clerk: Callable[..., AgentConfig]) -> Callable[..., AgentConfig]:
    """The clerk, whose orders need approval."""

    def make(kind: str, api: ModelApi) -> AgentConfig:
        row = clerk(kind, api)
        AgentServer.objects.filter(agent=row).update(tool_approvals={"order": "always"})
        return row

    return make


BUYS = asks(
    Call("shop__order", {"article": "tea", "count": 1}),
    Call("shop__price", {"article": "tea"}),
    Call("shop__order", {"article": "salt", "count": 2}),
)


@every_api
def test_what_people_decide_completes_a_turn(careful, calls, kind):
    with ModelApi([BUYS, DONE]) as api:
        careful(kind, api)
        result = run_agent("clerk", "go")
        assert result.status is RunStatus.AWAITING_APPROVAL
        assert calls == [("price", "tea")]
        waiting = {each.arguments["article"]: each.pk for each in services.list_approvals()}
        services.deny(waiting["salt"], reason="too dear")
        services.approve(waiting["tea"], arguments={"article": "tea", "count": 9})
        run = at_rest(result.run_id)
    assert (run.state, run.text) == (RunStatus.COMPLETED, "done")
    assert calls == [("price", "tea"), ("order", ("tea", 9))]
    assert api.refusals == []
    assert [asked.turns for asked in api.asked] == [0, 1]
    tea, price, salt = told(api.asked[1])
    assert "9 tea ordered" in tea
    assert price == "tea costs 3"
    assert "too dear" in salt
