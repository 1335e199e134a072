"""Rows of real servers, for tests of what stands between rows and connections."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections

from mcp_client_app.models import ServerConfig

ROOT = Path(__file__).resolve().parent.parent
FAULTY = ROOT / "tests" / "servers" / "faulty_stdio.py"


def is_rolled_back(request: pytest.FixtureRequest) -> bool:
    """Say whether a test's transaction is rolled back: rows that other threads write outlive such a test."""
    marker = request.node.get_closest_marker("django_db")
    commits = {"transactional_db", "live_server"} & set(request.fixturenames)
    return not commits and not (marker is not None and marker.kwargs.get("transaction"))


def peer_fields(*options: str) -> dict[str, Any]:
    """Return the fields of a raw stdio peer; it is well-behaved unless ``options`` say otherwise."""
    return {"transport": "stdio", "command": sys.executable, "args": ["-S", "-E", str(FAULTY), *options]}


def peer_entry(*options: str) -> dict[str, Any]:
    """Return the same peer as an entry of an ``mcp.json``."""
    fields = peer_fields(*options)
    return {"command": fields["command"], "args": fields["args"]}


def stored(name: str = "peer", *options: str, **fields: Any) -> ServerConfig:
    """Store a raw stdio peer."""
    return ServerConfig.objects.create(**{"name": name, **peer_fields(*options), **fields})


def process_environment() -> dict[str, str]:
    """Return the environment of another process of the same site, with the test's database."""
    name = str(connection.settings_dict["NAME"])
    return {
        **{key: value for key, value in os.environ.items() if key.startswith(("COVERAGE", "PG"))},
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"],
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PGDATABASE" if connection.vendor == "postgresql" else "TEST_DATABASE_FILE": name,
    }


def run_process(code: str, *, before: str = "", **environment: str) -> str:
    """Run code in another process of the same site, with the test's database; returns what it printed.

    ``before`` runs before Django is set up.
    """
    prelude = f"{before}import django\ndjango.setup()\n"
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", prelude + code],
        cwd=ROOT,
        env={**process_environment(), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


async def close_connections() -> None:
    """Close the database connections that coroutines have opened, in the thread kept for them."""
    await sync_to_async(connections.close_all)()
