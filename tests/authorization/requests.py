"""What the matrix asks: every endpoint of the REST API and of the admin, each with a request that is valid.

A request has to be valid so that only permissions decide about it. The lists of endpoints come from
the URL configuration; here stand only their bodies, and the variants worth a row of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.urls import URLPattern, reverse

from mcp_client_app.api import urls as api_urls
from mcp_client_app.models import AgentConfig, Approval, ServerConfig, ServerState, ToolCall, WorkerProcess

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
MODELS = (ServerConfig, ToolCall, WorkerProcess, ServerState, AgentConfig, Approval)

REMOTE = "remote"
"""A stored server over HTTP, to which nobody listens."""
AGENT = "support"
"""A stored agent with one server."""
IDS = {
    "runs": "11111111-1111-4111-8111-111111111111",
    "approvals": "22222222-2222-4222-8222-222222222222",
}
"""A run of that agent, which nobody began in person, and an approval that it waits for."""
LOCAL = "local"
"""A stored stdio server."""
URL = "http://127.0.0.1:9/mcp"
REMOTE_BODY = {"name": "new", "transport": "streamable_http", "url": URL}
LOCAL_BODY = {"name": "new", "transport": "stdio", "command": "echo"}


@dataclass(frozen=True)
class Ask:
    """One row of the matrix."""

    endpoint: str
    method: str
    path: str
    body: dict[str, Any] = field(default_factory=dict)
    variant: str = ""
    is_form: bool = False
    is_action: bool = False

    def __str__(self) -> str:
        return " ".join(filter(None, (self.endpoint, self.method, self.variant)))


BODIES: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("server-list", "POST"): {"http": REMOTE_BODY, "stdio": LOCAL_BODY},
    ("server-detail", "PUT"): {"http": {"label": "x"}},
    ("server-detail", "PATCH"): {
        "http": {"label": "x"},
        "to stdio": {"transport": "stdio", "command": "echo"},
        "stdio": {"label": "x"},
    },
    ("server-detail", "DELETE"): {"http": {}, "stdio": {}},
    ("agent-list", "POST"): {"": {"name": "new", "servers": [{"server": REMOTE}]}},
    ("agent-detail", "PATCH"): {"": {"label": "x"}},
    ("tool-call", "POST"): {"": {"name": "remote__echo", "arguments": {}}},
    ("resource-read", "POST"): {"": {"server": REMOTE, "uri": "demo://x"}},
    ("prompt-get", "POST"): {"": {"server": REMOTE, "name": "x"}},
    ("complete", "POST"): {
        "": {"server": REMOTE, "ref": {"type": "ref/prompt", "name": "x"}, "argument": "y"}
    },
    ("connect", "POST"): {"": {"server": REMOTE}},
    ("disconnect", "POST"): {"": {"server": REMOTE}},
    ("import", "POST"): {
        "http": {"config": {"mcpServers": {"new": {"type": "http", "url": URL}}}},
        "http, existing": {"config": {"mcpServers": {REMOTE: {"type": "http", "url": URL + "2"}}}},
        "stdio": {"config": {"mcpServers": {"new": {"command": "echo"}}}},
    },
}
"""Endpoint and method to variant and body; an empty body where nothing stands."""


def api_asks() -> Iterator[Ask]:
    """Yield a row for each endpoint, method and variant of the REST API."""
    for pattern in api_urls.urlpatterns:
        name = str(pattern.name)
        for method in METHODS:
            for variant, body in BODIES.get((name, method), {"": {}}).items():
                yield Ask(f"api:{name}", method, _api_path(pattern, variant), body, variant)


def _api_path(pattern: URLPattern, variant: str) -> str:
    if pattern.name == "nowhere":
        return reverse("mcp_client:index") + "no/such/place"
    place = str(pattern.pattern).partition("/")[0].strip("^")
    names = {"servers": LOCAL if variant == "stdio" else REMOTE, "agents": AGENT}
    arguments = {"name": names.get(place), "id": IDS.get(place)}
    taken = {name: value for name, value in arguments.items() if f"<{name}>" in str(pattern.pattern)}
    return reverse(f"mcp_client:{pattern.name}", kwargs=taken)


def admin_asks(rows: dict[type, Any]) -> Iterator[Ask]:
    """Yield a row for each page of the admin of our models, and for each action of their lists."""
    for model in MODELS:
        model_admin: ModelAdmin[Any] = admin.site._registry[model]
        for pattern in model_admin.get_urls():
            if pattern.name is None:
                continue  # the old address of the change form, which only redirects
            place = pattern.name.removeprefix("mcp_client_app_")
            args = (rows[model].pk,) if "object_id" in str(pattern.pattern) else ()
            path = reverse(f"admin:{pattern.name}", args=args)
            for method in ("GET", "POST"):
                yield Ask(f"admin:{place}", method, path, admin_body(place, method), is_form=True)
        for name in admin_actions(model_admin):
            path = reverse(f"admin:mcp_client_app_{model._meta.model_name}_changelist")
            body = {"action": name, "_selected_action": [str(rows[model].pk)]}
            yield Ask(f"admin:{model._meta.model_name}_changelist", "POST", path, body, name, True, True)


def admin_actions(model_admin: ModelAdmin[Any]) -> list[str]:
    """Return the names of all actions that anybody might have, Django's own included."""
    return sorted({name for _, name, _ in model_admin._get_base_actions()})  # type: ignore[attr-defined]  # all of them, whoever asks


def admin_body(place: str, method: str) -> dict[str, Any]:
    """Return the body that gets a form of the admin past everything but permissions."""
    if method == "POST" and place in ("serverconfig_delete", "agentconfig_delete"):
        return {"post": "yes"}
    if method == "POST" and place == "approval_change":
        return {"_deny": "Deny"}
    return {}
