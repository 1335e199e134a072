"""The callable toolset: what one agent, or one piece of code, may see and call of several servers.

Connections are the process's: a toolset owns none but those to the servers that were given to
it as configurations, which nobody else sees and which end with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self, get_args

from asgiref.sync import sync_to_async

from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.configuration.output_filters import parse_output_filters
from mcp_client_app.datatypes import AgentSpec, ApprovalPolicy, InputHandler, Progress
from mcp_client_app.exceptions import (
    ApprovalRequiredError,
    ConfigurationError,
    InputRequiredError,
    MCPClientError,
    RunStateError,
)
from mcp_client_app.runtime import get_mcp_manager
from mcp_client_app.services.calls import InputResponses
from mcp_client_app.services.following_agents import FollowedAgent
from mcp_client_app.services.recording import arecorded, recorded
from mcp_client_app.services.steps import adrive, drive
from mcp_client_app.services.toolset_calls import Attempt, CallJournal, Order
from mcp_client_app.services.toolset_core import ToolsetCore
from mcp_client_app.services.toolset_lifecycle import ToolsetLifecycle
from mcp_client_app.services.toolset_lists import ToolsetLists
from mcp_client_app.services.toolset_results import ToolsetResult
from mcp_client_app.services.toolset_servers import Given
from mcp_client_app.toolsets import Validation, parse_filter, parse_fixed_arguments

__all__ = ["Toolset", "aget_toolset", "get_toolset"]

NOT_FOR_MODELS: Final = (ApprovalRequiredError, InputRequiredError, RunStateError)
"""Where a person, or the run, has to do something."""


class Toolset(ToolsetLists, ToolsetLifecycle):
    """Tools of several servers under one set of rules. Every verb has an async twin, with an ``a`` in front.

    Args:
        servers: Names of stored servers; ``AgentServerSpec`` for one with rules of its own; or
            configurations, ``{"name": "files", "command": ..., "args": [...]}``.
        name: Who calls, for the audit and for approvals.
        all_servers: Use every other enabled server, too.
        allowed_tools: Names or patterns; None = all, an empty list = none.
        blocked_tools: Names or patterns; they win over allowed ones.
        fixed_arguments: Tool to arguments that every call has, and that no model sees or changes.
        output_filters: Tool or pattern to a list of filters; callables and dotted paths may be among them.
        approval: When a person has to approve a call.
        tool_approvals: Tool or pattern to another policy.
        result_limit: Characters of a result that a model reads.
        validation: What becomes of arguments that do not fit: ``error``, ``warn`` or ``off``.
        user: For whom; None for trusted code. Users need ``call_tool``, and ``run_code_serverconfig``
            for configurations that run code.

    Raises:
        ConfigurationError, DuplicateServerError, PermissionDeniedError: This cannot be.
    """

    def __init__(
        self,
        servers: Iterable[Given] = (),
        *,
        name: str = "",
        all_servers: bool = False,
        allowed_tools: Sequence[str] | None = None,
        blocked_tools: Sequence[str] = (),
        fixed_arguments: Mapping[str, Mapping[str, Any]] | None = None,
        output_filters: Mapping[str, Sequence[Any]] | None = None,
        approval: ApprovalPolicy | str = ApprovalPolicy.NEVER,
        tool_approvals: Mapping[str, ApprovalPolicy | str] | None = None,
        result_limit: int = AgentSpec.result_limit,
        validation: Validation = "error",
        user: Any = None,
    ) -> None:
        if isinstance(servers, str | Mapping):
            raise ConfigurationError("Give a list of servers.", field="servers")
        policies = {
            tool: _policy(policy, f"tool_approvals.{tool}") for tool, policy in (tool_approvals or {}).items()
        }
        spec = AgentSpec(
            name=name,
            all_servers=all_servers,
            filter=parse_filter(allowed_tools, blocked_tools),
            fixed_arguments=parse_fixed_arguments(fixed_arguments),
            output_filters=parse_output_filters(output_filters),
            result_limit=_checked_limit(result_limit),
            approval=_policy(approval, "approval"),
            tool_approvals=policies,
            validation=_checked_validation(validation),
        )
        super().__init__(spec, user)
        for given in servers:
            self.servers.add(given)

    @classmethod
    def from_spec(cls, spec: AgentSpec, user: Any = None) -> Self:
        """Return the toolset of an agent as the spec says; changes of a stored one do not count any more."""
        return cls._made(spec, user, None)

    @classmethod
    def of_agent(cls, name: str, user: Any = None) -> Self:
        """Return the toolset of a stored agent; see ``get_toolset``."""
        agent = FollowedAgent(name, user)
        return cls._made(agent.spec, user, agent)

    @classmethod
    def _made(cls, spec: AgentSpec, user: Any, agent: FollowedAgent | None) -> Self:
        toolset = cls.__new__(cls)
        ToolsetCore.__init__(toolset, spec, user, agent)
        return toolset

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        call_id: str = "",
        run: Any = None,
        approval: Any = None,
        journal: CallJournal | None = None,
        timeout: float | None = None,
        on_progress: Callable[[Progress], Any] | None = None,
        on_input: Mapping[str, InputHandler] | None = None,
        input_responses: InputResponses | None = None,
        request_state: str | None = None,
        correlation_id: str | None = None,
    ) -> ToolsetResult:
        """Call a tool under the toolset's rules, and write down that it happened.

        Args:
            name: What a model calls the tool: its public name in any case, or its own if it is unique.
            arguments: An object, or its JSON text. Fixed arguments are added, and win.
            call_id: The call's id in a conversation.
            run: The run that the call belongs to, for approvals.
            approval: The id of an approval, or of an answered question, to be used for this call.
            journal: What writes down that the call is about to be sent, and what became of it.
            timeout: Seconds for everything; None = the server's limit, 0 = no limit.
            on_progress: Called with each ``Progress``, in this thread.
            on_input: Handlers of what the server asks for, by kind, called in this thread.
            input_responses: Answers to what an earlier call ended with, by key.
            request_state: The state that came with it.
            correlation_id: Ties the audit row to a request of yours.

        Returns:
            The result, also one in which the tool reports a failure.

        Raises:
            PermissionDeniedError, UnknownAgentError: The user may not use this.
            ToolBlockedError, UnknownToolError, AmbiguousToolError, InvalidArgumentsError: Nothing was sent.
            ApprovalRequiredError: A person has to approve the call; carries the id of what was asked.
            ApprovalError: The approval is not good for this call.
            InputRequiredError: The server asks for input, and nobody answers.
            MCPClientError: As for the manager's ``call_tool``.
        """
        order = Order(
            name=name,
            arguments=arguments,
            call_id=call_id,
            run=run,
            approval=approval,
            journal=journal,
            timeout=timeout,
            on_progress=on_progress,
            on_input=on_input,
            input_responses=input_responses,
            request_state=request_state,
            correlation_id=correlation_id,
        )
        forbid_running_loop("call_tool")
        return self._call(order)

    async def acall_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        call_id: str = "",
        run: Any = None,
        approval: Any = None,
        journal: CallJournal | None = None,
        timeout: float | None = None,
        on_progress: Callable[[Progress], Any] | None = None,
        on_input: Mapping[str, InputHandler] | None = None,
        input_responses: InputResponses | None = None,
        request_state: str | None = None,
        correlation_id: str | None = None,
    ) -> ToolsetResult:
        """Async twin of ``call_tool``; ``on_progress`` and ``on_input`` may be coroutine functions."""
        order = Order(
            name=name,
            arguments=arguments,
            call_id=call_id,
            run=run,
            approval=approval,
            journal=journal,
            timeout=timeout,
            on_progress=on_progress,
            on_input=on_input,
            input_responses=input_responses,
            request_state=request_state,
            correlation_id=correlation_id,
        )
        return await self._acall(order)

    def answer(
        self, name: str, arguments: Mapping[str, Any] | str | None = None, **options: Any
    ) -> ToolsetResult:
        """Call a tool for a model, with the options of ``call_tool``: an error is the line that it reads.

        Raises:
            ApprovalRequiredError, InputRequiredError: A person has to do something.
            RunStateError: The run may not go on.
        """
        forbid_running_loop("answer")
        try:
            return self.call_tool(name, arguments, **options)
        except NOT_FOR_MODELS:
            raise
        except MCPClientError as error:
            return ToolsetResult.of_error(name, error)

    async def aanswer(
        self, name: str, arguments: Mapping[str, Any] | str | None = None, **options: Any
    ) -> ToolsetResult:
        """Async twin of ``answer``."""
        try:
            return await self.acall_tool(name, arguments, **options)
        except NOT_FOR_MODELS:
            raise
        except MCPClientError as error:
            return ToolsetResult.of_error(name, error)

    def _call(self, order: Order) -> ToolsetResult:
        attempt = Attempt(self, get_mcp_manager(), order)
        try:
            result = recorded("call_tool", attempt.record, lambda: drive(attempt.steps()))
        except BaseException as error:
            told = attempt.failed(error)
            if told is error:
                raise
            raise told from told.__cause__
        return attempt.finished(result)

    async def _acall(self, order: Order) -> ToolsetResult:
        attempt = Attempt(self, get_mcp_manager(), order)
        try:
            result = await arecorded(attempt.record, lambda: adrive(attempt.steps()))
        except BaseException as error:
            # Shielded: the journal is told although a cancelled caller is cancelled again.
            told = await asyncio.shield(sync_to_async(attempt.failed)(error))
            if told is error:
                raise
            raise told from told.__cause__
        # Shielded for the same reason.
        return await asyncio.shield(attempt.finishing(result).later())


def get_toolset(agent: str, user: Any = None) -> Toolset:
    """Return the toolset of a stored agent, for a user; it follows changes of the agent and its servers.

    Args:
        agent: The agent's name.
        user: For whom; None for trusted code. Users need ``run_agentconfig``, and no right to call
            tools in other ways.

    Raises:
        UnknownAgentError: There is none, it is disabled, or it is not open to the user's groups.
        PermissionDeniedError: The user may not use agents.
    """
    forbid_running_loop("get_toolset")
    return Toolset.of_agent(agent, user)


async def aget_toolset(agent: str, user: Any = None) -> Toolset:
    """Async twin of ``get_toolset``."""
    return await sync_to_async(Toolset.of_agent)(agent, user)


def _checked_limit(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigurationError(
            "result_limit must be a number of characters; 0 = no limit.", field="result_limit"
        )
    return value


def _checked_validation(value: Validation) -> Validation:
    if value not in get_args(Validation):
        raise ConfigurationError(
            f"validation must be one of {', '.join(map(repr, get_args(Validation)))}.", field="validation"
        )
    return value


def _policy(value: ApprovalPolicy | str, field: str) -> ApprovalPolicy:
    try:
        return ApprovalPolicy(value)
    except ValueError:
        raise ConfigurationError(
            f"{field} must be one of {', '.join(map(repr, map(str, ApprovalPolicy)))}.", field=field
        ) from None
