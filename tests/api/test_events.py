"""Progress as server-sent events: in the test client, and over sockets under WSGI and ASGI."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from asgiref.sync import sync_to_async
from django.core.asgi import get_asgi_application
from django.db import connections
from django.test import AsyncClient

from mcp_client_app import services
from mcp_client_app.api import streaming
from mcp_client_app.models import CallReceipt, ToolCall
from mcp_client_app.testing.asgi import serve_asgi
from tests.api.conftest import Api
from tests.client.peers import WireTap
from tests.stored import close_connections, stored

STREAM = {"accept": "text/event-stream"}
PLACE = "/api/mcp/tools/call/"
Event = tuple[str, Any]


def parsed(text: bytes | str) -> list[Event]:
    """Return the events of a stream; comments are none."""
    decoded = text.decode() if isinstance(text, bytes) else text
    found = []
    for block in decoded.strip().split("\n\n"):
        if block.startswith(":"):
            continue
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def events_of(api: Api, body: dict[str, Any], **headers: str) -> list[Event]:
    answer = api.post("tools/call/", body, **STREAM, **headers)
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
    return parsed(b"".join(answer.streaming_content))


def echo(**more: Any) -> dict[str, Any]:
    return {"name": "peer__echo", "arguments": {"text": "hello"}, **more}


# What is told


def test_progress_is_told_before_the_result(api):
    stored("peer", "--scenario=progress=3")

    *reports, (last, result) = events_of(api, echo())

    assert reports == [
        ("progress", {"progress": step, "total": 3, "message": f"step {step}"}) for step in (1, 2, 3)
    ]
    assert (last, result["text"], result["is_error"]) == ("result", "hello", False)
    row = ToolCall.objects.get()
    assert (row.code, row.username, row.correlation_id) == ("ok", "admin", result["correlation_id"])


def test_a_failure_is_the_last_event_with_its_status(api):
    stored("peer", blocked_tools=["echo"])

    [(name, error)] = events_of(api, echo())

    assert (name, error["code"], error["status"], error["server"]) == ("error", "tool_blocked", 403, "peer")


def test_the_limit_of_the_request_does_not_end_a_stream_but_the_calls_own_does(api, settings):
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 0.01
    stored("peer")

    assert [name for name, _ in events_of(api, echo())] == ["result"]
    [(name, error)] = events_of(api, {"name": "peer__hang", "timeout": 0.2})
    assert (name, error["code"], error["outcome"]) == ("error", "timeout", "unknown")


def test_what_is_wrong_before_a_stream_begins_is_answered_as_ever(api, api_as):
    missing = api.post("tools/call/", {}, **STREAM)
    forbidden = api_as("view_serverconfig").post("tools/call/", echo(), **STREAM)

    for answer, status in ((missing, 400), (forbidden, 403)):
        assert (answer.status_code, answer["Content-Type"]) == (status, "application/json")
        assert answer.json()["code"]


def test_a_stream_with_a_key_runs_once_and_its_repeat_gets_the_answer(api):
    stored("peer")
    [(_, result)] = events_of(api, echo(), idempotency_key="one")
    replayed = api.post("tools/call/", echo(), idempotency_key="one", **STREAM)
    assert (replayed["Content-Type"], replayed["Idempotent-Replayed"]) == ("application/json", "true")
    assert replayed.json() == result
    assert ToolCall.objects.count() == 1


# Asynchronously


@pytest.mark.usefixtures("_site")
async def test_under_asgi_the_stream_is_asynchronous():
    def prepare() -> AsyncClient:
        from django.contrib.auth.models import User

        stored("peer", "--scenario=progress=2")
        client = AsyncClient()
        client.force_login(User.objects.create_superuser("admin"))
        return client

    client = await sync_to_async(prepare)()
    try:
        answer: Any = await client.post(PLACE, echo(), content_type="application/json", headers=STREAM)
        assert answer.is_async
        text = b"".join([chunk async for chunk in answer.streaming_content])
    finally:
        await close_connections()

    assert [name for name, _ in parsed(text)] == ["progress", "progress", "result"]


# Over sockets


@dataclass
class Site:
    """The test project behind a real server, and how to call it."""

    url: str
    password: str = "secret"

    def open(self, body: dict[str, Any], **headers: str) -> tuple[http.client.HTTPConnection, Any]:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        credentials = base64.b64encode(f"admin:{self.password}".encode()).decode()
        connection.request(
            "POST",
            PLACE,
            json.dumps(body),
            {
                "Authorization": f"Basic {credentials}",
                "Content-Type": "application/json",
                "Accept": "text/event-stream",
                **headers,
            },
        )
        return connection, connection.getresponse()


def block(response: Any) -> str:
    """Read up to the next blank line."""
    lines: list[str] = []
    while line := response.readline().decode().rstrip("\n"):
        lines.append(line)
    return "\n".join(lines)


@contextlib.contextmanager
def under_asgi() -> Iterator[str]:
    with serve_asgi(get_asgi_application()) as url:
        yield url
    connections.close_all()


@pytest.fixture(params=["wsgi", "asgi"])
def site(request, api, monkeypatch) -> Iterator[Site]:
    monkeypatch.setattr(streaming, "KEEP_ALIVE", 0.05)
    api.user.set_password("secret")
    api.user.save()
    if request.param == "wsgi":
        yield Site(request.getfixturevalue("live_server").url)
    else:
        with under_asgi() as url:
            yield Site(url)


def test_events_come_while_the_call_runs(site, tmp_path):
    stored("peer")
    go = tmp_path / "go"

    connection, response = site.open({"name": "peer__wait", "arguments": {"path": str(go)}})
    with contextlib.closing(connection):
        assert response.status == 200
        assert block(response).startswith(": the call has begun")
        assert block(response).startswith(": it still runs")
        go.touch()
        while (text := block(response)).startswith(":"):
            pass

    assert parsed(text)[0][1]["text"] == "there"


def test_a_client_that_goes_away_has_its_call_cancelled(site, tmp_path):
    tap = WireTap(tmp_path / "wire")
    with contextlib.closing(tap):
        stored("peer", f"--wire-log={tap.path}")
        services.connect("peer")

        connection, response = site.open({"name": "peer__hang"}, **{"Idempotency-Key": "one"})
        block(response)
        tap.wait_for(lambda frame: frame.get("method") == "tools/call")
        response.close()
        connection.close()

        tap.wait_for(lambda frame: frame.get("method") == "notifications/cancelled")

    while CallReceipt.objects.get().status is None:
        pass
    receipt = CallReceipt.objects.get()
    assert (receipt.status, json.loads(bytes(receipt.answer or b""))["code"]) == (504, "cancelled")
