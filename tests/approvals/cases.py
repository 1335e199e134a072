"""Calls that wait for people, and what stands around them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.datatypes import InputKind, InputRequest, ToolInfo
from mcp_client_app.exceptions import InputRequiredError
from mcp_client_app.models import AgentConfig, AgentRun, Approval

GIVEN = {"article": "tea", "count": 2}
BUY = ToolInfo(
    server="shop",
    name="buy",
    input_schema={
        "type": "object",
        "properties": {
            "article": {"type": "string"},
            "count": {"type": "integer", "minimum": 1},
            "account": {"type": "string"},
        },
        "required": ["article", "account"],
    },
)
FORM = {
    "message": "Which colour?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red", "green"]},
            "gift": {"type": "boolean", "default": False},
        },
        "required": ["colour"],
    },
}
STATE = "the-servers-own-opaque-state"

handed_over: list[str] = []
"""The runs that were given to the backend."""
BACKEND = f"{__name__}.take_run"


def take_run(run_id: str) -> None:
    """Take a run, as a backend does."""
    handed_over.append(run_id)


def user(name: str, *permissions: str, **fields: Any) -> User:
    """Make a user with permissions of the app."""
    made = User.objects.create_user(name, **fields)
    found = Permission.objects.filter(content_type__app_label="mcp_client_app", codename__in=permissions)
    assert len(found) == len(permissions)
    made.user_permissions.set(found)
    return made


def run_of(owner: User | None, status: str = "running", **fields: Any) -> AgentRun:
    """Store a run of the agent ``support``."""
    agent, _ = AgentConfig.objects.get_or_create(name="support")
    name = owner.username if owner is not None else ""
    return AgentRun.objects.create(
        agent=agent, agent_name="support", user=owner, username=name, status=status, **fields
    )


def ask(owner: User | None, given: dict[str, Any] | None = None, **more: Any) -> Approval:
    """Ask for the approval of a purchase; the account is fixed."""
    place = {"fixed_names": ["account"], **more}
    tool = place.pop("tool", BUY)
    name = place.pop("toolset_name", "support")
    return services.request_approval(name, tool, GIVEN if given is None else given, user=owner, **place)


def use(row: Approval, owner: Any, given: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Use an approval as it was asked for."""
    place = {"toolset_name": "support", "tool": BUY, "run": row.run_id, "call_id": row.call_id, **more}
    return services.use_approval(row.pk, given=GIVEN if given is None else given, user=owner, **place)


def question(*keys: str, state: str | None = STATE, **params: Any) -> InputRequiredError:
    """Return what a call ends with whose server asks something."""
    asked = [
        InputRequest(server="shop", kind=InputKind.ELICITATION, tool="buy", key=key, params=params or FORM)
        for key in keys or ("colour",)
    ]
    return InputRequiredError(server="shop", tool="buy", requests=asked, request_state=state)


def ask_input(owner: User | None, error: InputRequiredError | None = None, **more: Any) -> Approval:
    """Keep what the shop asks for in the course of a purchase."""
    place = {"tool": BUY, **more}
    given = place.pop("given", GIVEN)
    return services.request_input("support", error or question(), given, user=owner, **place)


def overdue(row: Approval) -> Approval:
    """Let the time of an approval be over."""
    past = timezone.now() - timedelta(seconds=1)
    Approval.objects.filter(pk=row.pk).update(expires_at=past)
    row.refresh_from_db()
    return row


def refusal(caught: Any) -> str:
    """Return the reason of a refusal."""
    reason: str = caught.value.details()["reason"]
    return reason
