"""The project as an ASGI application, for uvicorn and its like."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

from mcp_client_app.asgi import with_lifespan

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")

application = with_lifespan(get_asgi_application())
