"""Models that follow a script, for tests of agents: no key, no network. Needs the extra ``agents``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

__all__ = ["Step", "scripted_model"]

Step = str | Sequence[tuple[str, Mapping[str, Any]]] | Callable[[list[str]], str]
"""A text to answer with, tools to ask for at once, or what makes a text of all that tools have said."""


def scripted_model(*steps: Step) -> FunctionModel:
    """Return a model that takes these steps, one for each request since the user has spoken.

    It really asks for tools: these are called as for any model. Where it stands is told by the
    conversation alone, so a run may go on in another process, and one model serves many runs.

    Args:
        *steps: ``[("shop__price", {"article": "oak"})]`` asks for tools by their public names, a
            text answers. A run that asks for more than there are steps fails.
    """

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        taken, heard = _since_the_user_spoke(messages)
        if taken >= len(steps):
            raise AssertionError(f"The script ends after {len(steps)} steps.")
        step = steps[taken]
        if callable(step):
            step = step(heard)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(name, dict(arguments)) for name, arguments in step])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        for index, part in enumerate(answer(messages, info).parts):
            if isinstance(part, ToolCallPart):
                yield {index: DeltaToolCall(part.tool_name, part.args_as_json_str())}
            elif isinstance(part, TextPart):
                yield part.content

    return FunctionModel(answer, stream_function=stream, model_name="scripted")


def _since_the_user_spoke(messages: list[ModelMessage]) -> tuple[int, list[str]]:
    """Return how often the model has been asked since, and what tools have said."""
    taken, heard = 0, list[str]()
    for message in messages:
        if isinstance(message, ModelResponse):
            taken += 1
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                taken, heard = 0, []
            elif isinstance(part, ToolReturnPart):
                heard.append(part.model_response_str(wrap_if_error=False))
    return taken, heard
