"""Why an approval cannot be used, or not be decided: as errors, and in words for models."""

from __future__ import annotations

from typing import Final

from mcp_client_app.exceptions import ApprovalError
from mcp_client_app.models import Approval
from mcp_client_app.moments import local

__all__ = ["denial_text", "not_decidable", "not_usable", "refused"]

Status = Approval.Status

_UNUSABLE: Final = {
    Status.PENDING: ("pending", "Nobody has decided yet whether this call may be made."),
    Status.USED: ("used", "This approval has been used; each is good for one call."),
    Status.DENIED: ("denied", ""),
    Status.EXPIRED: ("expired", ""),
    Status.CANCELLED: ("cancelled", ""),
}


def denial_text(row: Approval) -> str:
    """Return why the call is not made, in words that a model reads; empty if it may be, or was."""
    standing = row.standing
    if standing == Status.DENIED:
        return f"denied by a person: {row.reason}" if row.reason else "denied by a person"
    if standing == Status.EXPIRED:
        if row.decided_at is not None:
            return "not made: a person had agreed, and it was not made in time"
        return "not made: no person has decided in time"
    if standing == Status.CANCELLED:
        return "not made: it was withdrawn before a person had decided"
    return ""


def refused(row: Approval, reason: str, message: str) -> ApprovalError:
    """Return the error about a row."""
    return ApprovalError(message, approval=str(row.pk), reason=reason, server=row.server_name or None)


def not_usable(row: Approval) -> ApprovalError | None:
    """Return why the call of a row may not be made; None if it may be."""
    found = _UNUSABLE.get(row.standing)
    return None if found is None else refused(row, found[0], found[1] or denial_text(row))


def not_decidable(row: Approval) -> ApprovalError | None:
    """Return why a row cannot be decided any more; None if it can be."""
    standing = row.standing
    if standing == Status.PENDING:
        return None
    if standing == Status.EXPIRED and row.decided_at is None:
        when = local(row.expires_at).isoformat(timespec="seconds")
        return refused(row, "expired", f"The time to decide was over at {when}; the call is not made.")
    if standing == Status.CANCELLED:
        return refused(row, "cancelled", "The call was withdrawn; there is nothing to decide any more.")
    how = {Status.DENIED: "denied", Status.ANSWERED: "answered"}.get(standing)
    how = how or ("answered" if row.is_input else "approved")
    who = f" by {row.decided_by_name}" if row.decided_by_name else ""
    return refused(row, "decided", f"This was {how}{who} already.")
