"""What a model is offered: the tools of a selection in a form that its provider takes.

A tool that a provider would refuse is left out, with a warning; it never takes the others with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_ai.models import Model

from mcp_client_app.toolsets import ToolSelection

__all__ = ["Offer", "offer"]

_LIKE_ANTHROPIC = frozenset({"anthropic", "bedrock"})


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of one round."""

    tools: Mapping[str, tuple[str, dict[str, Any]]]
    """Public name -> description and schema of the arguments."""
    warnings: tuple[str, ...] = ()


def offer(selection: ToolSelection, model: Model) -> Offer:
    """Return what of a selection is offered to a model."""
    if model.system in _LIKE_ANTHROPIC:
        expressed = selection.for_anthropic()
        shown = {
            tool["name"]: (tool.get("description", ""), tool["input_schema"]) for tool in expressed.tools
        }
    else:
        expressed = selection.for_openai()
        functions = [tool["function"] for tool in expressed.tools]
        shown = {each["name"]: (each.get("description", ""), each["parameters"]) for each in functions}
    warnings = [*selection.warnings, *expressed.warnings]
    transformer = model.profile.get("json_schema_transformer")
    if transformer is None:
        return Offer(shown, tuple(warnings))
    for name in list(shown):
        try:
            transformer(shown[name][1], strict=False).walk()
        except Exception as error:  # noqa: BLE001 - whatever it is, it would fail the whole request
            warnings.append(f"The tool {name!r} is left out for this model: {str(error)[:200]}")
            del shown[name]
    return Offer(shown, tuple(warnings))
