"""The settings of the test suite on PostgreSQL: ``pytest --ds=tests.settings_postgresql tests/services``."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403 (the same settings, but for the database)

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ.get("PGHOST", "127.0.0.1"),
        "PORT": os.environ.get("PGPORT", "5432"),
        "USER": os.environ.get("PGUSER", "postgres"),
        "NAME": os.environ.get("PGDATABASE", "test"),
        "TEST": {"NAME": f"test_mcp_client_app_{os.getpid()}"},
    },
}
