"""The example project under WSGI, using a server while it is loaded: before workers are forked."""

from __future__ import annotations

from django.db import connections

from example_project.wsgi import application
from mcp_client_app import services

__all__ = ["application"]

assert services.call_tool("early__echo", {"text": "hi"}).text == "hi"
# A database connection must not be shared by a fork: what Django asks of whoever preloads.
connections.close_all()
