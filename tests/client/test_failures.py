from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import BaseModel, ValidationError

from mcp_client_app.client.failures import from_foreign, root_cause, safe_cause
from mcp_client_app.exceptions import (
    ConnectionLostError,
    InvalidArgumentsError,
    MCPClientError,
    ProtocolError,
    RequestTimeoutError,
    ServerCrashedError,
    TransportError,
    UnknownPromptError,
    UnknownResourceError,
)


def translated(error: BaseException, method: str = "tools/call", **options: Any) -> MCPClientError:
    return from_foreign(error, server="srv", method=method, **options)


def test_the_cause_is_found_in_nested_groups_and_cancellation_is_not_it():
    cause = ConnectionRefusedError()
    group = BaseExceptionGroup(
        "", [asyncio.CancelledError(), ExceptionGroup("", [ExceptionGroup("", [cause])])]
    )
    assert root_cause(group) is cause
    cancelled = asyncio.CancelledError()
    assert root_cause(BaseExceptionGroup("", [cancelled])) is cancelled


def test_our_own_errors_pass_unchanged():
    crash = ServerCrashedError("It crashed.", server="srv")
    assert translated(ExceptionGroup("", [crash])) is crash


@pytest.mark.parametrize(
    ("code", "text", "method", "kind"),
    [
        (-32602, "Invalid params", "tools/call", InvalidArgumentsError),
        (-32602, "Missing argument", "prompts/get", InvalidArgumentsError),
        (-32602, "Unknown prompt: x", "prompts/get", UnknownPromptError),
        (-32602, "Resource not found", "resources/read", UnknownResourceError),
        (-32002, "whatever", "resources/read", UnknownResourceError),
        (-32002, "whatever", "tools/call", ProtocolError),
        (-32603, "Internal error", "tools/call", ProtocolError),
        (CONNECTION_CLOSED, "Connection closed", "tools/call", ConnectionLostError),
        (CONNECTION_CLOSED, "the tool says so", "tools/call", ProtocolError),
    ],
)
def test_json_rpc_errors_are_told_apart(code: int, text: str, method: str, kind: type[MCPClientError]):
    error = translated(MCPError(code, text), method)
    assert type(error) is kind
    assert error.server == "srv"
    if isinstance(error, ProtocolError):
        assert (error.rpc_code, error.message) == (code, text)


def test_a_resource_that_was_not_found_in_the_new_era_is_known_by_its_uri():
    error = translated(MCPError(-32602, "Nope", {"uri": "a://b"}), "resources/read")
    assert isinstance(error, UnknownResourceError)


def test_messages_of_servers_are_redacted_and_cut():
    error = translated(
        MCPError(-32603, "secret " + "x" * 5000), redact=lambda text: text.replace("secret", "***")
    )
    assert str(error).startswith("*** x")
    assert len(str(error)) < 2100


def test_an_answer_that_breaks_the_protocol_names_the_place_but_not_the_value():
    class Model(BaseModel):
        number: int

    with pytest.raises(ValidationError) as caught:
        Model.model_validate({"number": "hunter2"})
    error = translated(caught.value)
    assert isinstance(error, ProtocolError)
    assert "number" in str(error)
    assert "hunter2" not in str(error)


def test_operating_system_errors_time_outs_and_surprises_are_translated():
    assert "Connection refused" in str(translated(ConnectionRefusedError(111, "Connection refused")))
    timeout = translated(TimeoutError(), sent=False)
    assert isinstance(timeout, RequestTimeoutError)
    assert timeout.sent is False
    surprise = translated(KeyError("what"), sent=False)
    assert isinstance(surprise, TransportError)
    assert surprise.sent is False
    version = translated(RuntimeError("Unsupported protocol version: 1"), "initialize")
    assert isinstance(version, ProtocolError)


def test_what_a_server_echoes_in_the_data_of_an_error_is_redacted():
    data = {"token s3cret-value": ["s3cret-value", {"deep": "is s3cret-value", "number": 5}]}
    error = translated(MCPError(-32000, "no", data), redact=lambda text: text.replace("s3cret-value", "***"))
    assert isinstance(error, ProtocolError)
    assert error.data == {"token ***": ["***", {"deep": "is ***", "number": 5}]}
    assert error.details()["data"] == error.data


def test_exceptions_that_quote_the_server_are_no_cause_that_a_traceback_prints():
    class Shape(BaseModel):
        size: int

    with pytest.raises(ValidationError) as quoting:
        Shape.model_validate({"size": "s3cret-value"})
    assert safe_cause(quoting.value) is None
    assert safe_cause(MCPError(-32000, "s3cret-value")) is None
    assert safe_cause(ExceptionGroup("", [MCPError(-32000, "s3cret-value")])) is None
    for harmless in (ConnectionRefusedError(), TransportError(), TimeoutError()):
        assert safe_cause(harmless) is harmless
