"""The Redis that Celery's workers take their tasks from."""

from __future__ import annotations

import os

import pytest
import redis

BROKER = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/0")


def require_redis(client: redis.Redis) -> None:
    """Skip the test where no Redis is reachable; in CI that is a failure."""
    try:
        client.ping()
    except redis.ConnectionError:
        if os.environ.get("CI"):
            pytest.fail(
                "CI needs a Redis; TEST_REDIS_URL names another than that of this machine.", pytrace=False
            )
        pytest.skip("no Redis is reachable; TEST_REDIS_URL names one")
