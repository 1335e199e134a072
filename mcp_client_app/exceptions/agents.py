"""Agents: runs, approvals, models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp_client_app.exceptions.base import MCPClientError, present
from mcp_client_app.exceptions.configuration import ConfigurationError

__all__ = [
    "ApprovalError",
    "ApprovalRequiredError",
    "BackendUnavailableError",
    "DuplicateAgentError",
    "InvalidHistoryError",
    "ModelError",
    "RunStateError",
    "UnknownAgentError",
    "UnknownRunError",
]


class UnknownAgentError(MCPClientError, LookupError):
    """There is no such agent, or it is disabled, or it is not for you."""

    code = "unknown_agent"

    def __init__(self, message: str | None = None, *, agent: str | None = None) -> None:
        super().__init__(message)
        self.agent = agent

    def details(self) -> dict[str, Any]:
        return present(agent=self.agent)


class DuplicateAgentError(ConfigurationError):
    """An agent of this name exists already."""

    code = "duplicate_agent"


class InvalidHistoryError(MCPClientError, ValueError):
    """The history is no list of messages as earlier results have them."""

    code = "invalid_history"


class UnknownRunError(MCPClientError, LookupError):
    """There is no such run or approval, or it is somebody else's."""

    code = "unknown_run"


class ApprovalRequiredError(MCPClientError):
    """A person has to approve this call before it is made."""

    code = "approval_required"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        tool: str | None = None,
        approval: str | None = None,
        expires_at: str | None = None,
    ) -> None:
        super().__init__(message, server=server)
        self.tool = tool
        self.approval = approval
        """The id of the stored approval; None if none was stored."""
        self.expires_at = expires_at
        """ISO 8601: until when it may be decided, and then used."""

    def details(self) -> dict[str, Any]:
        return present(tool=self.tool, approval=self.approval, expires_at=self.expires_at)


class ApprovalError(MCPClientError):
    """This approval cannot be used, or not decided any more."""

    code = "approval_invalid"

    def __init__(
        self,
        message: str | None = None,
        *,
        approval: str | None = None,
        reason: str | None = None,
        server: str | None = None,
    ) -> None:
        super().__init__(message, server=server)
        self.approval = approval
        self.reason = reason
        """``pending``, ``denied``, ``expired``, ``cancelled``, ``used`` or ``decided``; ``changed``,
        ``other_agent``, ``other_run``, ``other_user`` or ``other_kind``; ``no_schema``."""

    def details(self) -> dict[str, Any]:
        return present(approval=self.approval, reason=self.reason)


class RunStateError(MCPClientError):
    """The run is not in a state for this."""

    code = "run_state"

    def __init__(
        self,
        message: str | None = None,
        *,
        run: str | None = None,
        status: str | None = None,
        allowed: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.run = run
        self.status = status
        """Where the run stands."""
        self.allowed = tuple(allowed)
        """The states in which it would be possible."""

    def details(self) -> dict[str, Any]:
        return present(run=self.run, status=self.status, allowed=list(self.allowed) or None)


class BackendUnavailableError(MCPClientError):
    """What executes runs in the background cannot be reached."""

    code = "backend_unavailable"


class ModelError(MCPClientError):
    """The model's provider failed or refused the request."""

    code = "model_error"

    def __init__(
        self, message: str | None = None, *, model: str | None = None, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.model = model
        self.status = status
        """The HTTP status of the provider's answer, if there was one."""

    def details(self) -> dict[str, Any]:
        return present(model=self.model, status=self.status)
