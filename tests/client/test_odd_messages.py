"""Messages as no client expects them, over stdio through both links and in both eras: each costs itself only.

The cases P01, P03, P06, P08, P09 and T23, and their neighbours: what is sent instead of, before and beside an
answer.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mcp_client_app.client.exchange import Exchange, recorded
from mcp_client_app.client.leniency.notifications import KNOWN
from mcp_client_app.client.link import Link
from mcp_client_app.datatypes import ManagerOptions
from tests.client.linking import LINKS, linked, outcome
from tests.client.peers import FAULTY, PATIENCE, stdio_spec

pytestmark = pytest.mark.anyio

ERAS = ["handshake", "2026-07-28"]
CONTENT = [{"type": "text", "text": "hi"}]
GOOD = json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"resultType": "complete", "content": CONTENT}})
GOOD = GOOD.replace('"id": 0', '"id": <id>')


def result(structured: str) -> str:
    """Return an answer with this structured content."""
    return GOOD.replace('"content"', f'"structuredContent":{structured},"content"')


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def notice(method: str, params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params})


async def tell(link: Link, *lines: str) -> Any:
    """Have the peer send these lines as its answer; returns how the call ends."""
    arguments = {"lines": [line.encode().decode("latin-1") for line in lines]}
    async with asyncio.timeout(PATIENCE):
        return await outcome(link.request("tools/call", {"name": "echo", "arguments": arguments}))


UNREADABLE = {
    "nested too deeply": result(nested(300)),
    "nested beyond what any parser bears": result(nested(100_000)),
    "nested too deeply beside a long integer": result(f'{{"n":{10**30},"deep":{nested(300)}}}'),
    "nested too deeply in an error": (
        '{"jsonrpc":"2.0","id":<id>,"error":{"code":1,"message":"m","data":' + nested(300) + "}}"
    ),
    "twice on a line": GOOD + GOOD,
    "cut": GOOD[:-3],
    "cut before its id": GOOD.replace('"id": <id>, ', "")[:-2] + '],"id":<id>}',
}

NOISE = {
    "nested too deeply": nested(300),
    "nested too deeply in a notification": notice("notifications/message", {"data": 1}).replace(
        "1}", nested(300) + "}"
    ),
    "nested too deeply in a request of the server's": (
        '{"jsonrpc":"2.0","id":"q","method":"roots/list","params":' + nested(300) + "}"
    ),
    "an empty batch": "[]",
    "a batch within a batch": f"[[{GOOD}]]",
    "a broken request of the server's": '{"jsonrpc":"2.0","id":<id>,"method":"roots/list","params":{}',
    "broken JSON with the id of the call": '{"id":<id>, "level": "info", "text": broken}',
    "a header as of another protocol": "Content-Length: 52\r",
    "colours of a terminal": "\x1b[32mready\x1b[0m",
}

GOOD_ENOUGH = {
    "a batch": (f"[{notice('notifications/message', {'level': 'info', 'data': 1})},{GOOD}]", "hi"),
    "a byte order mark": ("\ufeff" + GOOD, "hi"),
    "another end of line": (GOOD + "\r", "hi"),
    "the id as a string": (GOOD.replace("<id>", '"<id>"'), "hi"),
    "the id with a fraction": (GOOD.replace("<id>", "<id>.0"), "hi"),
    "no version": (GOOD.replace('"jsonrpc": "2.0", ', ""), "hi"),
    "an error that is null": (GOOD.replace('"result"', '"error":null,"result"'), "hi"),
}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", LINKS)
async def test_an_answer_that_cannot_be_read_fails_its_call_at_once(kind: str, era: str):
    async with linked(kind, stdio_spec("docs", FAULTY, "--scenario=as_told", "--era", era)) as link:
        for name, line in UNREADABLE.items():
            failure = await tell(link, line)
            assert failure[1] == "transport_error", name
            assert "cannot be read" in failure[2], name
            assert failure[3] == {"outcome": "unknown"}, name
            assert not link.closed.done(), name
        assert link.diagnostics().noise_count == len(UNREADABLE)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", LINKS)
async def test_what_makes_no_sense_is_counted_and_the_answer_behind_it_comes_through(kind: str, era: str):
    async with linked(kind, stdio_spec("docs", FAULTY, "--scenario=as_told", "--era", era)) as link:
        for number, (name, line) in enumerate(NOISE.items(), start=1):
            answer = await tell(link, line, GOOD)
            assert answer["content"] == CONTENT, name
            assert link.diagnostics().noise_count == number, name


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", LINKS)
async def test_answers_of_careless_writers_are_understood(kind: str, era: str):
    async with linked(kind, stdio_spec("docs", FAULTY, "--scenario=as_told", "--era", era)) as link:
        for name, (line, text) in GOOD_ENOUGH.items():
            answer = await tell(link, line)
            assert answer["content"] == [{"type": "text", "text": text}], name
        assert (await tell(link, result(f'{{"n":{"9" * 10_000}}}')))["structuredContent"] == {"n": None}
        assert (await tell(link, result(nested(150))))["structuredContent"] == json.loads(nested(150))
        latin = {"lines": [GOOD.replace("hi", "caf\xe9")]}  # one byte, that is no UTF-8
        answer = await link.request("tools/call", {"name": "echo", "arguments": latin})
        assert answer["content"][0]["text"] == "caf�"
        assert link.diagnostics().noise_count == 0


@pytest.mark.parametrize("kind", LINKS)
async def test_the_messages_of_a_batch_are_traced_one_by_one_without_the_servers_state(
    kind: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("DEBUG", "mcp_client_app.frames")
    log = notice("notifications/message", {"level": "info", "data": "first"})
    answer = GOOD.replace('"content"', '"requestState":"s3cret-state","content"')
    spec = stdio_spec("docs", FAULTY, "--scenario=as_told")
    async with linked(kind, spec, options=ManagerOptions(debug=True)) as link:
        caplog.clear()
        await tell(link, f"[{log},{answer}]")
    came = [text for text in caplog.messages if text.startswith("docs <- ")]
    assert len(came) == 2
    assert '"first"' in came[0]
    assert '"requestState":"***"' in came[1]


WRONG: list[Any] = [None, True, -1, 1.5, "", "x", [], [1], {}, {"a": 1}]
FIELDS = {
    "notifications/message": ("level", "data", "logger", "_meta"),
    "notifications/progress": ("progressToken", "progress", "total", "message"),
    "notifications/cancelled": ("requestId", "reason", "_meta"),
    "notifications/resources/updated": ("uri", "_meta"),
    "notifications/elicitation/complete": ("elicitationId", "_meta"),
    "notifications/subscriptions/acknowledged": ("notifications", "_meta"),
    "notifications/tools/list_changed": ("_meta",),
    "notifications/resources/list_changed": ("_meta",),
    "notifications/prompts/list_changed": ("_meta",),
}
WHOLE: dict[str, Any] = {
    "level": "info",
    "data": "d",
    "logger": "l",
    "progressToken": "nobody's",
    "progress": 1,
    "total": 2,
    "message": "m",
    "requestId": "nobody's",
    "reason": "r",
    "uri": "a://b",
    "elicitationId": "e",
    "notifications": {"toolsListChanged": True},
}


def malformed() -> list[str]:
    """Return every known notification with each of its fields wrong in many ways, and without any."""
    assert set(FIELDS) == KNOWN
    found = []
    for method, fields in FIELDS.items():
        whole = {name: WHOLE[name] for name in fields if name in WHOLE}
        found += [notice(method, wrong) for wrong in WRONG]
        found += [notice(method, {**whole, name: wrong}) for name in fields for wrong in WRONG]
        found += [notice(method, {key: whole[key] for key in whole if key != name}) for name in fields]
    return found


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", LINKS)
async def test_malformed_notifications_are_mended_or_counted_and_never_quoted_in_the_log(
    kind: str, era: str, caplog: pytest.LogCaptureFixture
):
    # P09. The SDK's session would log each with a traceback that quotes what the server sent.
    caplog.set_level("INFO")
    lines = malformed()
    async with linked(kind, stdio_spec("docs", FAULTY, "--scenario=as_told", "--era", era)) as link:
        answer = await tell(link, *lines, GOOD)
        assert answer["content"] == CONTENT
        await link.request("tools/list", {})  # by now the SDK's tasks for them have run
        assert 0 < link.diagnostics().noise_count < len(lines)
    assert caplog.records == []


@pytest.mark.parametrize("kind", LINKS)
async def test_log_levels_of_other_systems_are_understood(kind: str):
    heard: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
    spec = stdio_spec("docs", FAULTY, "--scenario=as_told")
    async with linked(kind, spec, on_notification=lambda *told: heard.put_nowait(told)) as link:
        levels = ["WARN", "fatal", "trace", "Error", "shouting", 7]
        await tell(link, *(notice("notifications/message", {"level": each}) for each in levels), GOOD)
        told = [(await heard.get())[1] for _ in levels]
    assert [params["level"] for params in told] == ["warning", "critical", "debug", "error", "info", "info"]


@pytest.mark.parametrize("kind", LINKS)
async def test_the_record_of_a_call_holds_what_was_received_however_it_was_written(kind: str):
    async with linked(kind, stdio_spec("docs", FAULTY, "--scenario=as_told")) as link:
        with recorded(Exchange()) as exchange:
            await tell(link, f"[{GOOD}]")
        assert exchange.raw is not None
        assert exchange.raw["content"] == CONTENT
