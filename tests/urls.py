"""URLs of the test project: what a host project would mount."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/mcp/", include("mcp_client_app.api.urls")),
]
