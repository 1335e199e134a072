"""Settings of the client under test: a site with nothing but the app, on a database that is thrown away."""

from __future__ import annotations

import os

SECRET_KEY = "only-for-conformance"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "mcp_client_app"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["CONFORMANCE_DATABASE"],
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

MCP_CLIENT_CONFIG_FILE = None
MCP_CLIENT_REAPER = False
