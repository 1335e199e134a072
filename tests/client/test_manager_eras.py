"""Which era of the protocol is spoken, how that is found out, and what servers may ask of us."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import (
    ConnectionState,
    InputAnswer,
    InputRequest,
    ProtocolMode,
    ServerSpec,
    StrictOptions,
    Transport,
)
from mcp_client_app.exceptions import (
    ProtocolError,
    RequestTimeoutError,
    UnknownPromptError,
    UnknownResourceError,
)
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import sdk_over_http
from tests.client.peers import MODERN, SERVERS, Recorder, stdio_spec

# Negotiation -------------------------------------------------------------------------


def test_auto_falls_back_to_the_handshake(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    status = manager.connect("srv")
    assert status.protocol_version == "2025-11-25"
    assert (status.server_name, status.server_version) == ("faulty", "1.0")
    assert status.instructions == "Expect the worst."
    assert status.capabilities["tools"] == {"listChanged": True}
    assert server.methods()[:3] == ["server/discover", "initialize", "notifications/initialized"]


def test_auto_finds_the_new_era(manage: MakeManager, peer: MakePeer):
    server = peer("srv", modern=True)
    manager = manage(server)
    assert manager.connect("srv").protocol_version == MODERN
    assert manager.call_tool("srv__add", {"a": 1, "b": 2}).structured == {"result": 3}
    assert "initialize" not in server.methods()


def test_legacy_never_probes(manage: MakeManager, peer: MakePeer):
    server = peer("srv", mode=ProtocolMode.LEGACY)
    manage(server).connect("srv")
    assert server.methods()[0] == "initialize"


def test_modern_never_falls_back(manage: MakeManager, peer: MakePeer):
    server = peer("srv", mode=ProtocolMode.MODERN)
    with pytest.raises(ProtocolError):
        manage(server).connect("srv")
    assert "initialize" not in server.methods()


def test_a_server_that_is_mute_on_the_probe_gets_the_handshake(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "mute_discover", connect_timeout=1)
    manager = manage(server)
    assert manager.connect("srv").protocol_version == "2025-11-25"
    assert len(server.pids) == 1
    assert "notifications/cancelled" not in server.methods()


def test_a_server_that_dies_on_the_probe_is_started_once_more_the_old_way(
    manage: MakeManager, peer: MakePeer
):
    server = peer("srv", "exit_unless_initialize_first")
    manager = manage(server)
    assert manager.connect("srv").protocol_version == "2025-11-25"
    assert len(server.pids) == 2
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"


def test_the_era_found_is_remembered(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "exit_unless_initialize_first")
    manager = manage(server)
    manager.connect("srv")
    manager.disconnect("srv")
    manager.connect("srv")
    assert len(server.pids) == 3
    assert server.methods().count("server/discover") == 1


def test_a_remembered_era_is_forgotten_when_connecting_fails(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "error_on_initialize", until=True)
    manager = manage(server)
    with pytest.raises(ProtocolError):
        manager.connect("srv")
    (server.directory / "until").touch()
    manager.connect("srv")
    assert server.methods().count("server/discover") == 2


def test_an_unknown_version_is_taken_for_the_latest_handshake(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "unknown_version"))
    status = manager.connect("srv")
    assert status.protocol_version == "2025-11-25"
    assert "the server names the unknown protocol version '2099-01-01'" in status.warnings
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"


def test_an_unknown_version_is_refused_if_that_is_asked_for(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "unknown_version", strict=StrictOptions(version_negotiation=True)))
    with pytest.raises(ProtocolError, match="no protocol version that we know"):
        manager.connect("srv")


def test_a_handshake_with_nothing_but_the_version_is_enough(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "bare_initialize"))
    status = manager.connect("srv")
    assert status.server_name == "unknown"
    assert status.tools == 13
    assert "capabilities was no object" in status.warnings


@pytest.mark.parametrize("modern", [False, True])
def test_cancelling_reaches_the_server_in_both_eras(manage: MakeManager, peer: MakePeer, modern: bool):
    server = peer("srv", modern=modern)
    manager = manage(server)
    manager.connect("srv")
    with pytest.raises(RequestTimeoutError):
        manager.call_tool("srv__hang", timeout=0.3)
    cancelled = server.wait_for("notifications/cancelled")
    assert cancelled["params"]["requestId"] == server.wait_for("tools/call")["id"]


# What servers ask of us --------------------------------------------------------------


def test_requests_of_the_server_are_refused_and_the_call_goes_on(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "server_request"))
    replies = json.loads(manager.call_tool("srv__echo", {"text": "hi"}).text)
    assert replies["ping"] == {}
    for method in ("elicitation/create", "sampling/createMessage", "roots/list", "nothing/known"):
        assert replies[method]["code"] in (-32600, -32601, -32602), method


def test_without_handlers_no_capability_is_declared(manage: MakeManager, peer: MakePeer):
    server = peer("srv", mode="legacy")
    manage(server).connect("srv")
    capabilities = server.wait_for("initialize")["params"]["capabilities"]
    assert not {"elicitation", "sampling", "roots"} & set(capabilities)


def test_handlers_answer_and_declare_their_capabilities(manage: MakeManager, peer: MakePeer):
    asked: list[InputRequest] = []

    def elicit(request: InputRequest) -> InputAnswer:
        asked.append(request)
        return request.accept({"name": "Ada"})

    def refuse(request: InputRequest) -> InputAnswer:
        return request.decline()

    async def roots(request: InputRequest) -> InputAnswer:
        return request.accept({"roots": [{"uri": "file:///srv", "name": "srv"}]})

    server = peer("srv", "server_request", mode="legacy")
    manager = manage(server)
    manager.input_handlers.update({"elicitation": elicit, "sampling": refuse, "roots": roots})
    replies = json.loads(manager.call_tool("srv__echo", {"text": "hi"}).text)
    assert replies["elicitation/create"] == {"action": "accept", "content": {"name": "Ada"}}
    assert replies["sampling/createMessage"]["code"] == -1
    assert replies["roots/list"]["roots"] == [{"uri": "file:///srv", "name": "srv"}]
    (request,) = asked
    assert (request.server, request.kind, request.message) == ("srv", "elicitation", "Who are you?")
    capabilities = server.wait_for("initialize")["params"]["capabilities"]
    assert {"elicitation", "sampling", "roots"} <= set(capabilities)


def test_a_failing_or_lying_handler_answers_with_an_error(
    manage: MakeManager, peer: MakePeer, caplog: pytest.LogCaptureFixture
):
    async def fail(request: InputRequest) -> InputAnswer:
        raise ZeroDivisionError

    def lie(request: InputRequest) -> InputAnswer:
        return request.accept({"nonsense": "a secret"})

    manager = manage(peer("srv", "server_request"))
    manager.input_handlers.update({"elicitation": fail, "sampling": lie})
    replies = json.loads(manager.call_tool("srv__echo", {"text": "hi"}).text)
    assert replies["elicitation/create"]["code"] == -32603
    assert "could not be answered" in replies["sampling/createMessage"]["message"]
    assert "ZeroDivisionError" in caplog.text
    assert "does not fit: " in caplog.text
    assert "a secret" not in caplog.text


@pytest.mark.parametrize("mode", [ProtocolMode.LEGACY, ProtocolMode.AUTO])
def test_a_tool_may_ask_the_user_in_both_eras(manage: MakeManager, mode: ProtocolMode):
    manager = manage(sdk_spec(mode))
    manager.input_handlers["elicitation"] = lambda request: request.accept({"name": "Ada"})
    assert manager.call_tool("sdk__greet").text == "Hello Ada"
    expected = "2025-11-25" if mode is ProtocolMode.LEGACY else MODERN
    assert manager.status("sdk").protocol_version == expected


@pytest.fixture
def over_sse(manage: MakeManager) -> Iterator[MCPClientManager]:
    """Reach the SDK's server over the transport of 2024-11-05."""
    with sdk_over_http("--sse") as url:
        manager = manage(ServerSpec(name="sdk", transport=Transport.SSE, url=url))
        yield manager
        manager.close()


