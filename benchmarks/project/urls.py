"""Two places: the API, and nothing."""

from __future__ import annotations

from django.urls import include, path

from benchmarks.project.views import NoOpView

urlpatterns = [
    path("no-op/", NoOpView.as_view()),
    path("api/", include("mcp_client_app.api.urls")),
]
