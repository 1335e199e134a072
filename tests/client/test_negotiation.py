from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION, Implementation

from mcp_client_app.client.negotiation import Negotiation
from mcp_client_app.client.own_link import QuietSession
from mcp_client_app.datatypes import ProtocolMode
from mcp_client_app.exceptions import ConnectionLostError, MCPClientError, ProtocolError
from tests.client.loopback import Loopback

pytestmark = pytest.mark.anyio

MODERN = "2026-07-28"
DISCOVERED: dict[str, Any] = {
    "result": {
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {}},
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "2"}},
    }
}
INITIALIZED = {
    "result": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "serverInfo": {"name": "s", "version": "1"},
    }
}
UNKNOWN = {"error": {"code": -32601, "message": "Method not found"}}


def unsupported(*versions: str) -> dict[str, Any]:
    data = {"supported": list(versions), "requested": MODERN}
    return {"error": {"code": UNSUPPORTED_PROTOCOL_VERSION, "message": "Unsupported", "data": data}}


class Negotiated:
    """How a negotiation went with a server that gives these answers, one probe after the other."""

    def __init__(self, *probes: Any, initialize: Any = INITIALIZED) -> None:
        answers = iter(probes)
        self._dispatcher = Loopback(
            lambda message: next(answers) if message["method"] == "server/discover" else initialize
        )
        self.version = ""
        self.error: MCPError | MCPClientError | None = None

    async def run(self, mode: ProtocolMode) -> Negotiated:
        client_info = Implementation(name="t", version="1")
        async with QuietSession(dispatcher=self._dispatcher, client_info=client_info) as session:
            negotiation = Negotiation(session, server="srv", probe_timeout=0.05)
            try:
                self.version = (await negotiation.run(mode)).protocol_version
            except (MCPError, MCPClientError) as error:
                self.error = error
        self.repairs, self.died_on_probe = negotiation.repairs, negotiation.probing_ended_it
        return self

    @property
    def methods(self) -> list[str]:
        """What the server was sent."""
        return [message["method"] for message in self._dispatcher.sent]


AUTO, MODERN_ONLY, LEGACY = ProtocolMode.AUTO, ProtocolMode.MODERN, ProtocolMode.LEGACY
GONE = ConnectionLostError("Gone.", server="srv")


async def test_the_new_era_is_taken_when_it_is_there():
    found = await Negotiated(DISCOVERED).run(AUTO)
    assert (found.version, found.methods) == (MODERN, ["server/discover"])


@pytest.mark.parametrize(
    "probe",
    [
        UNKNOWN,
        {"error": {"code": -32600, "message": "Invalid"}},
        {"result": {"nonsense": True}},
        {"result": {**DISCOVERED["result"], "supportedVersions": ["2025-11-25"]}},
        unsupported("2025-11-25"),
        {"error": {"code": UNSUPPORTED_PROTOCOL_VERSION, "message": "no data"}},
        None,
    ],
    ids=["unknown", "invalid", "nonsense", "old", "names-old", "no-data", "silence"],
)
async def test_whatever_shows_that_the_server_is_old_leads_to_the_handshake(probe: Any):
    found = await Negotiated(probe).run(AUTO)
    assert found.version == "2025-06-18"
    assert found.methods == ["server/discover", "initialize", "notifications/initialized"]


async def test_a_server_that_names_the_version_it_was_asked_for_is_asked_again():
    for mode in (AUTO, MODERN_ONLY):
        found = await Negotiated(unsupported(MODERN), DISCOVERED).run(mode)
        assert found.version == MODERN
        assert found.methods == ["server/discover"] * 2


@pytest.mark.parametrize("mode", [AUTO, MODERN_ONLY])
async def test_versions_that_nobody_here_knows_are_named(mode: ProtocolMode):
    found = await Negotiated(unsupported("2099-01-01")).run(mode)
    assert isinstance(found.error, ProtocolError)
    assert "speaks no protocol version that we know. It names: 2099-01-01." in str(found.error)


async def test_an_answer_to_the_probe_that_comes_too_late_is_asked_for_again():
    found = await Negotiated(None, DISCOVERED, initialize=unsupported(MODERN)).run(AUTO)
    assert found.version == MODERN
    assert found.methods == ["server/discover", "initialize", "server/discover"]


@pytest.mark.parametrize(
    ("initialize", "words"),
    [(unsupported(MODERN), "Unsupported"), ({"error": {"code": 1, "message": "Go away"}}, "Go away")],
)
async def test_a_server_that_refuses_both_is_refused_with_its_own_words(initialize: Any, words: str):
    found = await Negotiated(UNKNOWN, None, initialize=initialize).run(AUTO)
    assert isinstance(found.error, MCPError)
    assert words in str(found.error)


@pytest.mark.parametrize("mode", [AUTO, MODERN_ONLY])
async def test_a_dead_network_says_nothing_about_eras(mode: ProtocolMode):
    found = await Negotiated(GONE).run(mode)
    assert isinstance(found.error, ConnectionLostError)
    assert found.methods == ["server/discover"]
    # Only with a choice of eras may the old one be tried on a new process.
    assert found.died_on_probe is (mode is AUTO)


async def test_dying_on_the_handshake_is_not_dying_on_the_probe():
    found = await Negotiated(UNKNOWN, initialize=GONE).run(AUTO)
    assert isinstance(found.error, ConnectionLostError)
    assert not found.died_on_probe


@pytest.mark.parametrize("probe", [UNKNOWN, unsupported("2025-11-25"), {"result": {"nonsense": True}}])
async def test_whoever_insists_on_the_new_era_gets_no_handshake(probe: Any):
    found = await Negotiated(probe).run(MODERN_ONLY)
    assert found.error is not None
    assert found.methods == ["server/discover"]


async def test_what_was_mended_in_the_handshake_is_told():
    found = await Negotiated(initialize={"result": {}}).run(LEGACY)
    assert "serverInfo has no name" in found.repairs
