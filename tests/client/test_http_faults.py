from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mcp_client_app.client.http_faults import FaultReader, Refusal, parse_retry_after
from mcp_client_app.exceptions import (
    AuthRequiredError,
    ServerUnavailableError,
    ThrottledError,
    TransportError,
)


def fault_of(refusal: Refusal, secret: str = "secret-4711") -> Exception:
    return FaultReader("docs", lambda text: text.replace(secret, "***")).fault(refusal)


def rpc_error(code: int, message: str, request_id: object = None) -> bytes:
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_keep_status_and_challenge(status: int) -> None:
    error = fault_of(Refusal(status, challenge='Bearer realm="docs"'))

    assert isinstance(error, AuthRequiredError)
    assert (error.status, error.challenge, error.server) == (status, 'Bearer realm="docs"', "docs")


def test_429_is_throttling_with_the_seconds_to_wait() -> None:
    error = fault_of(Refusal(429, retry_after="7"))

    assert isinstance(error, ThrottledError)
    assert error.retry_after == 7.0


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_5xx_is_an_unavailable_server(status: int) -> None:
    error = fault_of(Refusal(status, "text/html", b"<h1>Bad gateway</h1>", retry_after="3"))

    assert isinstance(error, ServerUnavailableError)
    assert error.retry_after == 3.0
    assert f"HTTP {status}: <h1>Bad gateway</h1>" in str(error)


@pytest.mark.parametrize(
    ("status", "sent"), [(400, False), (404, False), (405, False), (415, False), (408, True), (409, True)]
)
def test_other_refusals_say_whether_the_request_may_have_run(status: int, sent: bool) -> None:
    error = fault_of(Refusal(status))

    assert isinstance(error, TransportError)
    assert (error.status, error.sent) == (status, sent)
    assert "empty body" in str(error)


def test_only_some_statuses_may_carry_the_servers_answer() -> None:
    assert [
        status for status in (400, 401, 403, 404, 405, 422, 429, 500, 503) if Refusal(status).is_ours
    ] == [
        401,
        403,
        429,
        500,
        503,
    ]


def test_a_message_quotes_a_little_of_the_body_without_secrets() -> None:
    body = b"Cannot  POST\r\n\0 with secret-4711 " + b"x" * 1000
    text = str(fault_of(Refusal(400, "text/plain", body)))

    assert "Cannot POST with *** xxx" in text
    assert text.endswith("…")
    assert len(text) < 300


def test_a_secret_is_masked_even_where_the_quotation_ends() -> None:
    assert "secret" not in str(fault_of(Refusal(400, "text/plain", b"x" * 195 + b"secret-4711")))


def test_a_json_rpc_error_is_quoted_by_its_message() -> None:
    assert "HTTP 500: out of memory" in str(fault_of(Refusal(500, body=rpc_error(-32603, "out of memory"))))


@pytest.mark.parametrize("body", [b"", b"nope", b"[1]", b'{"error": "text"}', b'{"result": {}}', b"\xff"])
def test_other_bodies_are_no_json_rpc_errors(body: bytes) -> None:
    assert Refusal(400, body=body).rpc_error is None


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal(404),
        Refusal(404, body=b"<h1>Not found</h1>"),
        Refusal(404, body=rpc_error(-32600, "Session not found")),
        Refusal(404, body=rpc_error(-32601, "Method not found")),
        Refusal(400, body=rpc_error(-32000, "Bad Request: No valid session ID provided")),
        Refusal(400, body=rpc_error(-32600, "Unknown session")),
        Refusal(400, body=b"Session abc has expired"),
        Refusal(400, body=rpc_error(-32000, "Invalid session")),
        Refusal(400, body=rpc_error(-32000, "Bad Request: Server not initialized")),
        Refusal(400, body=b"Invalid or missing session ID"),
        Refusal(400, body=rpc_error(-32600, "Bad Request: Missing Mcp-Session-Id header")),
        Refusal(410),
    ],
)
def test_a_session_that_is_gone_is_recognised(refusal: Refusal) -> None:
    assert refusal.ends_session(request_id=5)


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal(404, body=rpc_error(-32601, "Method not found", 5)),
        Refusal(400),
        Refusal(400, body=rpc_error(-32602, "Unknown tool: session_report")),
        Refusal(400, body=rpc_error(-32602, "Invalid arguments: the session key was not found", 5)),
        Refusal(400, body=rpc_error(-32603, "The database is not initialized")),
        Refusal(400, body=rpc_error(-32600, "Bad Request: Unsupported protocol version")),
        Refusal(500, body=rpc_error(-32600, "Session not found")),
        Refusal(405),
    ],
)
def test_other_refusals_leave_the_session_alone(refusal: Refusal) -> None:
    assert not refusal.ends_session(request_id=5)


def test_wrong_arguments_are_no_sign_of_another_server() -> None:
    wrong = Refusal(400, body=rpc_error(-32602, "Missing session argument", 5))
    assert not wrong.asks_for_handshake(request_id=5)
    assert wrong.asks_for_handshake(request_id=6)
    assert Refusal(400, body=rpc_error(-32602, "Unsupported protocol version", 5)).asks_for_handshake(5)


def test_retry_after_may_be_seconds_or_a_date() -> None:
    soon = parse_retry_after(format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True))

    assert parse_retry_after("2.5") == 2.5
    assert soon is not None
    assert 3000 < soon <= 3600
    assert parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


@pytest.mark.parametrize("value", [None, "", "soon", "inf", "nan"])
def test_a_retry_after_that_says_nothing_is_ignored(value: str | None) -> None:
    assert parse_retry_after(value) is None
