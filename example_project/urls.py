"""URLs of the example project."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from example_project import agents, views

urlpatterns = [
    path("", views.home, name="home"),
    path("admin/", admin.site.urls),
    path("api/mcp/", include("mcp_client_app.api.urls")),
    path("agents/rest/", agents.over_rest, name="agent-over-rest"),
    path("agents/run/", agents.stored_agent, name="agent-run"),
    path("agents/services/", agents.over_services, name="agent-over-services"),
    path("agents/services/async/", agents.over_services_async, name="agent-over-services-async"),
]
