"""Which link a server gets: by its row, by the settings, by what the installed SDK allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mcp_client_app.client.link import Handshake, Link, OnProgress
from mcp_client_app.datatypes import ManagerOptions, ServerSpec, Transport
from mcp_client_app.exceptions import ProtocolError
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import http_spec, linked, make, outcome
from tests.client.test_compat import AsKnown, RunTakesMore

in_a_loop = pytest.mark.anyio


class PlainLink(Link):
    """A link as a project might write one: it talks to nothing at all."""

    kind = "plain"

    async def open(self) -> None:
        self.handshake = Handshake(
            protocol_version="2025-11-25", server_name="plain", capabilities={"tools": {}}
        )

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        if method == "tools/list":
            return {"tools": [{"name": "shout", "inputSchema": {"type": "object"}}]}
        if method == "tools/call":
            if on_progress is not None:
                on_progress(1.0, 2.0, "half")
            return {"content": [{"type": "text", "text": str(params["arguments"]["text"]).upper()}]}
        raise ProtocolError(f"No {method!r} here.", server=self.context.spec.name, rpc_code=-32601)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Nobody listens."""

    async def close(self) -> None:
        self._down(None)


@pytest.fixture
def other_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """An SDK whose dispatcher port has changed, as a later release may bring it."""
    monkeypatch.setattr("mcp.shared.dispatcher.Dispatcher", RunTakesMore)


def test_a_link_class_of_the_project_can_be_the_default_of_all_servers(manage: MakeManager):
    spec = ServerSpec(name="plain", transport=Transport.STREAMABLE_HTTP, url="http://nowhere.invalid")
    manager = manage(spec, default_link=f"{__name__}:PlainLink")
    reports: list[Any] = []

    assert manager.call_tool("shout", {"text": "hi"}, on_progress=reports.append).text == "HI"
    assert [report.message for report in reports] == ["half"]
    status = manager.status("plain")
    assert (status.is_ready, status.link, status.server_name) == (True, "plain", "plain")


@in_a_loop
@pytest.mark.parametrize(
    ("of_server", "default", "kind"),
    [("", "own", "own"), ("", "stock", "stock"), ("stock", "own", "stock"), ("own", "stock", "own")],
)
async def test_the_server_has_the_say_then_the_settings(of_server: str, default: str, kind: str):
    link = make(of_server, http_spec("http://127.0.0.1:9"), ManagerOptions(default_link=default))

    assert link.kind == kind


@in_a_loop
async def test_legacy_sse_is_carried_by_stock_alone():
    assert make("own", http_spec("http://127.0.0.1:9", transport=Transport.SSE)).kind == "stock"


@in_a_loop
async def test_a_default_of_stock_leaves_servers_in_this_process_alone():
    spec = ServerSpec(name="here", transport=Transport.IN_PROCESS, in_process="somewhere.server")

    assert make("", spec, ManagerOptions(default_link="stock")).kind == "own"


@in_a_loop
async def test_stock_speaks_to_no_server_in_this_process():
    spec = ServerSpec(name="here", transport=Transport.IN_PROCESS, in_process="somewhere.server")
    link = make("stock", spec)
    failure = await outcome(link.open())
    await link.close()

    assert failure[1] == "configuration"
    assert "use 'own'" in failure[2]


@pytest.mark.usefixtures("other_sdk")
def test_with_another_dispatcher_port_stock_takes_over_and_says_so(
    manage: MakeManager, peer: MakePeer, caplog: pytest.LogCaptureFixture
):
    manager = manage(peer("srv"))

    assert manager.connect("srv").link == "stock"
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"
    assert "The link 'stock' takes over for 'srv'" in caplog.text


@in_a_loop
@pytest.mark.usefixtures("other_sdk")
async def test_servers_in_this_process_keep_own_since_nothing_else_speaks_to_them():
    spec = ServerSpec(name="here", transport=Transport.IN_PROCESS, in_process="somewhere.server")

    assert make("own", spec).kind == "own"


@in_a_loop
async def test_a_port_that_only_moved_to_another_class_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mcp.shared.dispatcher.Dispatcher", AsKnown)

    assert make("own", http_spec("http://127.0.0.1:9")).kind == "own"


@in_a_loop
@pytest.mark.parametrize("kind", ["own", "stock"])
async def test_closing_twice_and_asking_after_it_are_harmless(kind: str, peer: MakePeer):
    async with linked(kind, peer("srv").spec) as link:
        pid = link.diagnostics().pid
        await link.close()
        failure = await outcome(link.request("ping", {}))

    assert pid is not None
    assert (failure[1], failure[3]["outcome"]) == ("connection_lost", "not_sent")
