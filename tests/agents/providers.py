"""Agents whose model is one of the fakes of the providers' APIs, reached by the providers' own packages."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from mcp_client_app.agents.api import run_agent, stream_agent
from mcp_client_app.agents.result import AgentResult
from mcp_client_app.agents.streams import RunEvent
from mcp_client_app.models import AgentConfig, AgentRun, AgentServer
from tests.servers import sdk_stdio
from tests.servers.model_apis import KEY, Asked, ModelApi

KEY_VARIABLE = "KEY_OF_THE_FAKE_PROVIDER"

PROVIDERS: Mapping[str, tuple[str, Callable[[ModelApi], str]]] = {
    "chat": ("openai-chat:gpt-5", lambda api: api.openai_url),
    "responses": ("openai-responses:gpt-5", lambda api: api.openai_url),
    "anthropic": ("anthropic:claude-sonnet-5-5", lambda api: api.url),
}
"""Name of an API -> the model as an agent names it, and the address to give."""


@pytest.fixture
def clerk(
    shop: Any, add_mcp_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AgentConfig]:
    """Store the agent ``clerk``, which has a server in this process and perhaps one over stdio."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)

    def make(kind: str, api: ModelApi, *, peer: bool = False, **fields: Any) -> AgentConfig:
        row = AgentConfig.objects.create(name="clerk", **{**fields_for(kind, api), **fields})
        servers = [shop]
        if peer:
            entry = {"command": sys.executable, "args": [sdk_stdio.__file__]}
            servers.append(add_mcp_server("peer", entry))
        for server in servers:
            AgentServer.objects.create(agent=row, server=server)
        return row

    return make


def told(asked: Asked) -> list[str]:
    """Return what the model reads of the calls of its last turn, in the order in which it reads it."""
    return [as_words(text) for text in asked.results.values()]


def as_words(text: str) -> str:
    """Undo the form in which a failure goes to Chat Completions and Responses."""
    if text.startswith('{"error":'):
        return str(json.loads(text)["error"])
    return text


def fields_for(kind: str, api: ModelApi) -> dict[str, Any]:
    """Return the fields of an agent whose model is the fake."""
    model, url = PROVIDERS[kind]
    return {
        "model": model,
        "base_url": url(api),
        "api_key_variable": KEY_VARIABLE,
        "may_reference_environment": True,
        # Without it, answers of this length are always streamed from Anthropic.
        "model_settings": {"max_tokens": 1000},
    }


def whole(name: str, prompt: str, **options: Any) -> AgentResult:
    """Run an agent without streaming."""
    return run_agent(name, prompt, **options)


def in_pieces(name: str, prompt: str, **options: Any) -> AgentResult:
    """Run an agent whose model streams; what is told of it has to agree with what is kept."""
    events = list(stream_agent(name, prompt, **options))
    run = AgentRun.objects.get(pk=events[-1].run_id)
    assert events[-1].is_last
    assert [event.number for event in events if event.number] == list(range(1, run.events.count() + 1))
    assert list(run.events.order_by("number").values_list("kind", flat=True)) == [
        event.kind for event in events if event.number
    ]
    return AgentResult.of(run)


WAYS: Mapping[str, Callable[..., AgentResult]] = {"whole": whole, "in_pieces": in_pieces}


def texts(events: list[RunEvent]) -> Iterator[str]:
    """Yield the texts of the model's turns, put together from their pieces."""
    text: str | None = None
    for event in events:
        if event.kind == "text.start":
            if text is not None:
                yield text
            text = event.data["text"]
        elif event.kind == "text.delta":
            assert text is not None
            text += event.data["text"]
    if text is not None:
        yield text
