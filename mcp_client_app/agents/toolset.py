"""Our toolset as one of pydantic-ai: what a model may call in each round, and how a call is made.

Arguments are passed on as the model gave them: they are parsed, judged and completed where all calls
are, and what is wrong is told the model as the result of the call. So only ``ToolFailed`` and
``ApprovalRequired`` leave this module: anything else would end the run, and its other calls with it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import BinaryContent, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from mcp_client_app.agents.asked import Asked
from mcp_client_app.agents.calls import RunCalls, WaitsForPeople, with_note
from mcp_client_app.agents.offering import Offer, offer
from mcp_client_app.agents.repetition import times_in_a_row
from mcp_client_app.toolsets import ImagePart, RenderedResult, TextPart, ToolSelection

__all__ = ["RunToolset"]

REPEATED = 3
"""So many times in a row the same call may be made before the model is told."""

_ARGUMENTS = "arguments"


class _Untouched:
    """Stands where pydantic-ai expects a validator: keeps arguments as they came."""

    def validate_json(self, input: str | bytes | bytearray, **kwargs: Any) -> Any:  # noqa: A002
        text = input if isinstance(input, str) else bytes(input).decode("utf-8", "replace")
        return {_ARGUMENTS: text}

    def validate_python(self, input: Any, **kwargs: Any) -> Any:  # noqa: A002
        return {_ARGUMENTS: input}


_UNTOUCHED = _Untouched()


class RunToolset(AbstractToolset[Any]):
    """The tools of one run."""

    def __init__(self, calls: RunCalls, *, parallel: int, warn: Callable[[tuple[str, ...]], None]) -> None:
        """Make it.

        Args:
            calls: What makes the calls.
            parallel: Calls at once; 0 = no limit.
            warn: Told what is wrong with the tools, whenever they have changed.
        """
        self._calls = calls
        self._slots = asyncio.Semaphore(parallel) if parallel else None
        self._warn = warn
        self._offered: tuple[ToolSelection, Offer] | None = None

    @property
    def id(self) -> str:
        return "mcp"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools of this round: servers and agents may have changed since the last one."""
        assert isinstance(ctx.model, Model)  # the others hold spoken conversations
        selection = await self._calls.toolset.aselection()
        self._calls.selection = selection
        if self._offered is None or self._offered[0] is not selection:
            self._offered = (selection, offer(selection, ctx.model))
            self._warn(self._offered[1].warnings)
        shown = dict(self._offered[1].tools)
        last = ctx.messages[-1] if ctx.messages else None
        if isinstance(last, ModelResponse):
            # Now calls are made, the model is asked nothing: whatever it has asked for gets its answer here.
            for call in last.tool_calls:
                shown.setdefault(call.tool_name, ("", {"type": "object", "properties": {}}))
        return {name: self._tool(name, description, schema) for name, (description, schema) in shown.items()}

    def _tool(self, name: str, description: str, schema: dict[str, Any]) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=name, description=description or None, parameters_json_schema=schema, strict=False
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=1, args_validator=_UNTOUCHED)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        asked = Asked(ctx.tool_call_id or "", name, tool_args.get(_ARGUMENTS))
        async with self._slot():
            try:
                rendered = await self._calls.make(asked)
            except WaitsForPeople as waits:
                raise ApprovalRequired({"kind": waits.kind, "approval": waits.approval}) from waits
        times = times_in_a_row(ctx.messages, asked.call_id)
        if times >= REPEATED:
            rendered = with_note(
                rendered,
                f"You have made this same call {times} times in a row. "
                "Use what it returned, change the arguments, or answer without it.",
            )
        if rendered.is_error:
            raise ToolFailed(rendered.text)
        return _content(rendered)

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        if self._slots is None:
            yield
            return
        async with self._slots:
            yield


def _content(rendered: RenderedResult) -> str | list[str | BinaryContent]:
    """Return a result as pydantic-ai takes it: text, or text and images."""
    if not any(isinstance(part, ImagePart) for part in rendered.parts):
        return rendered.text
    return [
        part.text
        if isinstance(part, TextPart)
        else BinaryContent(base64.b64decode(part.data), media_type=part.mime_type)
        for part in rendered.parts
    ]
