"""What requests of 2026-07-28 carry, compared with what the SDK's own session sends."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.session import ClientSession
from mcp_types import LOG_LEVEL_META_KEY, PROTOCOL_VERSION_META_KEY
from pydantic import TypeAdapter

from mcp_client_app.client.envelope import LOG_LEVEL, Envelope

VERSION = "2026-07-28"
DISCOVERED = {
    PROTOCOL_VERSION_META_KEY: "an older one",
    "io.modelcontextprotocol/clientInfo": {"name": "us", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
REGION = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"type": "object", "properties": {"urgent": {"type": "boolean", "x-mcp-header": "Urgent"}}},
        "other": {"type": "string"},
    },
}


def envelope(*, mirrored: bool = True) -> Envelope:
    return Envelope(DISCOVERED, VERSION, mirrored=mirrored)


def listing(**schemas: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]}


def test_each_request_says_who_asks_and_in_which_version():
    params = {"name": "echo"}
    assert envelope().params(params) == {
        "name": "echo",
        "_meta": {**DISCOVERED, PROTOCOL_VERSION_META_KEY: VERSION, LOG_LEVEL_META_KEY: "info"},
    }
    assert params == {"name": "echo"}


def test_of_the_callers_own_metadata_only_the_log_level_goes_before_ours():
    own = {PROTOCOL_VERSION_META_KEY: "forged", LOG_LEVEL_META_KEY: "error", "traceparent": "00-1-2-01"}
    meta = envelope().params({"_meta": own})["_meta"]
    assert meta[PROTOCOL_VERSION_META_KEY] == VERSION
    assert (meta[LOG_LEVEL_META_KEY], meta["traceparent"]) == ("error", "00-1-2-01")


def test_what_is_routed_by_is_repeated_in_headers_over_http_only():
    assert envelope().headers("tools/list", {}) == {
        "mcp-protocol-version": VERSION,
        "mcp-method": "tools/list",
    }
    assert envelope().headers("resources/read", {"uri": "docs://a"})["mcp-name"] == "docs://a"  # type: ignore[index]
    assert envelope().headers("prompts/get", {"name": "straße"})["mcp-name"] == "=?base64?c3RyYcOfZQ==?="  # type: ignore[index]
    assert envelope(mirrored=False).headers("tools/call", {"name": "echo"}) is None


def test_arguments_become_headers_where_the_listed_tool_says_so():
    found = envelope()
    assert found.learn(listing(where=REGION, plain={"type": "object"})) == []
    params = {"name": "where", "arguments": {"region": "eu west", "deep": {"urgent": True}, "other": "x"}}
    headers = found.headers("tools/call", params) or {}
    assert (headers["Mcp-Param-Region"], headers["Mcp-Param-Urgent"]) == ("eu west", "true")
    assert "Mcp-Param-Region" not in (found.headers("tools/call", {"name": "where"}) or {})
    assert "Mcp-Param-Region" not in (found.headers("tools/call", {**params, "name": "plain"}) or {})


def test_a_tool_with_impossible_headers_is_taken_out_and_forgotten():
    found, bad = (
        envelope(),
        {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "no good"}}},
    )
    found.learn(listing(where=REGION))
    page = listing(where=bad, plain={"type": "object"})
    assert found.learn(page) == ["tool 'where': its x-mcp-header annotations are invalid"]
    assert [tool["name"] for tool in page["tools"]] == ["plain"]
    assert "Mcp-Param-Region" not in (
        found.headers("tools/call", {"name": "where", "arguments": {"region": "x"}}) or {}
    )


def test_without_headers_there_is_nothing_to_learn():
    page = listing(
        where={"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "no good"}}}
    )
    assert envelope(mirrored=False).learn(page) == []
    assert len(page["tools"]) == 1


class Taker:
    """A dispatcher that takes what a session of the SDK sends, and answers what it is told to."""

    def __init__(self, answers: dict[str, dict[str, Any]]) -> None:
        self.answers = answers
        self.taken: dict[str, tuple[dict[str, Any], dict[str, str]]] = {}

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        self.taken[method] = (params or {}, dict((opts or {}).get("headers") or {}))
        return self.answers[method]

    async def notify(self, method: str, params: Any, opts: Any = None) -> None:
        """Nothing of this is looked at."""

    async def run(self, *_: Any, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await anyio.sleep_forever()


@pytest.mark.anyio
async def test_ours_is_what_the_session_of_the_sdk_would_have_sent():
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    tools = listing(where=REGION, plain={"type": "object"})
    taker = Taker(
        {
            "server/discover": {**hints, "supportedVersions": [VERSION], "capabilities": {"tools": {}}},
            "tools/list": {**hints, **tools},
            "tools/call": {"resultType": "complete", "content": []},
        }
    )
    arguments = {"region": "größe", "deep": {"urgent": False}, "other": "x"}
    params = {"name": "where", "arguments": arguments, "_meta": {"traceparent": "00-1-2-01"}}
    async with ClientSession(dispatcher=taker, log_level=LOG_LEVEL) as session:  # type: ignore[arg-type]
        session.adopt(types.DiscoverResult.model_validate(await session.send_discover(VERSION)))
        await session.list_tools()
        request = types.Request[dict[str, Any], str](method="tools/call", params=params)
        anything: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
        await session.send_request(request, anything)

    ours = Envelope(taker.taken["server/discover"][0]["_meta"], VERSION, mirrored=True)
    ours.learn(tools)

    assert (ours.params(params), ours.headers("tools/call", params)) == taker.taken["tools/call"]
    assert (ours.params({}), ours.headers("tools/list", {})) == taker.taken["tools/list"]
