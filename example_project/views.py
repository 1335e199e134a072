"""The one page of the example project: which servers and agents there are, and how they fare."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from mcp_client_app import services


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show what this process knows about its servers and agents; looking never connects anything."""
    shown = {"servers": services.server_statuses(), "agents": services.usable_agents()}
    return render(request, "example_project/home.html", shown)
