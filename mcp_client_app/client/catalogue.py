"""What a server offers: read page by page after connecting, kept as one immutable value.

A catalogue is swapped as a whole, so any thread may read it without a lock. It is never
proof that the server is alive.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from mcp_client_app.client import convert
from mcp_client_app.client.exchange import Exchange, recorded
from mcp_client_app.client.failures import root_cause
from mcp_client_app.client.link import Link
from mcp_client_app.datatypes import (
    ManagerOptions,
    PromptInfo,
    ResourceInfo,
    ResourceTemplateInfo,
    ServerSpec,
    ToolInfo,
)
from mcp_client_app.exceptions import (
    MCPClientError,
    ProtocolError,
    RequestTimeoutError,
    ResultTooLargeError,
)
from mcp_client_app.json_schema import SchemaChecker, schema_problem

__all__ = ["METHOD_NOT_FOUND", "Catalogue", "load"]

T = TypeVar("T")

METHOD_NOT_FOUND = -32601
AT_ONCE = 500
"""Entries that are looked at before other servers have their turn."""


@dataclass(frozen=True)
class Catalogue:
    """Everything that one server offers."""

    tools: tuple[ToolInfo, ...] = ()
    """What the server-level filter lets through."""
    known: tuple[ToolInfo, ...] = ()
    """All tools, the filtered ones too: a call to one of these is answered by 'blocked', not 'unknown'."""
    resources: tuple[ResourceInfo, ...] = ()
    resource_templates: tuple[ResourceTemplateInfo, ...] = ()
    prompts: tuple[PromptInfo, ...] = ()
    warnings: tuple[str, ...] = ()
    expires_at: float | None = None
    """On ``time.monotonic``'s clock, from the server's ``ttlMs``; None = until it says otherwise."""
    _checkers: dict[str, SchemaChecker] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def _by_name(self) -> dict[str, ToolInfo]:
        names = {tool.public_name: tool for tool in reversed(self.known)}
        return names | {tool.name: tool for tool in reversed(self.known)}

    def tool(self, name: str) -> ToolInfo | None:
        """Find a tool by its own or its public name, a filtered one too: the filter decides about calls."""
        return self._by_name.get(name)

    def filtered(self, spec: ServerSpec) -> Catalogue:
        """Return the same catalogue under the (changed) filter of ``spec``."""
        return replace(self, tools=_allowed(self.known, spec))

    def output_checker(self, tool: ToolInfo) -> SchemaChecker | None:
        """Return the compiled output schema, if the tool declares one; compiled on first use."""
        if tool.output_schema is None:
            return None
        checker = self._checkers.get(tool.name)
        if checker is None:
            checker = self._checkers[tool.name] = SchemaChecker(tool.output_schema)
        return checker

    def trouble_with(self, method: str) -> str:
        """Return a sentence on why a list could not be read, or nothing."""
        failed = f"{method} failed"
        return next((f" {warning}" for warning in self.warnings if warning.startswith(failed)), "")

    @property
    def is_stale(self) -> bool:
        """Whether the server's own time to live is over."""
        return self.expires_at is not None and time.monotonic() >= self.expires_at


async def load(link: Link, spec: ServerSpec, options: ManagerOptions) -> Catalogue:
    """Read all lists, all pages.

    A list that the server refuses or garbles is left out with a warning.

    Raises:
        MCPClientError: The link broke, or the tools were not listed in time.
    """
    walk = _Walk(link, spec, options)
    capabilities = link.handshake.capabilities if link.handshake is not None else {}
    no_items: tuple[Any, ...] = ()

    async def listing(
        kind: str, method: str, key: str, build: Callable[[str, Any], T], name: Callable[[T], str]
    ) -> tuple[T, ...]:
        if kind not in capabilities and (kind != "tools" or spec.strict.tools_capability):
            return no_items
        return await walk.items(
            method, key, lambda item: build(spec.name, item), name, advertised=kind in capabilities
        )

    def tools() -> Any:
        return listing("tools", "tools/list", "tools", convert.tool_info, lambda tool: tool.name)

    def resources() -> Any:
        return listing("resources", "resources/list", "resources", convert.resource_info, lambda r: r.uri)

    def templates() -> Any:
        key = "resourceTemplates"
        return listing(
            "resources", "resources/templates/list", key, convert.template_info, lambda t: t.uri_template
        )

    def prompts() -> Any:
        return listing("prompts", "prompts/list", "prompts", convert.prompt_info, lambda prompt: prompt.name)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(start()) for start in (tools, resources, templates, prompts)]
    except BaseExceptionGroup as error:
        raise root_cause(error) from error
    known, found_resources, found_templates, found_prompts = (task.result() for task in tasks)
    known = await _with_warnings(known, walk.warnings)
    return Catalogue(
        tools=_allowed(known, spec),
        known=known,
        resources=found_resources,
        resource_templates=found_templates,
        prompts=found_prompts,
        warnings=tuple(dict.fromkeys(walk.warnings)),
        expires_at=walk.expires_at,
    )


