"""The runner of the conformance suite: what it runs, and what it takes for a failure."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"

REQUIREMENTS = """
server:
  - ping
client:
  - initialize # the first
  # a remark
  - tools_call

  - auth/basic-cimd
not_scored:
  - name: something
"""


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("conformance")


def outcome(runner: Any, *problems: str) -> Any:
    return runner.Outcome(passed=1, problems=list(problems))


def runs(runner: Any) -> list[Any]:
    return [runner.Run("2025-11-25", link, "initialize") for link in runner.LINKS]


def test_what_the_suite_scores_is_run_at_each_revision_and_through_each_link(
    runner: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "requirements").mkdir()
    for revision in runner.REVISIONS:
        (tmp_path / "requirements" / f"{revision}.yaml").write_text(REQUIREMENTS)
    monkeypatch.setattr(runner, "SUITE", tmp_path)

    assert runner.required("2025-11-25") == ["initialize", "tools_call"]
    wanted = [str(run) for run in runner.all_runs()]
    assert wanted[:4] == [
        "2025-11-25 own initialize",
        "2025-11-25 stock initialize",
        "2025-11-25 own tools_call",
        "2025-11-25 stock tools_call",
    ]
    assert len(wanted) == len(runner.REVISIONS) * len(runner.LINKS) * (2 + len(runner.EXTRA))


def test_a_suite_that_names_no_scenario_is_no_success(
    runner: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "2025-11-25.yaml").write_text("server:\n  - ping\n")
    monkeypatch.setattr(runner, "SUITE", tmp_path)
    with pytest.raises(SystemExit, match="names no scenarios"):
        runner.required("2025-11-25")


def test_all_passed_is_success_and_nothing_run_is_not(runner: Any):
    assert runner.judge({run: outcome(runner) for run in runs(runner)}, {}, True) == 0
    assert runner.judge({}, {}, True) == 1


def test_a_failure_fails_unless_the_baseline_expects_it(runner: Any, capsys: pytest.CaptureFixture[str]):
    own, stock = runs(runner)
    found = {own: outcome(runner, "WARNING timing: late"), stock: outcome(runner)}
    assert runner.judge(found, {}, True) == 1
    assert "Failed: 2025-11-25 own initialize" in capsys.readouterr().out
    assert runner.judge(found, {str(own): "the reason"}, True) == 0


def test_an_entry_that_is_not_needed_any_more_fails(runner: Any, capsys: pytest.CaptureFixture[str]):
    own, stock = runs(runner)
    found = {own: outcome(runner), stock: outcome(runner)}
    assert runner.judge(found, {str(own): ""}, False) == 1
    assert "passed or not run: 2025-11-25 own initialize" in capsys.readouterr().out
    gone = {"2025-11-25 own no-such-scenario": ""}
    assert runner.judge(found, gone, True) == 1
    # A run of a part says nothing of the rest.
    assert runner.judge(found, gone, False) == 0


def test_the_baseline_of_the_repository_is_empty(runner: Any):
    assert runner.expected_failures() == {}


def test_entries_of_the_baseline_have_reasons(runner: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    baseline = tmp_path / "baseline.txt"
    baseline.write_text("# what it is for\n\n2025-11-25  stock sse-retry  # the SDK waits too long\n")
    monkeypatch.setattr(runner, "BASELINE", baseline)
    assert runner.expected_failures() == {"2025-11-25 stock sse-retry": "the SDK waits too long"}


def test_warnings_count_as_failures(runner: Any):
    assert set(runner.BAD) == {"FAILURE", "WARNING"}
    told = runner.told({"status": "WARNING", "id": "timing", "errorMessage": "late"})
    assert told == "WARNING timing: late"


def test_a_suite_that_hangs_is_a_failure_of_that_run_and_not_the_end_of_all(
    runner: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    node = tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text("#!/bin/sh\nexec sleep 600\n")
    node.chmod(0o700)
    monkeypatch.setattr(runner, "FOLDER", tmp_path)
    monkeypatch.setattr(runner, "SECONDS", 0.1)

    outcome = runner.carry_out(runs(runner)[0], tmp_path, dict(os.environ))

    assert outcome.problems == ["the suite did not end within 0.3 s"]


def test_each_run_has_a_database_without_what_the_one_before_left(runner: Any, tmp_path: Path):
    for name in ("migrated.sqlite3", "site.sqlite3", "site.sqlite3-wal", "site.sqlite3-shm"):
        (tmp_path / name).write_text(name)

    runner.renew(tmp_path, tmp_path / "migrated.sqlite3")

    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == dict.fromkeys(("migrated.sqlite3", "site.sqlite3"), "migrated.sqlite3")


def test_every_scenario_that_needs_handlers_has_steps() -> None:
    from tests.conformance import client

    assert set(client.HANDLERS) | client.HANDSHAKE_ONLY <= set(client.SCENARIOS)
