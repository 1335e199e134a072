"""What becomes of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentRun

__all__ = ["AgentResult"]


@dataclass(frozen=True, kw_only=True)
class AgentResult:
    """A run that has come to rest: at its end, or where it waits for people."""

    run_id: str
    agent: str
    status: RunStatus
    text: str = ""
    """The answer; if there is none, what the model had said before the end."""
    code: str = ""
    """Why it ended as it did, for machines; empty if all went well."""
    detail: str = ""
    """The same in a sentence."""
    tool_rounds: int = 0
    """How often the model asked for tools, and got them."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    """Requests, tokens and the like, as the providers counted them."""
    messages: list[Any] = field(default_factory=list, repr=False)
    """The conversation as JSON: the ``history`` of a next run."""
    approvals: tuple[str, ...] = ()
    """Ids of what waits for people."""

    @property
    def is_complete(self) -> bool:
        """Whether ``text`` is the answer, and nothing else."""
        return self.status is RunStatus.COMPLETED

    @classmethod
    def of(cls, run: AgentRun, approvals: tuple[str, ...] = ()) -> AgentResult:
        """Return what a row says."""
        return cls(
            run_id=str(run.pk),
            agent=run.agent_name,
            status=run.state,
            text=run.text,
            code=run.code,
            detail=run.detail,
            tool_rounds=run.tool_rounds,
            usage=dict(run.usage),
            messages=list(run.messages),
            approvals=approvals,
        )
