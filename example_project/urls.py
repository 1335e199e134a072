"""URLs of the example project."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from example_project import views

urlpatterns = [
    path("", views.home, name="home"),
    path("admin/", admin.site.urls),
    path("api/mcp/", include("mcp_client_app.api.urls")),
]
