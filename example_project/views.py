"""The one page of the example project: which servers there are and how they fare."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from mcp_client_app import services


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show what this process knows about its servers; looking never connects anything."""
    servers = services.server_statuses()
    return render(request, "example_project/home.html", {"servers": servers})
