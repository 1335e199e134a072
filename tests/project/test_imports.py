"""What importing and administering the app costs: no SDK, no model provider, no thread, no process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

NOTHING_STARTED = """
import pathlib, sys, threading
heavy = {"mcp", "mcp_types", "aiohttp", "httpx2", "anyio", "pydantic", "pydantic_ai", "openai", "anthropic"}
loaded = heavy & set(sys.modules)
assert not loaded, f"loaded: {loaded}"
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
children = [path.read_text().split() for path in pathlib.Path("/proc/self/task").glob("*/children")]
assert not any(children), f"children: {children}"
"""


def run(code: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "TEST_DATABASE_FILE": str(tmp_path / "db.sqlite3"),
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_setting_up_the_app_loads_no_sdk_and_starts_nothing(tmp_path):
    run("import django\ndjango.setup()" + NOTHING_STARTED, tmp_path)


@pytest.mark.parametrize(
    "command",
    ["'migrate', verbosity=0", "'check', fail_level='WARNING'", "'makemigrations', check=True, dry_run=True"],
    ids=["migrate", "check", "makemigrations"],
)
def test_administering_a_project_loads_no_sdk_and_starts_nothing(command, tmp_path):
    code = f"""
import django
django.setup()
from django.core.management import call_command
call_command({command})
"""
    run(code + NOTHING_STARTED, tmp_path)


def test_the_url_configuration_and_the_admin_load_no_sdk(tmp_path):
    code = """
import django
django.setup()
from django.contrib import admin
from django.urls import get_resolver
admin.autodiscover()
get_resolver().url_patterns
"""
    run(code + NOTHING_STARTED, tmp_path)


def test_the_connection_core_knows_no_django(tmp_path):
    code = """
import sys
import mcp_client_app.client.manager
loaded = {"django", "rest_framework", "asgiref"} & set(sys.modules)
assert not loaded, f"loaded: {loaded}"
"""
    run(code, tmp_path)
