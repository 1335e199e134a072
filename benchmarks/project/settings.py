"""Settings; what varies comes from the environment, set by ``benchmarks.sites``."""

from __future__ import annotations

import json
import os
from typing import Any

SECRET_KEY = "of a project that only this machine can reach"  # noqa: S105 - it signs nothing
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "benchmarks.project.urls"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "rest_framework", "mcp_client_app"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

DATABASES: dict[str, dict[str, Any]]
if os.environ.get("BENCHMARK_POSTGRESQL"):
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ.get("PGHOST", "127.0.0.1"),
            "PORT": os.environ.get("PGPORT", "5432"),
            "USER": os.environ.get("PGUSER", "postgres"),
            "NAME": os.environ["BENCHMARK_POSTGRESQL"],
            "CONN_MAX_AGE": None,
        },
    }
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ["BENCHMARK_SQLITE"],
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                "timeout": 20,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        },
    }

# Signing in costs nothing here: a query for a token would make our share of a request look smaller.
REST_FRAMEWORK = {"DEFAULT_AUTHENTICATION_CLASSES": ["benchmarks.project.signing_in.Everybody"]}

MCP_CLIENT_SERVERS = {"fast": json.loads(os.environ["BENCHMARK_SERVER"])}
MCP_CLIENT_AUDIT = os.environ["BENCHMARK_AUDIT"] != "off"
MCP_CLIENT_AUDIT_BATCH = os.environ["BENCHMARK_AUDIT"] == "batch"
