"""A scripted model for ``MCP_CLIENT_MODELS``: asks for tools, then tells what the last one said."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

__all__ = ["caller", "teller"]


def caller() -> FunctionModel:
    """Return a model that does what the prompt says: in each line a tool and its arguments as JSON."""
    return FunctionModel(_answer, stream_function=_stream, model_name="caller")


def teller() -> FunctionModel:
    """Return a model that asks for nothing."""

    async def tell(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "It is 5."

    return FunctionModel(stream_function=tell, model_name="teller")


def _answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    lines = str(next(part.content for part in parts if isinstance(part, UserPromptPart))).splitlines()
    returns = [part for part in parts if isinstance(part, ToolReturnPart)]
    if len(returns) == len(lines):
        return ModelResponse(parts=[TextPart(f"It said: {returns[-1].model_response_str()}")])
    name, _, arguments = lines[len(returns)].partition(" ")
    call = ToolCallPart(name, json.loads(arguments or "{}"), f"call-{len(returns)}")
    return ModelResponse(parts=[call])


async def _stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    for part in _answer(messages, info).parts:
        if isinstance(part, ToolCallPart):
            yield {0: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}
        elif isinstance(part, TextPart):
            for word in re.findall(r"\S+\s*", part.content):
                yield word
