"""gevent, eventlet and uWSGI without threads, as real processes: refused with the cure, and nothing hangs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import leftovers
from tests.deployment.sites import GEVENT, SECONDS, UWSGI, Ground, deployed, environment
from tests.deployment.watching import in_use
from tests.stored import ROOT

PATCHES = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "eventlet": "import eventlet; eventlet.monkey_patch()",
}
CALL = """
import django
django.setup()
from mcp_client_app import exceptions, services
try:
    services.call_tool("early__pid")
except exceptions.ConfigurationError as error:
    print(error)
"""


@pytest.mark.parametrize("library", PATCHES)
def test_a_process_with_patched_threads_is_told_what_to_use(library: str, ground: Ground, tmp_path: Path):
    shutil.copytree(ground.directory, tmp_path, dirs_exist_ok=True)
    result = subprocess.run(
        [sys.executable, "-c", PATCHES[library] + CALL],
        cwd=ROOT,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert library in result.stdout
    assert "gthread" in result.stdout
    assert "Celery" in result.stdout


def test_under_gunicorns_gevent_calls_are_refused_and_rows_can_be_edited(ground: Ground, tmp_path: Path):
    with deployed(GEVENT, ground, tmp_path) as site:
        refused = site.call("early__pid")
        assert (refused.status, refused.body["code"]) == (409, "configuration")
        assert "gthread" in refused.body["detail"]
        site.add("another")
        listed = site.send("GET", "servers/")
        assert (listed.status, listed.body["count"]) == (200, 3)
        started = leftovers.descendants(site.master.pid)
        site.stop()
        assert leftovers.survivors(started) == []


def test_uwsgi_with_threads_is_none_of_them(ground: Ground, tmp_path: Path):
    with deployed(UWSGI, ground, tmp_path) as site:
        [pid] = in_use(site, "early")
        started = leftovers.descendants(site.master.pid)
        assert int(pid) in started
        site.stop()
        assert leftovers.survivors(started) == []
