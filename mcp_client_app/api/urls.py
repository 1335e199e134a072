"""The endpoints. Include it where the API shall be: ``path("api/mcp/", include("mcp_client_app.api.urls"))``.

Each address answers with and without a slash at its end: a redirect would lose the body of a
POST.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from django.urls import URLPattern, re_path

from mcp_client_app.api.agent_calls import AgentCallViewSet
from mcp_client_app.api.agent_runs import AgentRunViewSet
from mcp_client_app.api.agents import AgentViewSet, UsableAgentViewSet
from mcp_client_app.api.approvals import ApprovalViewSet
from mcp_client_app.api.calls import RequestViewSet, ToolCallViewSet
from mcp_client_app.api.connections import ConnectionViewSet, ServerConnectionViewSet
from mcp_client_app.api.health import HealthViewSet
from mcp_client_app.api.history import HistoryViewSet
from mcp_client_app.api.index import IndexViewSet, NowhereViewSet
from mcp_client_app.api.offers import OfferViewSet, ServerOfferViewSet
from mcp_client_app.api.runs import RunViewSet
from mcp_client_app.api.servers import ServerViewSet
from mcp_client_app.api.transfer import TransferViewSet
from mcp_client_app.api.viewsets import MCPViewSet

__all__ = ["app_name", "urlpatterns"]

app_name = "mcp_client"

SERVER: Final = r"servers/(?P<name>[^/]+)"
AGENT: Final = r"agents/(?P<name>[^/]+)"
RUN: Final = r"runs/(?P<id>[^/]+)"
APPROVAL: Final = r"approvals/(?P<id>[^/]+)"


def _endpoint(place: str, viewset: type[MCPViewSet], name: str, **actions: str) -> URLPattern:
    pattern: URLPattern = re_path(rf"^{place}/?$", viewset.as_view(actions), name=name)
    return pattern


urlpatterns = [
    # Django tries them in turn: first what is asked for most.
    _endpoint("tools/call", ToolCallViewSet, "tool-call", post="call"),
    re_path(r"^$", IndexViewSet.as_view({"get": "show"}), name="index"),
    _endpoint("servers", ServerViewSet, "server-list", get="list", post="create"),
    _endpoint(
        SERVER,
        ServerViewSet,
        "server-detail",
        get="retrieve",
        put="update",
        patch="partial_update",
        delete="destroy",
    ),
    _endpoint(f"{SERVER}/connect", ServerConnectionViewSet, "server-connect", post="connect"),
    _endpoint(f"{SERVER}/disconnect", ServerConnectionViewSet, "server-disconnect", post="disconnect"),
    _endpoint(f"{SERVER}/refresh", ServerConnectionViewSet, "server-refresh", post="refresh"),
    _endpoint(f"{SERVER}/test", ServerConnectionViewSet, "server-test", post="test"),
    _endpoint(f"{SERVER}/logs", ServerConnectionViewSet, "server-logs", get="logs"),
    _endpoint(f"{SERVER}/tools", ServerOfferViewSet, "server-tools", get="tools"),
    _endpoint(f"{SERVER}/resources", ServerOfferViewSet, "server-resources", get="resources"),
    _endpoint(
        f"{SERVER}/resource-templates",
        ServerOfferViewSet,
        "server-resource-templates",
        get="resource_templates",
    ),
    _endpoint(f"{SERVER}/prompts", ServerOfferViewSet, "server-prompts", get="prompts"),
    _endpoint("tools", OfferViewSet, "tool-list", get="tools"),
    _endpoint("resources", OfferViewSet, "resource-list", get="resources"),
    _endpoint("resources/read", RequestViewSet, "resource-read", post="read_resource"),
    _endpoint("resource-templates", OfferViewSet, "resource-template-list", get="resource_templates"),
    _endpoint("prompts", OfferViewSet, "prompt-list", get="prompts"),
    _endpoint("prompts/get", RequestViewSet, "prompt-get", post="get_prompt"),
    _endpoint("complete", RequestViewSet, "complete", post="complete"),
    _endpoint("connect", ConnectionViewSet, "connect", post="connect"),
    _endpoint("disconnect", ConnectionViewSet, "disconnect", post="disconnect"),
    _endpoint("usable-agents", UsableAgentViewSet, "usable-agent-list", get="list"),
    _endpoint("agents", AgentViewSet, "agent-list", get="list", post="create"),
    _endpoint(
        AGENT,
        AgentViewSet,
        "agent-detail",
        get="retrieve",
        put="update",
        patch="partial_update",
        delete="destroy",
    ),
    _endpoint(f"{AGENT}/tools", AgentCallViewSet, "agent-tools", get="tools"),
    _endpoint(f"{AGENT}/call", AgentCallViewSet, "agent-call", post="call"),
    _endpoint(f"{AGENT}/run", AgentRunViewSet, "agent-run", post="run"),
    _endpoint(f"{AGENT}/runs", AgentRunViewSet, "agent-run-list", get="list", post="start"),
    _endpoint("runs", RunViewSet, "run-list", get="list"),
    _endpoint(RUN, RunViewSet, "run-detail", get="retrieve"),
    _endpoint(f"{RUN}/events", RunViewSet, "run-events", get="events"),
    _endpoint(f"{RUN}/cancel", RunViewSet, "run-cancel", post="cancel"),
    _endpoint(f"{RUN}/input", RunViewSet, "run-input", post="answer"),
    _endpoint("approvals", ApprovalViewSet, "approval-list", get="list"),
    _endpoint(APPROVAL, ApprovalViewSet, "approval-detail", get="retrieve"),
    _endpoint(f"{APPROVAL}/approve", ApprovalViewSet, "approval-approve", post="approve"),
    _endpoint(f"{APPROVAL}/deny", ApprovalViewSet, "approval-deny", post="deny"),
    _endpoint(f"{APPROVAL}/answer", ApprovalViewSet, "approval-answer", post="answer"),
    _endpoint("calls", HistoryViewSet, "call-list", get="list"),
    _endpoint("import", TransferViewSet, "import", post="import_servers"),
    _endpoint("export", TransferViewSet, "export", get="export_servers"),
    _endpoint("health", HealthViewSet, "health", get="show"),
]

if find_spec("drf_spectacular") is not None:
    from mcp_client_app.api.schema import schema_view

    urlpatterns.append(re_path(r"^schema/?$", schema_view, name="schema"))

urlpatterns.append(re_path(r"", NowhereViewSet.as_view({"get": "initial"}), name="nowhere"))
