"""What a toolset shows: to code, and in the form of the model providers."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.runtime import get_mcp_manager
from mcp_client_app.services.steps import Steps, adrive, drive
from mcp_client_app.services.toolset_core import PATIENCE, ToolsetCore
from mcp_client_app.toolsets import ProviderTools, ToolSelection

__all__ = ["ToolsetLists"]


class ToolsetLists(ToolsetCore):
    """Lists, fresh at each call: what servers, operators and code have changed meanwhile counts.

    All raise ``UnknownAgentError`` or ``PermissionDeniedError`` if the user may not use the agent (any
    more), and ``NotConnectedError`` if the toolset was disconnected.
    """

    def selection(self, *, wait: float = PATIENCE) -> ToolSelection:
        """Return what there is to see and to call now; the same object as long as nothing changes.

        Servers that nobody has tried yet are connected, side by side. One that is slow is waited
        for at most ``wait`` seconds, counted from the start of its attempt (0 = not at all). Those
        that are missing are in ``unavailable`` of the selection; its ``reasons`` say why.
        """
        forbid_running_loop("selection")
        return drive(self._looking(wait))

    async def aselection(self, *, wait: float = PATIENCE) -> ToolSelection:
        """Async twin of ``selection``."""
        return await adrive(self._looking(wait))

    def list_tools(self, *, wait: float = PATIENCE) -> list[ToolInfo]:
        """Return the tools, without fixed arguments in their schemas."""
        forbid_running_loop("list_tools")
        return _tools(self.selection(wait=wait))

    async def alist_tools(self, *, wait: float = PATIENCE) -> list[ToolInfo]:
        """Async twin of ``list_tools``."""
        return _tools(await self.aselection(wait=wait))

    def for_openai(self, *, api: Literal["chat", "responses"] = "chat") -> ProviderTools:
        """Return the tools for OpenAI, or for servers that speak as it does."""
        forbid_running_loop("for_openai")
        return self.selection().for_openai(api=api)

    async def afor_openai(self, *, api: Literal["chat", "responses"] = "chat") -> ProviderTools:
        """Async twin of ``for_openai``."""
        return (await self.aselection()).for_openai(api=api)

    def for_anthropic(self) -> ProviderTools:
        """Return the tools for Anthropic."""
        forbid_running_loop("for_anthropic")
        return self.selection().for_anthropic()

    async def afor_anthropic(self) -> ProviderTools:
        """Async twin of ``for_anthropic``."""
        return (await self.aselection()).for_anthropic()

    def for_mcp(self) -> ProviderTools:
        """Return the tools in MCP's own form."""
        forbid_running_loop("for_mcp")
        return self.selection().for_mcp()

    async def afor_mcp(self) -> ProviderTools:
        """Async twin of ``for_mcp``."""
        return (await self.aselection()).for_mcp()

    def _looking(self, wait: float) -> Steps[ToolSelection]:
        spec = yield self.admitting()
        view = yield from self.look(get_mcp_manager(), spec, wait=wait)
        return view.selection


def _tools(selection: ToolSelection) -> list[ToolInfo]:
    return [
        replace(shown.tool, input_schema=shown.schema) if shown.fixed else shown.tool for shown in selection
    ]
