"""What an agent may see and call, and how it is run: what ``services`` and ``agents`` get of a stored one."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_client_app.datatypes.specs import ToolFilter

__all__ = ["AgentServerSpec", "AgentSpec", "ApprovalPolicy", "RunStatus"]


class ApprovalPolicy(enum.StrEnum):
    """When a person has to approve a call."""

    NEVER = "never"
    WRITES = "writes"
    """For all that is not annotated read-only; annotations count only where the server's are trusted."""
    ALWAYS = "always"
    DENY = "deny"
    """The call is refused, nobody is asked."""


class RunStatus(enum.StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    """A person has to approve or deny calls."""
    AWAITING_INPUT = "awaiting_input"
    """A server asked for something that a person has to answer."""
    COMPLETED = "completed"
    LIMIT_REACHED = "limit_reached"
    """Rounds, tokens or time are used up; there is no answer, or only a part of one."""
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_paused(self) -> bool:
        """Whether the run waits for a person."""
        return self in (RunStatus.AWAITING_APPROVAL, RunStatus.AWAITING_INPUT)

    @property
    def is_final(self) -> bool:
        """Whether nothing comes any more."""
        return self in (RunStatus.COMPLETED, RunStatus.LIMIT_REACHED, RunStatus.FAILED, RunStatus.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class AgentServerSpec:
    """What an agent may use of one server."""

    name: str
    filter: ToolFilter = field(default_factory=ToolFilter)
    fixed_arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """Tool -> arguments that every call has, and that models neither see nor change."""
    output_filters: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Glob of tools -> filters of their results, in order; see ``toolsets.output``."""
    result_limit: int | None = None
    """Characters of a result that a model reads; None = the agent's limit."""
    result_limits: Mapping[str, int] = field(default_factory=dict)
    """Glob of tools -> characters; beats ``result_limit``."""
    approval: ApprovalPolicy | None = None
    """None = the agent's policy."""
    tool_approvals: Mapping[str, ApprovalPolicy] = field(default_factory=dict)
    """Glob of tools -> policy; beats ``approval``."""


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """A stored agent, or one that code made up; nothing in it depends on the database."""

    name: str
    revision: int = 0
    """Grows with each change of the stored agent."""
    servers: tuple[AgentServerSpec, ...] = ()
    all_servers: bool = False
    """Also every other enabled server."""
    filter: ToolFilter = field(default_factory=ToolFilter)
    fixed_arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """For tools of any server; those of a server win."""
    output_filters: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """For tools of any server; those of a server win."""
    result_limit: int = 100_000
    """Characters of a result that a model reads."""
    approval: ApprovalPolicy = ApprovalPolicy.NEVER
    tool_approvals: Mapping[str, ApprovalPolicy] = field(default_factory=dict)
    """Glob of tools of any server -> policy; what a server says of its tools wins."""
    approval_lifetime: float | None = None
    """Seconds for which an approval is waited for, and then may be used; None = the setting."""
    validation: Literal["error", "warn", "off"] = "error"
    """What becomes of arguments that do not fit a tool's schema."""
    model: str = ""
    """``provider:model``; empty = the agent only serves its tools."""
    base_url: str = field(default="", repr=False)
    """Of a server that speaks as the provider does."""
    api_key_variable: str = ""
    """The environment variable that holds the key; the key itself is never stored."""
    may_reference_environment: bool = True
    """Whether that may be any variable, or only one of ``MCP_CLIENT_ENV_ALLOW``."""
    instructions: str = field(default="", repr=False)
    model_settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    max_rounds: int = 8
    """Requests to the model whose answer asked for tools."""
    max_parallel_calls: int = 8
    """Calls of one round that run at once; 0 = no limit."""
    token_limit: int | None = None
    """Tokens of a whole run; None = no limit."""
    time_limit: float | None = None
    """Seconds of a whole run, without the time that it waits for people; None = the setting, 0 = no limit."""

    def server(self, name: str) -> AgentServerSpec | None:
        """Return what is said of a server, whatever the case of its name."""
        folded = name.casefold()
        return next((each for each in self.servers if each.name.casefold() == folded), None)
