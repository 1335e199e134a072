"""Scripted models: what they say depends on how often they have been asked, so they work across processes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connections
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

__all__ = ["asks", "call", "in_thread", "says", "scripted", "tool_results"]

Step = ModelResponse | Callable[[list[ModelMessage], AgentInfo], ModelResponse]


def says(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def call(name: str, call_id: str = "", **arguments: Any) -> ToolCallPart:
    part = ToolCallPart(name, json.dumps(arguments))
    if call_id:
        part.tool_call_id = call_id
    return part


def asks(*calls: ToolCallPart, text: str = "") -> ModelResponse:
    return ModelResponse(parts=[*([TextPart(text)] if text else []), *calls])


def scripted(*steps: Step, seen: list[list[ModelMessage]] | None = None) -> FunctionModel:
    """Return a model that takes one step for each response that the conversation has; the last one again."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if seen is not None:
            seen.append(list(messages))
        number = sum(isinstance(message, ModelResponse) for message in messages)
        step = steps[min(number, len(steps) - 1)]
        return step(messages, info) if callable(step) else ModelResponse(parts=list(step.parts))

    return FunctionModel(answer)


def tool_results(messages: Sequence[ModelMessage]) -> list[tuple[str, str, str]]:
    """Return what the model reads of its calls: tool, outcome, text."""
    return [
        (part.tool_name, part.outcome, part.model_response_str(wrap_if_error=False))
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def buyer() -> FunctionModel:
    """A model for ``MCP_CLIENT_MODELS``: looks for a price, orders, and tells what came of it."""

    def report(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return says(" / ".join(text for _, _, text in tool_results(messages)))

    return scripted(
        asks(call("shop__price", "p1", article="tea"), call("shop__order", "o1", article="tea", count=2)),
        report,
    )


def asker() -> FunctionModel:
    """A model for ``MCP_CLIENT_MODELS``: calls a tool whose server asks for something first."""

    def report(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return says(" / ".join(text for _, _, text in tool_results(messages)))

    return scripted(asks(call("safe__echo", "e1", text="x")), report)


def in_thread(step: Callable[[list[ModelMessage], AgentInfo], ModelResponse]) -> Step:
    """Return a step that may use the database: models are asked on the agents' loop."""

    def run(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        found: list[ModelResponse] = []
        thread = threading.Thread(target=lambda: found.append(work(messages, info)))
        thread.start()
        thread.join()
        return found[0]

    def work(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        try:
            return step(messages, info)
        finally:
            connections.close_all()

    return run