async def _with_warnings(tools: Sequence[ToolInfo], warnings: list[str]) -> tuple[ToolInfo, ...]:
    """Give each tool what is to be said of it; what is wrong with its schema comes to the others, too."""
    said: dict[str, list[str]] = {}
    labels = {f"tool {tool.name!r}": tool.name for tool in tools} if warnings else {}
    for warning in warnings:
        for place in (match.start() for match in re.finditer(": ", warning)):
            name = labels.get(warning[:place])
            if name is not None:
                said.setdefault(name, []).append(warning[place + 2 :])
    for number, tool in enumerate(tools, 1):
        if not number % AT_ONCE:
            await asyncio.sleep(0)
        problem = schema_problem(tool.input_schema)
        if problem is not None:
            problem = f"its inputSchema is no valid JSON Schema: {problem}"
            said.setdefault(tool.name, []).append(problem)
            warnings.append(f"tool {tool.name!r}: {problem}")
    if not said:
        return tuple(tools)
    return tuple(
        replace(tool, warnings=tuple(dict.fromkeys(said[tool.name]))) if tool.name in said else tool
        for tool in tools
    )


def _allowed(tools: Iterable[ToolInfo], spec: ServerSpec) -> tuple[ToolInfo, ...]:
    return tuple(tool for tool in tools if spec.filter.allows(tool.name, tool.public_name))


class _Walk:
    """Reads listings page by page, with guards against servers that never come to an end."""

    def __init__(self, link: Link, spec: ServerSpec, options: ManagerOptions) -> None:
        self._link = link
        self._spec = spec
        self._options = options
        self.warnings: list[str] = []
        self.expires_at: float | None = None

    async def items(
        self,
        method: str,
        key: str,
        build: Callable[[Any], T],
        name: Callable[[T], str],
        *,
        advertised: bool,
    ) -> tuple[T, ...]:
        seconds = self._spec.list_timeout
        try:
            async with asyncio.timeout(seconds or None):
                return await self._pages(method, key, build, name)
        except TimeoutError:
            error: MCPClientError = RequestTimeoutError(
                f"The server {self._spec.name!r} did not answer {method!r} within {seconds:.3g} s.",
                server=self._spec.name,
                seconds=seconds,
                sent=True,
            )
            if method == "tools/list":
                raise error from None
        except (ProtocolError, ResultTooLargeError) as refused:
            unknown = isinstance(refused, ProtocolError) and refused.rpc_code == METHOD_NOT_FOUND
            # Templates have no capability of their own, and many servers with resources know none.
            if unknown and (not advertised or method == "resources/templates/list"):
                return ()
            error = refused
        self.warnings.append(f"{method} failed: {error}")
        return ()

    async def _pages(
        self, method: str, key: str, build: Callable[[Any], T], name: Callable[[T], str]
    ) -> tuple[T, ...]:
        found: dict[str, T] = {}
        cursor: str | None = None
        cursors: set[str] = set()
        fruitless = 0
        for _ in range(self._options.max_pages):
            page = await self._page(method, cursor)
            before = len(found)
            await self._collect(method, map(build, page.get(key) or ()), found, name)
            fruitless = fruitless + 1 if len(found) == before else 0
            cursor = page.get("nextCursor")
            if cursor is None:
                return tuple(found.values())
            if cursor in cursors or fruitless >= 2 or len(found) >= self._options.max_items:
                break
            cursors.add(cursor)
        self.warnings.append(f"{method} never came to an end; it was stopped after {len(found)} entries")
        return tuple(found.values())

    async def _page(self, method: str, cursor: str | None) -> dict[str, Any]:
        exchange = Exchange()
        with recorded(exchange):
            page = await self._link.request(method, {"cursor": cursor} if cursor is not None else {})
        self.warnings += exchange.repairs
        ttl = page.get("ttlMs")
        if isinstance(ttl, int | float) and ttl > 0:
            expiry = time.monotonic() + min(ttl / 1000, 86_400)
            self.expires_at = expiry if self.expires_at is None else min(expiry, self.expires_at)
        return page

    async def _collect(
        self, method: str, items: Iterable[T], found: dict[str, T], name: Callable[[T], str]
    ) -> None:
        for number, item in enumerate(items, 1):
            if not number % AT_ONCE:
                await asyncio.sleep(0)
            if len(found) >= self._options.max_items:
                return
            if name(item) in found:
                self.warnings.append(f"{method} names {name(item)!r} twice; the first one is kept")
            else:
                found[name(item)] = item
