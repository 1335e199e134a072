"""Rows of the audit that wait in a worker are written when it ends as its kind ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deployment.sites import KINDS, Ground, deployed, rows_of

CALLS = "SELECT count(*) FROM mcp_client_app_toolcall WHERE server_name = 'early' AND code = 'ok'"


@pytest.mark.parametrize("kind", ["gunicorn", "gunicorn-preload", "gunicorn-uvicorn", "uvicorn-1"])
def test_a_server_that_is_stopped_writes_what_waits(kind: str, ground: Ground, tmp_path: Path):
    with deployed(KINDS[kind], ground, tmp_path, DJANGO_SETTINGS_MODULE="tests.deployment.batching") as site:
        answers = site.burst(lambda: site.call("early__echo", text="hi"))
        assert {answer.status for answer in answers} == {200}
        assert rows_of(tmp_path, CALLS) == [(0,)]
        site.stop()

    # A site that was preloaded has made a call of its own.
    assert rows_of(tmp_path, CALLS) == [(len(answers) + (kind == "gunicorn-preload"),)]
