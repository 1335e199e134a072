"""An app that has rows of the audit wait for the end of the process, and the settings of a site with it."""

from __future__ import annotations

from django.apps import AppConfig

from example_project.settings import *  # noqa: F403 (the same settings, with batches)

INSTALLED_APPS = [*INSTALLED_APPS, "tests.deployment.batching.Waiting"]  # noqa: F405
MCP_CLIENT_AUDIT_BATCH = True


class Waiting(AppConfig):
    """No batch is ever complete: what is written was written by a flush."""

    name = "tests.deployment"

    def ready(self) -> None:
        from mcp_client_app.services import audit_writer

        vars(audit_writer)["INTERVAL"] = 3600.0
