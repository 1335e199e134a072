"""Who asks: one column of the matrix each."""

from __future__ import annotations

from django.contrib.auth.models import Permission, User
from django.test import Client

SINGLE = {
    "view": "view_serverconfig",
    "add": "add_serverconfig",
    "change": "change_serverconfig",
    "delete": "delete_serverconfig",
    "connect": "connect_serverconfig",
    "runcode": "run_code_serverconfig",
    "refenv": "reference_environment",
    "call": "call_tool",
    "v.calls": "view_toolcall",
    "v.state": "view_serverstate",
    "v.proc": "view_workerprocess",
    "a.view": "view_agentconfig",
    "a.add": "add_agentconfig",
    "a.chg": "change_agentconfig",
    "a.del": "delete_agentconfig",
    "a.run": "run_agentconfig",
    "v.run": "view_agentrun",
    "decide": "decide_approval",
}
"""Staff with one permission: column to permission."""

EDITOR = ("view_serverconfig", "add_serverconfig", "change_serverconfig", "delete_serverconfig")
SEVERAL = {
    "v+conn": ("view_serverconfig", "connect_serverconfig"),
    "editor": EDITOR,
    "ed+run": (*EDITOR, "run_code_serverconfig"),
}
"""Staff with several: usual roles."""
COLUMNS = ("anon", "plain", "staff", *SINGLE, *SEVERAL, "rest", "super")


def make_clients() -> dict[str, Client]:
    """Return a client for each column.

    ``rest`` has, all at once, the permissions that have no column: those to edit what only the app
    itself writes.
    """
    ours = Permission.objects.filter(content_type__app_label="mcp_client_app")
    users = {
        "plain": User.objects.create_user("plain"),
        "staff": _staff("staff"),
        **{column: _staff(column, *ours.filter(codename=name)) for column, name in SINGLE.items()},
        **{column: _staff(column, *ours.filter(codename__in=names)) for column, names in SEVERAL.items()},
        "rest": _staff("rest", *ours.exclude(codename__in=SINGLE.values())),
        "super": User.objects.create_superuser("super"),
    }
    clients = {"anon": Client(raise_request_exception=False)}
    for column, user in users.items():
        clients[column] = Client(raise_request_exception=False)
        clients[column].force_login(user)
    return clients


def _staff(name: str, *permissions: Permission) -> User:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(permissions)
    return user
