"""The caller's trace goes along with a call, where the project uses OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import propagate, trace

from mcp_client_app.client.tracing import with_trace_context
from tests.client.conftest import MakeManager, MakePeer
from tests.stored import ROOT

TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
PARENT = f"00-{TRACE:032x}-{SPAN:016x}-01"


def inside_a_span() -> Any:
    context = trace.SpanContext(TRACE, SPAN, is_remote=False, trace_flags=trace.TraceFlags(1))
    return trace.use_span(trace.NonRecordingSpan(context))


def meta_of(peer: Any) -> dict[str, Any]:
    """Return what went along with the call."""
    frame = peer.tap.wait_for(lambda frame: frame.get("method") == "tools/call")
    meta: dict[str, Any] = frame["params"].get("_meta", {})
    return meta


def test_a_call_carries_the_trace_of_its_caller(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    with inside_a_span():
        manage(server).call_tool("srv__echo", {"text": "hi"})
    assert meta_of(server)["traceparent"] == PARENT


@pytest.mark.anyio
async def test_so_does_the_async_form(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    with inside_a_span():
        await manage(server).acall_tool("srv__echo", {"text": "hi"})
    assert meta_of(server)["traceparent"] == PARENT


def test_what_the_caller_gives_wins_and_is_kept():
    with inside_a_span():
        usual: dict[str, str] = {}
        propagate.inject(usual)
        assert usual == {"traceparent": PARENT}
        assert with_trace_context({"a": 1}) == {"traceparent": PARENT, "a": 1}
        assert with_trace_context({"traceparent": "mine"}) == {"traceparent": "mine"}


def test_without_a_span_nothing_is_added(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manage(server).call_tool("srv__echo", {"text": "hi"})
    assert "traceparent" not in meta_of(server)
    assert with_trace_context(None) is None


def test_a_project_without_opentelemetry_is_not_made_to_load_it():
    code = (
        "import sys\n"
        "from mcp_client_app.client.tracing import with_trace_context\n"
        "assert with_trace_context({'a': 1}) == {'a': 1}\n"
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=ROOT)
