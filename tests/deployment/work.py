"""A Celery application whose tasks call tools: run by workers, and loaded by who orders tasks."""

from __future__ import annotations

import os

from celery import Celery

__all__ = ["app", "call"]

BROKER = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/0")
PREFIX = os.environ["TEST_CELERY_PREFIX"]

app = Celery("work", broker=BROKER, backend=BROKER, set_as_current=False)
app.conf.update(
    broker_transport_options={"global_keyprefix": PREFIX},
    result_backend_transport_options={"global_keyprefix": PREFIX},
    broker_connection_retry_on_startup=False,
    # Each process takes a task when it is free, not four in advance.
    worker_prefetch_multiplier=1,
)


@app.task(name="call")
def call(name: str, arguments: dict[str, object]) -> tuple[int, str]:
    """Call a tool; return who has called it, and the answer."""
    # Not before: a worker loads this module before Django is set up.
    from mcp_client_app import services

    return os.getpid(), services.call_tool(name, arguments).text
