"""What a run waits for, as its events tell it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import Approval
from mcp_client_app.services.approvals import approval_state

__all__ = ["waiting_for"]

Event = tuple[str, dict[str, Any]]


def waiting_for(run_id: UUID) -> tuple[RunStatus, list[Event]]:
    """Return where a run stands that waits for people, and the events that say for what."""
    approvals, questions = [], []
    for row in approval_state(run_id).pending:
        asked = {
            "id": str(row.pk),
            "call_id": row.call_id,
            "server": row.server_name,
            "tool": row.tool,
            "arguments": row.arguments,
            "expires_at": row.expires_at.isoformat(),
        }
        if row.kind == Approval.Kind.INPUT:
            questions.append({**asked, "requests": row.requests})
        else:
            approvals.append(asked)
    events: list[Event] = []
    if approvals:
        events.append(("approval.required", {"approvals": approvals}))
    if questions:
        events.append(("input.required", {"inputs": questions}))
    return RunStatus.AWAITING_APPROVAL if approvals else RunStatus.AWAITING_INPUT, events
