"""Those who call: threads with the blocking verbs, and coroutines on event loops of their own."""

from __future__ import annotations

import asyncio
import threading
import traceback
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

from mcp_client_app import services
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.exceptions import MCPClientError
from tests.soak.actions import Action, Chooser
from tests.soak.fleet import Fleet
from tests.soak.ledger import ANSWERED, NOT_SENT, REPLAYED, UNKNOWN, Ledger
from tests.soak.score import Score

TASKS = 12
"""Coroutines on each loop."""

_NEVER_SENT = frozenset(
    {"unknown_server", "not_connected", "server_unavailable", "configuration", "unknown_tool"}
)
"""Codes that say it by themselves: no server of the soak answers with an HTTP status of 500 or more."""


class Verbs:
    """What callers do that is more than one verb of the manager, for threads and for coroutines."""

    def __init__(self, manager: MCPClientManager) -> None:
        self._manager = manager

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    def echo_in_scope(self, server: str, token: str, *, timeout: float) -> Any:
        with self._manager.connect_server(server) as connection:
            return connection.call_tool("echo", {"text": token}, timeout=timeout)

    async def aecho_in_scope(self, server: str, token: str, *, timeout: float) -> Any:
        async with self._manager.connect_server(server) as connection:
            return await connection.acall_tool("echo", {"text": token}, timeout=timeout)


class Crowd:
    """All callers. They pause while the gate is shut, and end when told."""

    def __init__(
        self, manager: MCPClientManager, fleet: Fleet, ledger: Ledger, score: Score, seed: int
    ) -> None:
        self._verbs = Verbs(manager)
        self._fleet = fleet
        self._ledger = ledger
        self._score = score
        self._seed = seed
        self._gate = threading.Event()
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, threads: int, loops: int) -> None:
        """Let everybody begin."""
        self._gate.set()
        for number in range(threads):
            self._start(f"t{number}", self._call_from_thread)
        for number in range(loops):
            self._start(f"l{number}", self._call_from_loop)

    def _start(self, name: str, target: Any) -> None:
        thread = threading.Thread(target=self._guarded, args=(target, name), name=f"soak-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _guarded(self, target: Any, name: str) -> None:
        try:
            target(name)
        except Exception:  # noqa: BLE001 - whatever it is, it fails the soak
            self._score.complain(f"the caller {name} has ended: {traceback.format_exc()}")

    def pause(self) -> None:
        """Let nobody begin another call."""
        self._gate.clear()

    def go_on(self) -> None:
        """Let everybody call again."""
        self._gate.set()

    def end(self, timeout: float) -> None:
        """Have everybody leave."""
        self._ended.set()
        self._gate.set()
        for thread in self._threads:
            thread.join(timeout)
            if thread.is_alive():
                self._score.complain(f"the caller {thread.name} does not end")

    # Threads ---------------------------------------------------------------------------

    def _call_from_thread(self, name: str) -> None:
        chooser = Chooser(self._fleet, f"{self._seed} {name}")
        try:
            while not self._ended.is_set():
                self._gate.wait()
                self._call(chooser.next())
                self._ended.wait(chooser.pause())
        finally:
            connections.close_all()

    def _call(self, action: Action) -> None:
        owner: Any = services if action.by_service else self._verbs
        with self._score.under_way(_described(action), action.limit):
            try:
                result = getattr(owner, action.verb)(*action.arguments, **action.options)
            except Exception as error:  # noqa: BLE001 - judged like an answer
                self._judge_error(action, error)
            else:
                self._judge(action, result)

    # Loops -----------------------------------------------------------------------------

    def _call_from_loop(self, name: str) -> None:
        async def everybody() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(TASKS):
                    group.create_task(self._call_from_task(f"{name}c{number}"))
            await sync_to_async(connections.close_all)()

        asyncio.run(everybody())

    async def _call_from_task(self, name: str) -> None:
        chooser = Chooser(self._fleet, f"{self._seed} {name}")
        while not self._ended.is_set():
            while not self._gate.is_set():  # noqa: ASYNC110 - the gate is one of threads
                await asyncio.sleep(0.02)
            await self._acall(chooser.next(), chooser.cancels_after())
            await asyncio.sleep(chooser.pause())

    async def _acall(self, action: Action, cancels_after: float | None) -> None:
        owner: Any = services if action.by_service else self._verbs
        with self._score.under_way(_described(action), action.limit):
            call = getattr(owner, f"a{action.verb}")(*action.arguments, **action.options)
            task = asyncio.ensure_future(call)
            if cancels_after is not None:
                await asyncio.wait({task}, timeout=cancels_after)
                task.cancel()
            try:
                result = await task
            except asyncio.CancelledError:
                self._cancelled(action, expected=cancels_after is not None)
            except Exception as error:  # noqa: BLE001 - judged like an answer
                self._judge_error(action, error)
            else:
                self._judge(action, result)

    # Judging ---------------------------------------------------------------------------

    def _judge(self, action: Action, result: Any) -> None:
        if action.writes:
            outcome = REPLAYED if result.replayed else ANSWERED
            self._ledger.claim(action.token, outcome, repeatable=self._is_repeatable(action))
        try:
            is_right = action.is_right(result)
        except Exception as error:  # noqa: BLE001 - an answer of another form is a wrong one
            is_right = False
            result = f"{result!r} ({error!r})"
        if is_right:
            self._score.right(action.kind)
        else:
            steps = f", steps {action.steps}" if action.steps else ""
            self._score.complain(f"a wrong answer to {_described(action)}: {result!r:.2000}{steps}")

    def _judge_error(self, action: Action, error: Exception) -> None:
        if not isinstance(error, MCPClientError):
            self._score.complain(f"{_described(action)} raised {''.join(traceback.format_exception(error))}")
            return
        if action.writes:
            self._ledger.claim(
                action.token,
                _outcome(error),
                repeatable=self._is_repeatable(action),
                words=f"({error.code} of {action.kind} of {error.server}: {error})",
            )
        allowed = self._fleet.allowed[action.member.name] if action.member is not None else ()
        if error.code in action.expected:
            self._score.right(action.kind)
        elif error.code in allowed:
            self._score.failed(error.code)
        else:
            self._score.complain(
                f"{_described(action)} failed with {error.code}, for no reason: "
                f"{''.join(traceback.format_exception(error))}"
            )

    def _cancelled(self, action: Action, *, expected: bool) -> None:
        if action.writes:
            self._ledger.claim(action.token, UNKNOWN, repeatable=self._is_repeatable(action))
        if expected:
            self._score.right("cancelled")
        else:
            self._score.complain(f"{_described(action)} was cancelled by nobody")

    def _is_repeatable(self, action: Action) -> bool:
        return action.kind == "put" and action.member is not None and action.member.trusted


def _described(action: Action) -> str:
    return f"{action.kind} {action.token} of {action.member.name if action.member is not None else 'all'}"


def _outcome(error: MCPClientError) -> str:
    told = error.details().get("outcome")
    if told is not None:
        return NOT_SENT if told == "not_sent" else UNKNOWN
    return NOT_SENT if error.code in _NEVER_SENT else UNKNOWN
