"""Who may do what. ``user=None`` is trusted code of the project itself: it may do everything."""

from __future__ import annotations

from typing import Any, Final

from mcp_client_app.exceptions import PermissionDeniedError

__all__ = [
    "ADD",
    "ADD_AGENT",
    "CALL",
    "CHANGE",
    "CHANGE_AGENT",
    "CHANGE_RUN",
    "CONNECT",
    "DECIDE",
    "DELETE",
    "DELETE_AGENT",
    "REFERENCE",
    "RUN_AGENT",
    "RUN_CODE",
    "VIEW",
    "VIEW_AGENT",
    "VIEW_APPROVAL",
    "VIEW_RUN",
    "may",
    "require",
]

APP: Final = "mcp_client_app"
VIEW: Final = f"{APP}.view_serverconfig"
ADD: Final = f"{APP}.add_serverconfig"
CHANGE: Final = f"{APP}.change_serverconfig"
DELETE: Final = f"{APP}.delete_serverconfig"
CONNECT: Final = f"{APP}.connect_serverconfig"
RUN_CODE: Final = f"{APP}.run_code_serverconfig"
REFERENCE: Final = f"{APP}.reference_environment"
CALL: Final = f"{APP}.call_tool"
VIEW_AGENT: Final = f"{APP}.view_agentconfig"
ADD_AGENT: Final = f"{APP}.add_agentconfig"
CHANGE_AGENT: Final = f"{APP}.change_agentconfig"
DELETE_AGENT: Final = f"{APP}.delete_agentconfig"
RUN_AGENT: Final = f"{APP}.run_agentconfig"
VIEW_RUN: Final = f"{APP}.view_agentrun"
CHANGE_RUN: Final = f"{APP}.change_agentrun"
VIEW_APPROVAL: Final = f"{APP}.view_approval"
DECIDE: Final = f"{APP}.decide_approval"


def may(user: Any, permission: str) -> bool:
    """Say whether the user has a permission; an inactive or anonymous one has none."""
    return user is None or bool(user.is_active and user.has_perm(permission))


def require(user: Any, *permissions: str, server: str | None = None) -> None:
    """Insist on one of the permissions.

    Raises:
        PermissionDeniedError: Naming the first of them.
    """
    if not any(may(user, permission) for permission in permissions):
        raise PermissionDeniedError(
            f"This needs the permission {permissions[0]!r}.", server=server, permission=permissions[0]
        )
