"""A site whose agents run on Celery's workers: its settings, and its Celery application."""

from __future__ import annotations

import os

from celery import Celery

from tests.deployment.clerk import *  # noqa: F403 (the same settings, with Celery)

BROKER = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/0")

MCP_CLIENT_RUN_BACKEND = "celery"
MCP_CLIENT_RUN_QUEUE = os.environ["TEST_CELERY_PREFIX"] + "runs"

app = Celery("clerks", broker=BROKER)
app.conf.update(
    broker_transport_options={"global_keyprefix": os.environ["TEST_CELERY_PREFIX"]},
    broker_connection_retry_on_startup=False,
    # Each process takes a run when it is free, not four in advance.
    worker_prefetch_multiplier=1,
)
app.autodiscover_tasks(["mcp_client_app"])
