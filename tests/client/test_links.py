"""Links of a project's own, and what a connection makes of whatever a link does."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from mcp_client_app.client import keeper
from mcp_client_app.client.link import Handshake, Link, LinkContext, OnProgress
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import ConnectionState, ServerSpec, Transport
from mcp_client_app.exceptions import (
    ConfigurationError,
    ConnectionLostError,
    MCPClientError,
    ProtocolError,
    TransportError,
    UnknownPromptError,
)
from tests.client.conftest import MakeManager
from tests.client.peers import PATIENCE, Recorder

HERE = f"{__name__}.ScriptedLink"
TOOLS = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}


class ScriptedLink(Link):
    """A link of a project's own: does what the test has put into its class."""

    kind = "scripted"
    capabilities: ClassVar[dict[str, Any]] = {}
    answers: ClassVar[dict[str, Any]] = {}
    """By method: a result, an error to raise, or a list of these, one for each request."""
    trouble: ClassVar[dict[str, Exception]] = {}
    """By verb (``open``, ``close``, ``listen``): what it raises."""
    made: ClassVar[list[ScriptedLink]] = []

    def __init__(self, context: LinkContext) -> None:
        super().__init__(context)
        self.made.append(self)
        self.listened = 0

    async def open(self) -> None:
        self._get_into_trouble("open")
        self.handshake = Handshake(protocol_version="2025-11-25", capabilities=self.capabilities)

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        answer = self.answers.get(method, ProtocolError("Unknown.", server="srv", rpc_code=-32601))
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Nobody listens."""

    async def listen(self) -> None:
        self.listened += 1
        if self.listened == 1:
            self._get_into_trouble("listen")

    async def close(self) -> None:
        self._down(None)
        self._get_into_trouble("close")

    def _get_into_trouble(self, verb: str) -> None:
        if verb in self.trouble:
            raise self.trouble[verb]


@pytest.fixture(autouse=True)
def _fresh_script() -> None:
    ScriptedLink.made = []
    ScriptedLink.trouble = {}
    ScriptedLink.capabilities = {"tools": {}}
    ScriptedLink.answers = {"tools/list": TOOLS, "tools/call": {"content": [{"type": "text", "text": "hi"}]}}


@pytest.fixture
def manager(manage: MakeManager, recorder: Recorder) -> MCPClientManager:
    return manage(ServerSpec(name="srv", transport=Transport.STDIO, link=HERE), observers=[recorder])


def test_a_link_class_of_the_project_is_used(manager: MCPClientManager):
    assert manager.call_tool("srv__t").text == "hi"
    assert manager.status("srv").link == "scripted"
    assert len(ScriptedLink.made) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no.such.module.Link", "could not be loaded"),
        (f"{__name__}.Nothing", "could not be loaded"),
        ("plain", "could not be loaded"),
        ("builtins.repr", "is no Link"),
    ],
)
def test_what_is_no_link_class_is_a_configuration_error(manage: MakeManager, name: str, message: str):
    manager = manage(ServerSpec(name="srv", transport=Transport.STDIO, link=name))
    with pytest.raises(ConfigurationError, match=message) as caught:
        manager.connect("srv")
    assert caught.value.field == "link"


def test_a_surprise_while_connecting_is_an_error_of_ours(
    manager: MCPClientManager, caplog: pytest.LogCaptureFixture
):
    ScriptedLink.trouble = {"open": ZeroDivisionError("what")}
    with pytest.raises(TransportError, match="ZeroDivisionError"):
        manager.connect("srv")
    assert manager.status("srv").state is ConnectionState.BACKING_OFF
    assert "failed unexpectedly" in caplog.text


def test_a_surprise_while_closing_does_not_keep_the_connection_open(
    manager: MCPClientManager, caplog: pytest.LogCaptureFixture
):
    ScriptedLink.trouble = {"close": ZeroDivisionError("what")}
    manager.connect("srv")
    manager.disconnect("srv")
    assert manager.status("srv").state is ConnectionState.STOPPED
    assert "Closing the connection to 'srv' failed" in caplog.text


def test_a_link_that_does_not_close_is_cut(
    manage: MakeManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def hang(self: ScriptedLink) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(ScriptedLink, "close", hang)
    manager = manage(ServerSpec(name="srv", transport=Transport.STDIO, link=HERE, shutdown_timeout=0.1))
    manager.connect("srv")
    manager.disconnect("srv")
    assert "took too long" in caplog.text


def test_a_subscription_that_breaks_is_taken_up_again_and_the_lists_are_read_anew(
    manager: MCPClientManager, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mcp_client_app.client.backoff.FIRST", 0.0)
    ScriptedLink.trouble = {"listen": TransportError("Broken.", server="srv")}
    manager.connect("srv")
    recorder.wait_for(lambda: len(recorder.catalogues) == 2)
    assert ScriptedLink.made[0].listened == 2


def test_a_link_that_goes_down_without_a_reason_is_lost(manager: MCPClientManager, recorder: Recorder):
    manager.connect("srv")
    engine = manager._engine
    assert engine is not None
    engine.thread.call_soon(lambda: ScriptedLink.made[0]._down(None))
    lost = recorder.wait_for_state("srv", ConnectionState.LOST)
    assert "was lost" in lost.reason
    assert manager.call_tool("srv__t").text == "hi"
    assert len(ScriptedLink.made) == 2


# Lists -------------------------------------------------------------------------------


def test_a_list_that_is_refused_costs_only_itself(manager: MCPClientManager):
    ScriptedLink.capabilities = {"tools": {}, "prompts": {}, "resources": {}}
    ScriptedLink.answers["prompts/list"] = {"prompts": [{"name": "p"}]}
    assert [prompt.name for prompt in manager.list_prompts("srv")] == ["p"]
    # Nothing promises templates, so that not to know them is no failure.
    assert manager.status("srv").warnings == ("resources/list failed: Unknown.",)


def test_a_prompt_that_the_server_does_not_list_is_unknown_whatever_it_calls_it(manager: MCPClientManager):
    ScriptedLink.capabilities = {"tools": {}, "prompts": {}}
    ScriptedLink.answers["prompts/list"] = {"prompts": [{"name": "known"}]}
    ScriptedLink.answers["prompts/get"] = ProtocolError("Internal.", server="srv", rpc_code=-32603)
    with pytest.raises(UnknownPromptError, match="offers no prompt 'other'"):
        manager.get_prompt("srv", "other")
    with pytest.raises(ProtocolError, match="Internal"):
        manager.get_prompt("srv", "known")


def test_a_list_is_read_again_once_its_time_is_over(manager: MCPClientManager, recorder: Recorder):
    ScriptedLink.answers["tools/list"] = [{**TOOLS, "ttlMs": 1}, {"tools": []}, {"tools": []}]
    assert manager.connect("srv").tools == 1
    engine = manager._engine
    assert engine is not None
    connection = engine.pool.existing("srv")
    assert connection is not None
    assert connection.catalogue is not None
    while not connection.catalogue.is_stale:
        pass  # for a millisecond
    # The stale list is given at once, and the new one is fetched behind it.
    assert len(manager.list_tools("srv")) == 1
    recorder.wait_for(lambda: [status.tools for status in recorder.catalogues][1:] == [0])
    assert manager.list_tools() == []


def test_a_change_while_the_lists_are_being_read_leads_to_another_reading(
    manager: MCPClientManager, recorder: Recorder
):
    manager.connect("srv")
    link, engine = ScriptedLink.made[0], manager._engine
    assert engine is not None
    ScriptedLink.answers["tools/list"] = [{"tools": []}, TOOLS, TOOLS]
    told: list[int] = []
    done = threading.Event()

    def change_again(status: Any) -> None:
        told.append(status.tools)
        if len(told) == 1:
            engine.thread.call_soon(changed)
        else:
            done.set()

    def changed() -> None:
        link.context.on_notification("notifications/tools/list_changed", {})

    recorder.catalogue_changed = change_again  # type: ignore[method-assign]
    engine.thread.call_soon(changed)
    assert done.wait(PATIENCE)
    assert told == [0, 1]


def test_a_failed_reading_keeps_the_old_list(manager: MCPClientManager, monkeypatch: pytest.MonkeyPatch):
    warned: queue.SimpleQueue[str] = queue.SimpleQueue()
    monkeypatch.setattr(keeper.logger, "warning", lambda text, *args: warned.put(text % args))
    manager.connect("srv")
    ScriptedLink.answers["tools/list"] = TransportError("Broken.", server="srv")
    with pytest.raises(MCPClientError, match="Broken"):
        manager.refresh("srv")
    assert [tool.name for tool in manager.list_tools("srv")] == ["t"]
    engine = manager._engine
    assert engine is not None
    link = ScriptedLink.made[0]
    engine.thread.call_soon(lambda: link.context.on_notification("notifications/tools/list_changed", {}))
    assert "could not be read: Broken." in warned.get(timeout=PATIENCE)
    assert [tool.name for tool in manager.list_tools("srv")] == ["t"]


def test_a_dead_socket_does_not_use_up_the_second_try_of_a_call(manager: MCPClientManager):
    """H11: what was not sent for want of a socket is sent on another; then the session may be gone, too."""
    dead = TransportError("The socket is closed.", server="srv", sent=False)
    gone = ConnectionLostError("The session is gone.", server="srv", sent=False)
    ScriptedLink.answers["tools/call"] = [dead, gone, {"content": [{"type": "text", "text": "hi"}]}]

    assert manager.call_tool("srv__t").text == "hi"


def test_dead_sockets_are_not_tried_for_ever(manager: MCPClientManager):
    """H11: one is normal after a restart, a third is trouble."""
    ScriptedLink.answers["tools/call"] = [
        TransportError(f"Socket {number} is closed.", server="srv", sent=False) for number in range(1, 5)
    ]

    with pytest.raises(TransportError, match="Socket 3") as caught:
        manager.call_tool("srv__t")

    assert caught.value.details() == {"outcome": "not_sent"}
