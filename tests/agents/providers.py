"""Agents whose model is one of the fakes of the providers' APIs, reached by the providers' own packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcp_client_app.agents.api import run_agent, stream_agent
from mcp_client_app.agents.result import AgentResult
from mcp_client_app.agents.streams import RunEvent
from mcp_client_app.models import AgentRun
from tests.servers.model_apis import ModelApi

KEY_VARIABLE = "KEY_OF_THE_FAKE_PROVIDER"

PROVIDERS: Mapping[str, tuple[str, Callable[[ModelApi], str]]] = {
    "chat": ("openai-chat:gpt-5", lambda api: api.openai_url),
    "responses": ("openai-responses:gpt-5", lambda api: api.openai_url),
    "anthropic": ("anthropic:claude-sonnet-5-5", lambda api: api.url),
}
"""Name of an API -> the model as an agent names it, and the address to give."""


def fields_for(kind: str, api: ModelApi) -> dict[str, Any]:
    """Return the fields of an agent whose model is the fake."""
    model, url = PROVIDERS[kind]
    return {
        "model": model,
        "base_url": url(api),
        "api_key_variable": KEY_VARIABLE,
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
