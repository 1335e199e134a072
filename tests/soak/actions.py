"""What a caller may do next, and how its answer is judged; the same for threads and for coroutines."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp_client_app.datatypes import Progress, ToolResult
from tests.soak.fleet import Fleet, Member
from tests.soak.peer import TOOLS

CALM_LIMIT = 60.0
"""Seconds for calls of servers that nobody has disturbed: never a measure of speed."""
BIG = 1_200_000
"""Bytes: enough to be decoded on a worker thread."""

Judge = Callable[[Any], bool]


@dataclass(frozen=True)
class Action:
    """One call: a verb of the manager, its arguments, and what is right."""

    kind: str
    member: Member | None
    verb: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    is_right: Judge
    """Whether a result is the one that belongs to this call."""
    limit: float
    token: str = ""
    expected: frozenset[str] = frozenset()
    """Codes of errors that belong to the action itself."""
    writes: bool = False
    by_service: bool = False
    steps: list[Progress] = field(default_factory=list)


class Chooser:
    """Makes actions at random; one for each caller, so that a seed gives the same sequence."""

    def __init__(self, fleet: Fleet, seed: str) -> None:
        self._fleet = fleet
        self._random = random.Random(seed)
        self._seed = seed.replace(" ", "-")
        self._count = 0
        makers = {
            self._echo: 30,
            self._write: 25,
            self._put: 10,
            self._slow: 8,
            self._read: 8,
            self._prompt: 4,
            self._complete: 3,
            self._list_one: 3,
            self._list_all: 1,
            self._hang: 3,
            self._touch: 1,
            self._big: 1,
            self._ping: 2,
            self._scope: 1,
        }
        self._makers, self._weights = list(makers), list(makers.values())

    def next(self) -> Action:
        """Return the next action."""
        self._count += 1
        member = self._random.choice(self._fleet.members)
        limit = self._random.uniform(2.0, 8.0)
        if not self._fleet.allowed[member.name]:  # nobody has disturbed it, so a short limit proves nothing
            limit = CALM_LIMIT
        maker = self._random.choices(self._makers, self._weights)[0]
        return maker(member, f"{self._seed}-{self._count}", limit)

    def pause(self) -> float:
        """Return the seconds until the next action."""
        return self._random.expovariate(1 / 0.03)

    def cancels_after(self) -> float | None:
        """Return the seconds after which the caller loses interest; None for most calls."""
        return self._random.uniform(0.0, 0.05) if self._random.random() < 0.05 else None

    # Tools -----------------------------------------------------------------------------

    def _tool(
        self, tool: str, member: Member, token: str, limit: float, text: str | None = None, **more: Any
    ) -> Action:
        arguments = {"text": token, **more.pop("arguments", {})}
        options: dict[str, Any] = {"timeout": limit}
        if self._random.random() < 0.5:
            name = f"{member.name}__{tool}"
        else:
            name, options["server"] = tool, member.name
        expected = token if text is None else text

        def is_right(result: ToolResult) -> bool:
            return result.text == expected and not result.is_error and result.server == member.name

        return Action(tool, member, "call_tool", (name, arguments), options, is_right, limit, token, **more)

    def _echo(self, member: Member, token: str, limit: float) -> Action:
        return self._tool("echo", member, token, limit, by_service=self._random.random() < 0.05)

    def _write(self, member: Member, token: str, limit: float) -> Action:
        by_service = self._random.random() < 0.05
        return self._tool("write", member, token, limit, writes=True, by_service=by_service)

    def _put(self, member: Member, token: str, limit: float) -> Action:
        return self._tool("put", member, token, limit, writes=True)

    def _touch(self, member: Member, token: str, limit: float) -> Action:
        return self._tool("touch", member, token, limit)

    def _big(self, member: Member, token: str, limit: float) -> Action:
        text = token + "x" * (BIG - len(token))
        return self._tool("big", member, token, limit, text, arguments={"size": BIG})

    def _hang(self, member: Member, token: str, limit: float) -> Action:
        limit = self._random.uniform(0.05, 0.5)
        return self._tool("hang", member, token, limit, expected=frozenset({"timeout"}))

    def _slow(self, member: Member, token: str, limit: float) -> Action:
        count = self._random.randint(1, 4)
        steps: list[Progress] = []
        action = self._tool("slow", member, token, limit, arguments={"steps": count}, steps=steps)
        action.options["on_progress"] = steps.append

        def is_right(result: ToolResult) -> bool:
            told = [(step.progress, step.message) for step in steps]
            every = [(number, token) for number in range(1, count + 1)]
            # A call that was repeated after a loss may have been told the same twice.
            if result.replayed or not member.reports:
                return result.text == token and all(step in every for step in told)
            return result.text == token and told == every

        return Action(
            "slow", member, action.verb, action.arguments, action.options, is_right, limit, token, steps=steps
        )

    # Other verbs -----------------------------------------------------------------------

    def _read(self, member: Member, token: str, limit: float) -> Action:
        def is_right(result: Any) -> bool:
            return bool(result.contents[0]["text"] == token)

        arguments = (member.name, f"soak://item/{token}")
        return Action(
            "resource", member, "read_resource", arguments, {"timeout": limit}, is_right, limit, token
        )

    def _prompt(self, member: Member, token: str, limit: float) -> Action:
        def is_right(result: Any) -> bool:
            return bool(result.messages[0]["content"]["text"] == token)

        arguments = (member.name, "say", {"text": token})
        return Action("prompt", member, "get_prompt", arguments, {"timeout": limit}, is_right, limit, token)

    def _complete(self, member: Member, token: str, limit: float) -> Action:
        arguments = (member.name, {"type": "ref/prompt", "name": "say"}, "text", token)
        options = {"timeout": limit}
        return Action(
            "completion",
            member,
            "complete",
            arguments,
            options,
            lambda result: list(result.values) == [token],
            limit,
            token,
        )

    def _ping(self, member: Member, token: str, limit: float) -> Action:
        return Action(
            "ping", member, "ping", (member.name,), {"timeout": limit}, lambda result: result is None, limit
        )

    def _scope(self, member: Member, token: str, limit: float) -> Action:
        """Use a connection of its own, for one call."""
        return Action(
            "scope",
            member,
            "echo_in_scope",
            (member.name, token),
            {"timeout": limit},
            lambda result: result.text == token,
            CALM_LIMIT,
            token,
        )

    def _list_one(self, member: Member, token: str, limit: float) -> Action:
        # Connecting has a limit of its own, and listing another: see the rows.
        return Action(
            "list one",
            member,
            "list_tools",
            (member.name,),
            {"refresh": self._random.random() < 0.5},
            lambda tools: {tool.name for tool in tools} == set(TOOLS),
            CALM_LIMIT,
        )

    def _list_all(self, member: Member, token: str, limit: float) -> Action:
        wanted = {server.name for server in self._fleet.calm}

        def is_right(listing: Any) -> bool:
            return wanted <= {tool.server for tool in listing.items} and not wanted & set(listing.errors)

        return Action("list all", None, "listing", ("tools",), {"wait": 0}, is_right, CALM_LIMIT)