def test_a_tool_may_ask_the_user_over_the_oldest_transport(over_sse: MCPClientManager):
    asked: list[InputRequest] = []

    def answer(request: InputRequest) -> InputAnswer:
        asked.append(request)
        return request.accept({"name": "Ada"})

    over_sse.input_handlers["elicitation"] = answer
    assert over_sse.call_tool("sdk__greet").text == "Hello Ada"
    assert [(request.server, request.kind, request.message) for request in asked] == [
        ("sdk", "elicitation", "Who is there?")
    ]


def test_without_a_handler_the_oldest_transport_lets_nobody_ask(over_sse: MCPClientManager):
    with pytest.raises(ProtocolError, match="did not declare"):
        over_sse.call_tool("sdk__greet")
    assert over_sse.call_tool("sdk__echo", {"text": "still here"}).text == "still here"


# Everything else that a well-behaved server offers -------------------------------------


def sdk_spec(mode: ProtocolMode, **fields: Any) -> ServerSpec:
    return stdio_spec("sdk", SERVERS / "sdk_stdio.py", bare=False, mode=mode, **fields)


@pytest.mark.parametrize("mode", [ProtocolMode.LEGACY, ProtocolMode.MODERN])
def test_resources_prompts_and_completions_work_in_both_eras(
    manage: MakeManager, mode: ProtocolMode, recorder: Recorder
):
    manager = manage(sdk_spec(mode), observers=[recorder])
    status = manager.connect("sdk")
    assert status.protocol_version == ("2025-11-25" if mode is ProtocolMode.LEGACY else MODERN)

    notes, pixel = sorted(manager.list_resources("sdk"), key=lambda resource: resource.uri)
    assert (notes.uri, notes.title, notes.mime_type) == ("peer://notes", "Notes", "text/plain")
    assert manager.read_resource("sdk", "peer://notes").text == "one\ntwo\n"
    assert manager.read_resource("sdk", pixel.uri).contents[0]["blob"].startswith("iVBOR")
    (template,) = manager.list_resource_templates("sdk")
    assert template.uri_template == "peer://colours/{colour}"
    assert manager.read_resource("sdk", "peer://colours/red").text == "A fine red."

    (prompt,) = manager.list_prompts("sdk")
    assert [(a.name, a.required) for a in prompt.arguments] == [("thing", True), ("colour", False)]
    filled = manager.get_prompt("sdk", "paint", {"thing": "it"})
    assert [message["role"] for message in filled.messages] == ["user", "assistant"]
    assert filled.messages[0]["content"]["text"] == "Paint it red."

    found = manager.complete("sdk", {"type": "ref/prompt", "name": "paint"}, "colour", "gr")
    assert (found.values, found.total, found.has_more) == (("green", "grey"), 2, False)

    mixed = manager.call_tool("sdk__mixed")
    assert [block["type"] for block in mixed.content] == ["text", "resource_link", "resource"]
    assert mixed.meta == {**(mixed.meta or {}), "peer/mood": "good"}
    assert manager.call_tool("sdk__image").content[0]["mimeType"] == "image/png"

    with pytest.raises(UnknownResourceError, match="no colour") as caught:
        manager.read_resource("sdk", "peer://colours/pink")
    assert caught.value.uri == "peer://colours/pink"
    with pytest.raises(UnknownPromptError) as unknown:
        manager.get_prompt("sdk", "nonsense")
    assert unknown.value.prompt == "nonsense"


