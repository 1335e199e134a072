"""What servers ask for in the course of a call: who answers, where, by when, and what if nobody does."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from mcp_client_app.client.input_desk import PLACES
from mcp_client_app.client.sources import StaticSource
from mcp_client_app.datatypes import (
    InputAnswer,
    InputRequest,
    Progress,
    ProtocolMode,
    ServerSpec,
    Transport,
    defer_input,
)
from mcp_client_app.exceptions import (
    ConfigurationError,
    ConnectionLostError,
    InputRequiredError,
    InvalidInputError,
    ProtocolError,
    RequestTimeoutError,
    ServerCrashedError,
    UnknownServerError,
)
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import LINKS, http_spec, sdk_over_http
from tests.client.peers import PATIENCE, SERVERS, Peer, stdio_spec

NAME = {
    "method": "elicitation/create",
    "params": {
        "message": "Who are you?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "Ada"},
                "age": {"type": "integer", "default": 36},
                "height": {"type": "number", "default": 1.7},
                "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
                "agrees": {"type": "boolean", "default": True},
                "mail": {"type": "string", "format": "email"},
            },
            "required": ["name"],
        },
    },
}
DEFAULTS = {"name": "Ada", "age": 36, "height": 1.7, "colour": "blue", "agrees": True}
SITE = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Pay.", "url": "https://pay.test/"},
}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5},
}
ROOTS = {"method": "roots/list"}

MESSAGE = {"role": "assistant", "content": {"type": "text", "text": "hello"}, "model": "small"}

MakeAsking = Callable[..., Peer]


@pytest.fixture(params=LINKS)
def asking(request: pytest.FixtureRequest, peer: MakePeer) -> MakeAsking:
    """Make a peer of the new era that asks by a script, for each link."""

    def make(script: dict[str, Any] | None = None, **fields: Any) -> Peer:
        steps = script if script is not None else {"": {"inputRequests": {"who": NAME}, "requestState": "s1"}}
        return peer("srv", f"asks={json.dumps(steps)}", modern=True, link=request.param, **fields)

    return make


def told(result: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(result.text)
    return answer


def accept(request: InputRequest) -> InputAnswer:
    return request.accept()


# Handlers of the manager -------------------------------------------------------------


def test_the_answer_goes_back_with_the_state_in_a_new_request(manage: MakeManager, asking: MakeAsking):
    server = asking()
    manager = manage(server)
    seen: list[InputRequest] = []

    def answer(request: InputRequest) -> InputAnswer:
        seen.append(request)
        return request.accept({"name": "Grace", "mail": "grace@navy.test"})

    manager.input_handlers["elicitation"] = answer
    reply = told(manager.call_tool("srv__echo", {"text": "x"}))

    (request,) = seen
    assert (request.server, request.tool, request.key, request.mode) == ("srv", "echo", "who", "form")
    assert (request.message, request.defaults) == ("Who are you?", DEFAULTS)
    content = {**DEFAULTS, "name": "Grace", "mail": "grace@navy.test"}
    assert reply["inputResponses"] == {"who": {"action": "accept", "content": content}}
    assert reply["requestState"] == "s1"
    first, second = (frame for frame in server.tap.frames() if frame.get("method") == "tools/call")
    assert first["id"] != second["id"]
    assert second["params"]["arguments"] == {"text": "x"}


def test_what_is_left_out_gets_its_default(manage: MakeManager, asking: MakeAsking):
    manager = manage(asking())
    manager.input_handlers["elicitation"] = accept
    reply = told(manager.call_tool("srv__echo", {"text": "x"}))
    assert reply["inputResponses"]["who"] == {"action": "accept", "content": DEFAULTS}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_user_may_say_no(manage: MakeManager, asking: MakeAsking, action: str):
    manager = manage(asking())
    manager.input_handlers["elicitation"] = lambda request: getattr(request, action)()
    assert told(manager.call_tool("srv__echo"))["inputResponses"] == {"who": {"action": action}}


def test_all_kinds_are_answered_in_one_round(manage: MakeManager, asking: MakeAsking):
    script = {"": {"inputRequests": {"a": SITE, "b": SAMPLE, "c": ROOTS}}}
    manager = manage(asking(script))
    urls: list[str | None] = []

    async def visit(request: InputRequest) -> InputAnswer:
        urls.append(request.url)
        return request.accept()

    manager.input_handlers.update(
        {
            "elicitation": visit,
            "sampling": lambda request: request.accept(MESSAGE),
            "roots": lambda request: request.accept({"roots": [{"uri": "file:///srv"}]}),
        }
    )
    reply = told(manager.call_tool("srv__echo"))
    assert reply["inputResponses"]["a"] == {"action": "accept"}
    assert reply["inputResponses"]["b"]["content"] == MESSAGE["content"]
    assert reply["inputResponses"]["c"] == {"roots": [{"uri": "file:///srv"}]}
    assert "requestState" not in reply
    assert urls == ["https://pay.test/"]
    assert {"elicitation", "sampling", "roots"} <= set(reply["capabilities"])


def test_rounds_follow_each_other_and_a_state_alone_means_later(manage: MakeManager, asking: MakeAsking):
    script = {
        "": {"inputRequests": {"who": NAME}, "requestState": "1"},
        "1": {"requestState": "2"},
        "2": {"inputRequests": {"again": NAME}, "requestState": "3"},
    }
    server = asking(script)
    manager = manage(server)
    manager.input_handlers["elicitation"] = accept
    reply = told(manager.call_tool("srv__echo"))
    assert (set(reply["inputResponses"]), reply["requestState"]) == ({"again"}, "3")
    third = [frame for frame in server.tap.frames() if frame.get("method") == "tools/call"][2]["params"]
    assert (third.get("inputResponses"), third["requestState"]) == (None, "2")


def test_one_call_knows_nothing_of_the_state_of_another(manage: MakeManager, asking: MakeAsking):
    server = asking()
    manager = manage(server)
    manager.input_handlers["elicitation"] = accept
    for _ in range(2):
        manager.call_tool("srv__echo")
    frames = [frame["params"] for frame in server.tap.frames() if frame.get("method") == "tools/call"]
    assert [frame.get("requestState") for frame in frames] == [None, "s1", None, "s1"]


def test_a_server_that_asks_for_ever_is_given_up(manage: MakeManager, asking: MakeAsking):
    manager = manage(asking({"": {"requestState": "s"}, "s": {"requestState": "s"}}))
    with pytest.raises(ProtocolError, match="over 10 times"):
        manager.call_tool("srv__echo")


@pytest.mark.parametrize(
    "step",
    [
        {},
        {"inputRequests": {}},
        {"inputRequests": ["who"], "requestState": "s"},
        {"inputRequests": {"who": {"method": "nothing/known"}}},
        {"inputRequests": {"who": "me"}},
    ],
    ids=str,
)
def test_a_question_that_makes_no_sense_is_an_error_of_the_server(
    manage: MakeManager, asking: MakeAsking, step: dict[str, Any]
):
    manager = manage(asking({"": step}))
    manager.input_handlers["elicitation"] = accept
    with pytest.raises(ProtocolError) as caught:
        manager.call_tool("srv__echo")
    assert caught.value.server == "srv"
    assert manager.status("srv").is_ready


def test_prompts_and_resources_ask_too(manage: MakeManager, asking: MakeAsking):
    manager = manage(asking())
    with pytest.raises(InputRequiredError) as caught:
        manager.get_prompt("srv", "paint")
    assert (caught.value.tool, caught.value.request_state) == (None, "s1")
    go_on: dict[str, Any] = {
        "input_responses": {"who": {"action": "decline"}},
        "request_state": "s1",
        "on_input": {"roots": defer_input},
    }
    gone_on = manager.get_prompt("srv", "paint", **go_on).messages[0]["content"]["text"]
    for text in (gone_on, manager.read_resource("srv", "peer://x", **go_on).text):
        assert json.loads(text)["inputResponses"] == {"who": {"action": "decline"}}
        assert "roots" in json.loads(text)["capabilities"]
    manager.input_handlers["elicitation"] = accept
    prompt = manager.get_prompt("srv", "paint")
    assert json.loads(prompt.messages[0]["content"]["text"])["requestState"] == "s1"
    assert json.loads(manager.read_resource("srv", "peer://x").text)["requestState"] == "s1"


# Where handlers run ------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
def test_a_handler_of_the_manager_runs_in_a_thread_of_its_own(
    manage: MakeManager, asking: MakeAsking, is_async: bool
):
    ends: list[str] = []

    def around(callback: Callable[[], None]) -> None:
        callback()
        ends.append(threading.current_thread().name)

    manager = manage(asking(), around_callback=around)
    threads: list[str] = []

    def answer(request: InputRequest) -> InputAnswer:
        threads.append(threading.current_thread().name)
        return request.accept()

    async def later(request: InputRequest) -> InputAnswer:
        await asyncio.sleep(0)
        return answer(request)

    manager.input_handlers["elicitation"] = later if is_async else answer
    manager.call_tool("srv__echo")
    assert threads == ["mcp-input"]
    assert "mcp-input" in ends  # and what it opened there was closed there


def test_a_handler_that_waits_holds_up_no_other_call(manage: MakeManager, asking: MakeAsking):
    manager = manage(asking(max_concurrency=1))
    asked, go_on = threading.Event(), threading.Event()

    def answer(request: InputRequest) -> InputAnswer:
        asked.set()
        assert go_on.wait(PATIENCE)
        return request.accept()

    manager.input_handlers["elicitation"] = answer
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(manager.call_tool("srv__echo")))
    thread.start()
    assert asked.wait(PATIENCE)
    # The one slot of the server is free while somebody thinks.
    other = manager.call_tool("srv__echo", input_responses={"who": {"action": "decline"}}, request_state="x")
    go_on.set()
    thread.join(PATIENCE)
    assert told(other)["requestState"] == "x"
    assert told(results[0])["requestState"] == "s1"


def test_the_deadline_of_the_call_holds_for_the_handler(manage: MakeManager, asking: MakeAsking):
    manager = manage(asking())
    cancelled = threading.Event()

    async def answer(request: InputRequest) -> InputAnswer:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return request.accept()

    manager.input_handlers["elicitation"] = answer
    manager.connect("srv")
    with pytest.raises(RequestTimeoutError):
        manager.call_tool("srv__echo", timeout=0.3)
    assert cancelled.wait(PATIENCE)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_failing_handler_leaves_the_question_open(
    manage: MakeManager, asking: MakeAsking, caplog: pytest.LogCaptureFixture, is_async: bool
):
    async def fail_later(request: InputRequest) -> InputAnswer:
        raise ZeroDivisionError

    def fail(request: InputRequest) -> InputAnswer:
        raise ZeroDivisionError

    manager = manage(asking())
    manager.input_handlers["elicitation"] = fail_later if is_async else fail
    with pytest.raises(InputRequiredError, match="ZeroDivisionError") as caught:
        manager.call_tool("srv__echo")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.request_state == "s1"
    assert "failed" in caplog.text


def test_a_handler_that_fails_with_an_error_of_ours_leaves_the_question_open(
    manage: MakeManager, asking: MakeAsking
):
    # Such as one of another server, which the handler asked: it says nothing of the outcome of this call.
    def fail(request: InputRequest) -> InputAnswer:
        raise UnknownServerError(server="another")

    server = asking()
    manager = manage(server)
    manager.input_handlers["elicitation"] = fail
    with pytest.raises(InputRequiredError, match="UnknownServerError") as caught:
        manager.call_tool("srv__echo")
    assert (caught.value.server, caught.value.request_state) == ("srv", "s1")
    assert server.calls() == ["echo"]


def test_a_handler_that_has_no_next_answer_ends_the_call_at_once(manage: MakeManager, asking: MakeAsking):
    answers: Iterator[InputAnswer] = iter(())

    def answer(request: InputRequest) -> InputAnswer:
        return next(answers)

    async def use() -> None:
        with pytest.raises(InputRequiredError, match="RuntimeError"):
            await manager.acall_tool("srv__echo", on_input={"elicitation": answer}, timeout=PATIENCE)

    manager = manage(asking())
    with pytest.raises(InputRequiredError, match="RuntimeError"):
        manager.call_tool("srv__echo", on_input={"elicitation": answer}, timeout=PATIENCE)
    asyncio.run(use())
    manager.input_handlers["elicitation"] = answer
    with pytest.raises(InputRequiredError, match="RuntimeError"):
        manager.call_tool("srv__echo", timeout=PATIENCE)


def test_a_handler_that_returns_no_answer_is_told(manage: MakeManager, asking: MakeAsking):
    manager = manage(asking())
    manager.input_handlers["elicitation"] = lambda request: {"name": "Ada"}  # type: ignore[assignment, return-value]
    with pytest.raises(InputRequiredError, match="TypeError"):
        manager.call_tool("srv__echo")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"age": "sixty-secret"}, "age"),
        ({"colour": "secret-green"}, "colour"),
        ({"mail": "secret"}, "mail"),
        ({"name": None}, "name"),
    ],
)
def test_an_answer_that_does_not_fit_is_never_sent_nor_shown(
    manage: MakeManager,
    asking: MakeAsking,
    caplog: pytest.LogCaptureFixture,
    content: dict[str, Any],
    place: str,
):
    server = asking()
    manager = manage(server)
    manager.input_handlers["elicitation"] = lambda request: request.accept(content)
    with caplog.at_level(logging.DEBUG), pytest.raises(InvalidInputError, match=place) as caught:
        manager.call_tool("srv__echo")
    assert (caught.value.key, caught.value.server) == ("who", "srv")
    assert "secret" not in f"{caught.value} {caught.value.details()} {caplog.text}"
    assert len(server.calls()) == 1


@pytest.mark.parametrize("step", [SAMPLE, ROOTS], ids=["sampling", "roots"])
def test_sampling_and_roots_are_held_to_their_form(
    manage: MakeManager, asking: MakeAsking, step: dict[str, Any]
):
    manager = manage(asking({"": {"inputRequests": {"it": step}}}))

    def wrong(request: InputRequest) -> InputAnswer:
        return request.accept({"nonsense": "secret"})

    manager.input_handlers.update({"sampling": wrong, "roots": wrong})
    with pytest.raises(InvalidInputError) as caught:
        manager.call_tool("srv__echo")
    assert caught.value.errors
    assert "secret" not in str(caught.value)


def stranger(request: InputRequest) -> InputAnswer:
    """Answer what nobody has asked."""
    return InputAnswer("accept", {"name": 5, "age": "secret"}, InputRequest(server="srv", kind=request.kind))


@pytest.mark.parametrize(
    "handler", [stranger, lambda request: replace(stranger(request), request=None)], ids=["other", "none"]
)
@pytest.mark.parametrize("is_own", [False, True], ids=["manager", "call"])
def test_an_answer_is_held_to_what_was_asked_whoever_made_it(
    manage: MakeManager, asking: MakeAsking, handler: Callable[[InputRequest], InputAnswer], is_own: bool
):
    server = asking()
    manager = manage(server)
    manager.input_handlers["elicitation"] = accept if is_own else handler
    with pytest.raises(InvalidInputError, match="name") as caught:
        manager.call_tool("srv__echo", on_input={"elicitation": handler} if is_own else None)
    assert "secret" not in str(caught.value)
    assert server.calls() == ["echo"]


# Nobody answers ----------------------------------------------------------------------


def test_without_a_handler_the_caller_is_told_what_to_go_on_with(manage: MakeManager, asking: MakeAsking):
    server = asking()
    manager = manage(server)
    with pytest.raises(InputRequiredError) as caught:
        manager.call_tool("srv__echo", {"text": "x"})
    error = caught.value
    assert (error.server, error.tool, error.request_state) == ("srv", "echo", "s1")
    (request,) = error.requests
    assert (request.key, request.kind, request.defaults) == ("who", "elicitation", DEFAULTS)
    details = json.loads(json.dumps(error.details()))
    assert details == {"tool": "echo", "input_requests": {"who": NAME}, "request_state": "s1"}
    declared = server.wait_for("tools/call")["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert not {"elicitation", "sampling", "roots"} & set(declared)


def test_another_process_goes_on(manage: MakeManager, asking: MakeAsking):
    server = asking()
    with pytest.raises(InputRequiredError) as caught:
        manage(server).call_tool("srv__echo", {"text": "x"})
    kept = json.dumps(caught.value.details())
    (request,) = caught.value.requests

    pending = json.loads(kept)
    other = manage(server)  # another manager, and another process of the server
    reply = told(
        other.call_tool(
            "srv__echo",
            {"text": "x"},
            input_responses={"who": {"action": "accept", "content": {"name": "Grace"}}},
            request_state=pending["request_state"],
        )
    )
    assert reply["inputResponses"] == {"who": {"action": "accept", "content": {"name": "Grace"}}}
    assert reply["requestState"] == "s1"
    checked = told(
        other.call_tool("srv__echo", input_responses={"who": request.accept()}, request_state="s1")
    )
    assert checked["inputResponses"]["who"]["content"] == DEFAULTS
    assert len(server.pids) == 2


@pytest.mark.parametrize(
    ("response", "told_of"),
    [
        ("yes", "is none"),
        ({}, "is none"),
        ({"action": "shrug"}, "must be one of"),
        ({"action": "accept", "content": "Ada"}, "must be an object"),
    ],
)
def test_what_is_no_answer_is_refused_before_anything_is_sent(
    manage: MakeManager, asking: MakeAsking, response: Any, told_of: str
):
    server = asking()
    manager = manage(server)
    with pytest.raises(InvalidInputError, match=told_of) as caught:
        manager.call_tool("srv__echo", input_responses={"who": response}, request_state="s1")
    assert caught.value.key == "who"
    assert server.pids == []


def test_each_round_is_a_request_of_its_own_and_is_not_repeated(manage: MakeManager, asking: MakeAsking):
    server = asking({"": {"inputRequests": {"who": NAME}, "requestState": "s1"}, "s1": "die"})
    manager = manage(server)
    manager.input_handlers["elicitation"] = accept
    with pytest.raises(ServerCrashedError) as caught:
        manager.call_tool("srv__echo")
    assert caught.value.details()["outcome"] == "unknown"
    assert server.calls() == ["echo", "echo"]
    with pytest.raises(ServerCrashedError):
        manager.call_tool("srv__echo", request_state="s1")
    assert server.calls() == ["echo"] * 3


def test_a_call_of_which_a_round_has_run_is_not_begun_anew(manage: MakeManager, asking: MakeAsking):
    server = asking()
    manager = manage(server)
    source = manager.source
    assert isinstance(source, StaticSource)

    def answer(request: InputRequest) -> InputAnswer:
        source.replace([])
        assert manager.listing("tools", wait=0).items == ()  # from here on the manager knows no such server
        source.replace([server.spec])
        return request.accept()

    with pytest.raises(ConnectionLostError, match="before it got the answers") as caught:
        manager.call_tool("srv__echo", on_input={"elicitation": answer})
    assert caught.value.details()["outcome"] == "unknown"
    assert server.calls() == ["echo"]


# Handlers of a call ------------------------------------------------------------------


def test_a_handler_of_the_call_runs_where_the_caller_waits(manage: MakeManager, asking: MakeAsking):
    server = asking()
    manager = manage(server)
    manager.input_handlers["elicitation"] = lambda request: request.decline()
    threads: list[str] = []

    def answer(request: InputRequest) -> InputAnswer:
        threads.append(threading.current_thread().name)
        return request.accept()

    async def later(request: InputRequest) -> InputAnswer:
        await asyncio.sleep(0)
        return answer(request)

    for handler in (answer, later):
        reply = told(manager.call_tool("srv__echo", on_input={"elicitation": handler}))
        assert reply["inputResponses"]["who"]["action"] == "accept"
    assert told(manager.call_tool("srv__echo"))["inputResponses"]["who"] == {"action": "decline"}

    async def use() -> None:
        for handler in (answer, later):
            result = await manager.acall_tool("srv__echo", on_input={"elicitation": handler})
            assert told(result)["inputResponses"]["who"]["action"] == "accept"

    asyncio.run(use())
    assert set(threads) == {threading.current_thread().name}


def test_a_handler_of_the_call_declares_what_it_answers_for_this_call_only(
    manage: MakeManager, asking: MakeAsking
):
    manager = manage(asking({"": {"requestState": "s"}}))
    with_it = told(manager.call_tool("srv__echo", on_input={"elicitation": accept, "roots": defer_input}))
    without = told(manager.call_tool("srv__echo"))
    assert with_it["capabilities"]["elicitation"] == {"form": {}, "url": {}}
    assert with_it["capabilities"]["roots"] == {}
    assert "sampling" not in with_it["capabilities"]
    assert not {"elicitation", "roots"} & set(without["capabilities"])


def test_deferring_declares_and_leaves_the_question_open(manage: MakeManager, asking: MakeAsking):
    server = asking()
    manager = manage(server)
    manager.input_handlers["elicitation"] = defer_input
    with pytest.raises(InputRequiredError):
        manager.call_tool("srv__echo")
    declared = server.wait_for("tools/call")["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert "elicitation" in declared


def test_a_coroutine_of_the_caller_ends_with_the_call(manage: MakeManager, asking: MakeAsking):
    manager = manage(asking())

    async def use() -> None:
        cancelled = asyncio.Event()

        async def answer(request: InputRequest) -> InputAnswer:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return request.accept()

        with pytest.raises(RequestTimeoutError):
            await manager.acall_tool("srv__echo", on_input={"elicitation": answer}, timeout=0.3)
        async with asyncio.timeout(PATIENCE):
            await cancelled.wait()

        task = asyncio.create_task(manager.acall_tool("srv__echo", on_input={"elicitation": answer}))
        cancelled.clear()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    manager.connect("srv")
    asyncio.run(use())


def test_what_the_callers_handler_raises_is_the_cause(manage: MakeManager, asking: MakeAsking):
    manager = manage(asking())

    def fail(request: InputRequest) -> InputAnswer:
        raise ZeroDivisionError

    async def fail_later(request: InputRequest) -> InputAnswer:
        raise ZeroDivisionError

    async def use(handler: Callable[[InputRequest], InputAnswer | Awaitable[InputAnswer | None]]) -> None:
        with pytest.raises(InputRequiredError) as caught:
            await manager.acall_tool("srv__echo", on_input={"elicitation": handler})
        assert isinstance(caught.value.__cause__, ZeroDivisionError)

    for handler in (fail, fail_later):
        with pytest.raises(InputRequiredError) as caught:
            manager.call_tool("srv__echo", on_input={"elicitation": handler})
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        asyncio.run(use(handler))


@pytest.mark.parametrize("handlers", [{"elicit": accept}, {"elicitation": "accept"}], ids=["kind", "handler"])
def test_a_handler_that_can_be_none_is_named_before_anything_is_sent(
    manage: MakeManager, asking: MakeAsking, handlers: dict[str, Any]
):
    server = asking()
    manager = manage(server)
    with pytest.raises(ConfigurationError, match="elicit") as caught:
        manager.call_tool("srv__echo", on_input=handlers)
    assert caught.value.field == "on_input"
    assert server.pids == []


def test_progress_and_questions_reach_the_caller_side_by_side(manage: MakeManager):
    spec = stdio_spec("sdk", SERVERS / "sdk_stdio.py", bare=False)
    manager = manage(spec)
    seen: list[Progress] = []
    steps = manager.call_tool(
        "sdk__slow", {"steps": 2}, on_progress=seen.append, on_input={"roots": defer_input}
    )
    assert (steps.text, len(seen)) == ("2 steps", 2)
    hello = manager.call_tool(
        "sdk__greet",
        on_progress=seen.append,
        on_input={"elicitation": lambda request: request.accept({"name": "Ada"})},
    )
    assert hello.text == "Hello Ada"


@pytest.fixture(scope="module", params=["stdio", "json", "events"])
def sdk(request: pytest.FixtureRequest) -> Iterator[ServerSpec]:
    """A server of the SDK, over stdio and over HTTP in both forms."""
    if request.param == "stdio":
        yield stdio_spec("sdk", SERVERS / "sdk_stdio.py", bare=False)
    else:
        with sdk_over_http(*(["--json"] if request.param == "json" else [])) as url:
            yield http_spec(url, name="sdk")


@pytest.mark.parametrize("link", LINKS)
def test_a_server_of_the_sdk_is_answered_in_a_later_request(manage: MakeManager, sdk: ServerSpec, link: str):
    manager = manage(replace(sdk, link=link))
    with pytest.raises(InputRequiredError) as caught:
        manager.call_tool("sdk__greet", on_input={"elicitation": defer_input})
    (request,) = caught.value.requests
    assert request.message == "Who is there?"
    result = manager.call_tool(
        "sdk__greet",
        input_responses={request.key: request.accept({"name": "Grace"})},
        request_state=caught.value.request_state,
        on_input={"elicitation": defer_input},
    )
    assert result.text == "Hello Grace"


@pytest.mark.parametrize("mode", [ProtocolMode.LEGACY, ProtocolMode.AUTO])
def test_a_server_in_this_process_may_ask_too(manage: MakeManager, mode: ProtocolMode):
    spec = ServerSpec(
        name="here",
        transport=Transport.IN_PROCESS,
        in_process="tests.servers.sdk_server:make_server",
        mode=mode,
    )
    manager = manage(spec)
    manager.input_handlers["elicitation"] = lambda request: request.accept({"name": "Ada"})
    assert manager.call_tool("here__greet").text == "Hello Ada"


def test_a_handle_hands_on_handlers_and_answers(manage: MakeManager, asking: MakeAsking):
    manager = manage(asking())
    manager.connect("srv")
    handle = manager.get_client("srv")
    assert handle is not None
    assert told(handle.call_tool("echo", on_input={"elicitation": accept}))["requestState"] == "s1"
    going_on = asyncio.run(handle.acall_tool("echo", input_responses={"who": {"action": "cancel"}}))
    assert told(going_on)["inputResponses"] == {"who": {"action": "cancel"}}


def test_more_handlers_than_places_take_turns(manage: MakeManager, asking: MakeAsking):
    requests = {str(number): NAME for number in range(PLACES + 1)}
    manager = manage(asking({"": {"inputRequests": requests, "requestState": "s1"}}))
    lock, full, go_on = threading.Lock(), threading.Event(), threading.Event()
    at_work = most = 0

    def answer(request: InputRequest) -> InputAnswer:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
            if at_work == PLACES:
                full.set()
        assert go_on.wait(PATIENCE)
        with lock:
            at_work -= 1
        return request.decline()

    manager.input_handlers["elicitation"] = answer
    with ThreadPoolExecutor(1) as executor:
        running = executor.submit(manager.call_tool, "srv__echo")
        assert full.wait(PATIENCE)
        go_on.set()
        assert len(told(running.result(PATIENCE))["inputResponses"]) == PLACES + 1
    assert most == PLACES


@pytest.mark.parametrize("mode", [ProtocolMode.LEGACY, ProtocolMode.AUTO])
@pytest.mark.parametrize("link", LINKS)
def test_the_frames_of_debugging_show_no_answers(
    manage: MakeManager, link: str, mode: ProtocolMode, caplog: pytest.LogCaptureFixture
):
    spec = stdio_spec("sdk", SERVERS / "sdk_stdio.py", bare=False, link=link, mode=mode)
    manager = manage(spec, debug=True)
    states: list[str | None] = []
    manager.input_handlers["elicitation"] = lambda request: request.accept({"name": "a private answer"})
    with caplog.at_level(logging.DEBUG, "mcp_client_app.frames"):
        assert "a private answer" in manager.call_tool("sdk__greet").text
        if mode is ProtocolMode.AUTO:
            with pytest.raises(InputRequiredError) as caught:
                manager.call_tool("sdk__greet", on_input={"elicitation": defer_input})
            states.append(caught.value.request_state)
    frames = [record.getMessage() for record in caplog.records if record.name == "mcp_client_app.frames"]
    shown = [frame for frame in frames if "Hello" not in frame]
    assert any("accept" in frame or "inputResponses" in frame for frame in shown)
    assert not any("a private answer" in frame for frame in shown)
    assert not any(state in frame for state in states for frame in frames if state)


# Over a connection: the handshake eras -----------------------------------------------


@pytest.mark.parametrize("link", LINKS)
def test_a_deferred_kind_is_not_declared_where_nobody_can_wait(
    manage: MakeManager, peer: MakePeer, link: str
):
    server = peer("srv", "server_request", mode="legacy", link=link)
    manager = manage(server)
    manager.input_handlers["elicitation"] = defer_input
    replies = json.loads(manager.call_tool("srv__echo", {"text": "x"}).text)
    assert replies["elicitation/create"]["code"] in (-32600, -32601)
    assert "elicitation" not in server.wait_for("initialize")["params"]["capabilities"]


@pytest.mark.parametrize("link", LINKS)
def test_over_a_connection_an_answer_is_held_to_what_was_asked_whoever_made_it(
    manage: MakeManager, peer: MakePeer, link: str, caplog: pytest.LogCaptureFixture
):
    manager = manage(peer("srv", "server_request", mode="legacy", link=link))
    manager.input_handlers["elicitation"] = lambda _: InputAnswer("accept", {"name": 5})
    manager.input_handlers["sampling"] = lambda _: InputAnswer("accept", MESSAGE)
    replies = json.loads(manager.call_tool("srv__echo", {"text": "x"}).text)
    assert "could not be answered" in replies["elicitation/create"]["message"]
    assert "name" in caplog.text
    assert replies["sampling/createMessage"]["content"] == MESSAGE["content"]


@pytest.mark.parametrize("link", LINKS)
def test_a_handler_that_is_too_slow_is_given_up(
    manage: MakeManager, peer: MakePeer, link: str, caplog: pytest.LogCaptureFixture
):
    server = peer("srv", "server_request", mode="legacy", link=link, call_timeout=0.5)
    manager = manage(server)
    cancelled = threading.Event()

    async def answer(request: InputRequest) -> InputAnswer:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return request.accept()

    manager.input_handlers["elicitation"] = answer
    manager.connect("srv")
    replies = json.loads(manager.call_tool("srv__echo", {"text": "x"}, timeout=PATIENCE).text)
    assert "could not be answered" in replies["elicitation/create"]["message"]
    assert "did not answer in time" in caplog.text
    assert cancelled.wait(PATIENCE)


@pytest.mark.parametrize("link", LINKS)
def test_a_url_that_has_to_be_visited_first_is_told_and_not_opened(
    manage: MakeManager, peer: MakePeer, link: str
):
    manager = manage(peer("srv", "needs_visit", mode="legacy", link=link))
    with pytest.raises(InputRequiredError, match="visit a URL") as caught:
        manager.call_tool("srv__echo", {"text": "x"})
    (request,) = caught.value.requests
    assert (request.mode, request.url, request.key) == ("url", "https://pay.test/?token=t", "e1")
    assert (caught.value.tool, caught.value.request_state) == ("echo", None)
    assert "pay.test" not in str(caught.value)
