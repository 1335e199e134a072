"""What the model of the agents does: it asks for some calls, then it is content."""

from __future__ import annotations

import json

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

__all__ = ["CALLS", "scripted"]

CALLS = 5


def scripted(tool: str) -> FunctionModel:
    """Return a model that calls a tool so many times at once, and then says something."""
    arguments = json.dumps({"text": "hello"})

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if any(isinstance(message, ModelResponse) for message in messages):
            return ModelResponse(parts=[TextPart("Done.")])
        return ModelResponse(parts=[ToolCallPart(tool, arguments) for _ in range(CALLS)])

    return FunctionModel(answer)