def test_every_verb_has_an_async_twin_that_does_the_same(manage: MakeManager):
    manager = manage(sdk_spec(ProtocolMode.AUTO))

    async def use() -> None:
        status = await manager.aconnect("sdk")
        assert status.is_ready
        assert status == await manager.astatus("sdk") == (await manager.astatus())[0]
        assert await manager.alist_servers() == ["sdk"]
        assert (await manager.acall_tool("echo", {"text": "hi"})).text == "hi"
        assert (await manager.afind_tool("echo")).public_name == "sdk__echo"  # type: ignore[union-attr]
        assert len(await manager.alist_tools()) == len((await manager.alisting("tools", "sdk")).items) > 10
        assert len(await manager.alist_resources("sdk")) == 2
        assert len(await manager.alist_resource_templates("sdk")) == 1
        assert (await manager.aread_resource("sdk", "peer://notes")).text == "one\ntwo\n"
        assert len(await manager.alist_prompts("sdk")) == 1
        assert len((await manager.aget_prompt("sdk", "paint", {"thing": "it"})).messages) == 2
        ref = {"type": "ref/prompt", "name": "paint"}
        assert (await manager.acomplete("sdk", ref, "colour", "re")).values == ("red",)
        assert (await manager.arefresh("sdk")).is_ready
        seen: list[str] = []
        done = await manager.aconnect_all(on_progress=lambda name, status: seen.append(name))
        assert done["sdk"].is_ready
        assert seen == ["sdk"]
        async with manager.connect_server("sdk") as connection:
            assert (await connection.acall_tool("echo", {"text": "own"})).text == "own"
            assert (await connection.aread_resource("peer://notes")).text == "one\ntwo\n"
            assert len((await connection.aget_prompt("paint", {"thing": "it"})).messages) == 2
        await manager.adisconnect("sdk")
        assert (await manager.astatus("sdk")).state is ConnectionState.STOPPED
        await manager.adisconnect_all()

    asyncio.run(use())
