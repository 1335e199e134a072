"""The example project with a scripted model, and with room for many runs in one process."""

from __future__ import annotations

from example_project.settings import *  # noqa: F403 (how Django's settings are derived)

MCP_CLIENT_MODELS = {"scripted:caller": "tests.api.models.caller"}
MCP_CLIENT_RUN_WORKERS = 100
