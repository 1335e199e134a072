"""The demo's agent: its row, and the model behind it.

Where a key or an address of a provider is in the environment, a real model answers. Otherwise one
that follows a script: it really asks for tools, and answers with what they really returned, but it
understands nothing else. So the demo works without a key and without a network.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig

NAME: Final = "demo"
MODEL: Final = "example:demo"
"""The key of ``make_model`` in ``MCP_CLIENT_MODELS``."""
PROMPT: Final = "What do I have to buy, and can I fetch it in Oslo tomorrow without getting wet?"

FORECAST: Final = "weather__forecast"
READ: Final = "files__read_file"
WRITE: Final = "files__write_file"

_CAPITALISED = re.compile(r"\b[A-Z][a-z]+\b")
SCRIPTED: Final = "scripted"
"""The value of ``EXAMPLE_MODEL`` that means the script whatever else is set."""

_REAL_MODELS: Final = (
    # Before the key: such a server may want one, and seldom speaks more than Chat Completions.
    ("OPENAI_BASE_URL", "openai-chat:default"),
    ("OPENAI_API_KEY", "openai:gpt-5-mini"),
    ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5-5"),
)
"""Variable -> the model that is used when it is set; ``EXAMPLE_MODEL`` names another one."""


def load_demo_agent() -> bool:
    """Store the demo's agent if it is missing; say whether it was. What people changed is kept."""
    if AgentConfig.objects.filter(name=NAME).exists():
        return False
    agent = AgentConfig(
        name=NAME,
        description="Looks at the weather, reads and writes notes.",
        model=MODEL,
        instructions="You help with errands. Use the tools; do not guess.",
    )
    agent.full_clean()
    agent.save()
    for server in ServerConfig.objects.filter(name__in=("files", "weather")):
        AgentServer.objects.create(agent=agent, server=server)
    return True


def make_model() -> Model:
    """Return a real model if the environment has what one needs, else the one with the script."""
    wanted = os.environ.get("EXAMPLE_MODEL")
    if wanted != SCRIPTED:
        for variable, model in _REAL_MODELS:
            if os.environ.get(variable):
                return infer_model(wanted or model)
    return scripted_model()


def scripted_model() -> Model:
    """Return the model that follows the script."""
    return FunctionModel(_answer, stream_function=_stream, model_name="scripted")


def _answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Say the next line of the script: two calls at once, one more, then the answer."""
    returns = _returns_since_prompt(messages)
    if READ not in returns:
        calls = [
            ToolCallPart(FORECAST, {"city": _city(messages), "days": 2}),
            ToolCallPart(READ, {"path": "notes/shopping.txt"}),
        ]
        return ModelResponse(parts=_offered(calls, info))
    said = _summary(returns)
    if WRITE not in returns:
        note = ToolCallPart(WRITE, {"path": "notes/errand.txt", "text": f"{said}\n"})
        return ModelResponse(parts=_offered([note], info))
    return ModelResponse(parts=[TextPart(f"{said} I have noted that in notes/errand.txt.")])


async def _stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    for index, part in enumerate(_answer(messages, info).parts):
        if isinstance(part, ToolCallPart):
            yield {index: DeltaToolCall(part.tool_name, part.args_as_json_str())}
        elif isinstance(part, TextPart):
            for word in re.findall(r"\S+\s*", part.content):
                yield word


def _offered(calls: list[ToolCallPart], info: AgentInfo) -> list[ToolCallPart | TextPart]:
    offered = {tool.name for tool in info.function_tools}
    missing = [call.tool_name for call in calls if call.tool_name not in offered]
    if missing:
        return [TextPart(f"I cannot do that: {' and '.join(missing)} cannot be used now.")]
    return list(calls)


def _returns_since_prompt(messages: list[ModelMessage]) -> dict[str, str]:
    """Return what tools said, by tool; also that they failed."""
    found: dict[str, str] = {}
    for message in messages:
        if not isinstance(message, ModelRequest):
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                found.clear()
            elif isinstance(part, ToolReturnPart):
                found[part.tool_name] = part.model_response_str(wrap_if_error=False)
    return found


def _city(messages: list[ModelMessage]) -> str:
    prompts = [
        part.content
        for message in messages
        for part in message.parts
        if isinstance(part, UserPromptPart) and isinstance(part.content, str)
    ]
    words = _CAPITALISED.findall(prompts[-1]) if prompts else []
    # The first word of a sentence has a capital letter, too.
    return words[-1] if words else "Oslo"


def _summary(returns: dict[str, str]) -> str:
    things = ", ".join(line for line in returns[READ].splitlines() if line)
    return f"You need {things}. {_weather(returns.get(FORECAST, ''))}"


def _weather(text: str) -> str:
    try:
        forecast = json.loads(text)
        tomorrow = forecast["days"][1]
        return f"Tomorrow {forecast['city']} has {tomorrow['sky']} and {tomorrow['celsius']:g} degrees."
    except (ValueError, KeyError, IndexError, TypeError):
        return f"I could not learn the weather: {text}"
