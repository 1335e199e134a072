"""The model of the agents of whole sites, and the settings of a site that executes their runs itself."""

from __future__ import annotations

import json
from typing import Any

from example_project.settings import *  # noqa: F403 (the same settings, with a model)

# Short, as tests wait for it.
MCP_CLIENT_RUN_LEASE = 5
MCP_CLIENT_MODELS = {"scripted:clerk": "tests.deployment.clerk.make_clerk"}


def make_clerk() -> Any:
    """Return a model that writes a line, which takes until there is a gate, and another; it tells of both."""
    # Not before: the settings load this module, and processes that run no agent do without the library.
    from pydantic_ai.messages import UserPromptPart

    from tests.agents.scripts import asks, call, says, scripted, tool_results

    def order(messages: list[Any]) -> dict[str, str]:
        [prompt] = [
            part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)
        ]
        found: dict[str, str] = json.loads(str(prompt))
        return found

    def write(number: int, **more: str) -> Any:
        def step(messages: list[Any], _info: Any) -> Any:
            wanted = order(messages)
            chosen = {name: wanted[key] for name, key in more.items()}
            text = f"{wanted['name']} {number}"
            return asks(call("early__write", f"w{number}", path=wanted["path"], text=text, **chosen))

        return step

    def report(messages: list[Any], _info: Any) -> Any:
        return says(" / ".join(text for _, _, text in tool_results(messages)))

    return scripted(write(1, gate="gate"), write(2), report)
