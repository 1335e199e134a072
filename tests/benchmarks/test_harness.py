"""The harness: measurements come out whole, ratios are right, what fails is said. Never how fast."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import SUITES, main
from benchmarks.environments import REQUIREMENTS, python_of
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures, Key
from benchmarks.report import BEGIN, END, as_json, figures_of, markdown, put_between_marks
from benchmarks.suites import calls
from benchmarks.suites.options import rotated
from benchmarks.tables import full
from benchmarks.targets import judge
from benchmarks.variants import PEERS
from benchmarks.worker_process import WorkerProcess
from benchmarks.workers.protocol import Order
from tests.stored import ROOT

STDIO = "stdio 2026-07-28"
FACTS = {"CPUs": 2, "Python": "3.11"}


def figures(*entries: tuple[str, str, str, str, list[float]]) -> Figures:
    made = Figures()
    for suite, case, variant, metric, values in entries:
        for number, value in enumerate(values):
            made.add(Key(suite, case, variant, metric), number, value)
    return made


def run(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    output = tmp_path / "result.json"
    assert main([*arguments, "--rounds", "1", "--seconds", "0.05", "--output", str(output)]) == 0
    found: dict[str, Any] = json.loads(output.read_text())
    return found


def test_one_round_of_one_variant_gives_a_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    document = run(tmp_path, "calls", "--quick", "--cases", STDIO, "--variants", "ours-sync")
    printed = capsys.readouterr().out
    measured = {
        (entry["variant"], entry["metric"])
        for entry in document["figures"]
        if entry["suite"] == "calls" and entry["case"] == STDIO
    }
    assert measured == {
        (variant, f"{metric}@{level}")
        for variant in ("sdk", "ours-sync")
        for metric in ("p50_us", "p99_us", "cpu_us", "rate")
        for level in (1, 8, 32, 100)
    }
    assert all(entry["median"] > 0 for entry in document["figures"])
    assert {entry["ratio"] for entry in document["figures"] if entry["variant"] == "sdk"} == {1.0}
    assert document["facts"]["CPUs"] > 0
    target = next(each for each in document["targets"] if "ours-sync, p50 of 1 at once" in each["text"])
    assert target["wanted"] == "<= 0.85x"
    assert target["met"] is (target["measured"] <= 0.85)
    # The table shows the same.
    lines = printed.splitlines()
    start = lines.index(f"calls: {STDIO}")
    assert lines[start + 1].split()[:4] == ["variant", "at", "p50", "µs"]
    assert sum(line.startswith("ours-sync ") for line in lines[start:]) == 4 + 1  # and of the tool that waits
    assert any(line.startswith(f"{STDIO}: ours-sync, p50 of 1 at once  ") for line in lines)


def test_a_result_can_be_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    made = figures(
        ("calls", STDIO, "sdk", "p50_us@1", [100, 200]), ("calls", STDIO, "ours-loop", "p50_us@1", [50, 60])
    )
    path = tmp_path / "kept.json"
    path.write_text(json.dumps(as_json(made, judge(made), FACTS)))
    assert figures_of(json.loads(path.read_text())) == made
    assert main(["--read", str(path)]) == 0
    assert "ours-loop" in capsys.readouterr().out


def test_a_ratio_is_the_median_of_the_rounds_ratios():
    made = figures(
        # A disturbed round disturbs both: the ratio of the medians would be 50 / 120.
        ("calls", STDIO, "sdk", "p50_us@1", [100, 1000, 120]),
        ("calls", STDIO, "ours-loop", "p50_us@1", [50, 400, 48]),
    )
    key, base = (Key("calls", STDIO, variant, "p50_us@1") for variant in ("ours-loop", "sdk"))
    assert made.ratio(key, base) == 0.4
    assert made.spread(key, base) == (0.4, 0.5)
    assert made.median(base) == 120


def test_a_round_in_which_only_one_was_measured_gives_no_ratio():
    made = figures(("calls", STDIO, "ours-loop", "p50_us@1", [40]))
    key = Key("calls", STDIO, "ours-loop", "p50_us@1")
    assert made.ratio(key, Key("calls", STDIO, "sdk", "p50_us@1")) is None
    assert judge(made) == []


def test_targets_are_met_or_not_and_the_worst_figure_counts():
    made = figures(
        ("calls", STDIO, "sdk", "p50_us@1", [100]),
        ("calls", STDIO, "ours-loop", "p50_us@1", [60]),
        ("calls", STDIO, "sdk", "cpu_us@1", [100]),
        ("calls", STDIO, "ours-loop", "cpu_us@1", [30]),
        ("calls", STDIO, "fastmcp", "p50_us@1", [90]),
        ("calls", STDIO, "ours-async", "p50_us@1", [99]),
        ("calls", STDIO, "ours-sync", "p50_us@1", [45]),
        ("connecting", "http", "ours", "KiB_each@100", [99.5]),
    )
    outcomes = {outcome.text: outcome for outcome in judge(made)}
    loop = outcomes[f"{STDIO}: ours-loop, p50 of 1 at once"]
    assert (loop.measured, loop.met, loop.cpu) == (0.6, False, 0.3)
    against = outcomes[f"{STDIO}: p50 against fastmcp"]
    assert (against.measured, against.met) == (1.1, False)
    assert outcomes["100 servers, http: KiB for each"].met
    assert outcomes["100 servers, http: KiB for each"].wanted == "<= 100"


def test_the_report_goes_between_the_marks_of_the_page(tmp_path: Path):
    made = figures(
        ("calls", STDIO, "sdk", "rate@8", [100]),
        ("calls", STDIO, "ours-sync", "rate@8", [400]),
    )
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    put_between_marks(page, markdown(made, judge(made), FACTS))
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n\nMeasured on: CPUs 2, Python 3.11.\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert f"| {STDIO}: ours-sync, calls/s of 8 at once | >= 2.5x | 4x | yes |  |" in text
    assert "| ours, from threads |  |  |  | 400 (4.00x) |  |  |" in text
    page.write_text("no marks")
    with pytest.raises(BenchmarkError, match="no lines"):
        put_between_marks(page, "report")


def test_the_page_of_the_documentation_has_the_marks():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert page.index(BEGIN) < page.index(END)


def test_a_worker_that_fails_says_why():
    target = json.dumps({"transport": "stdio", "era": "2026-07-28", "command": ["/nowhere"], "url": ""})
    with WorkerProcess("sdk", "sdk", target) as worker, pytest.raises(BenchmarkError, match="/nowhere"):
        worker.wait_ready()


def test_a_worker_that_has_ended_is_not_waited_for():
    expected = pytest.raises(BenchmarkError, match="no_such_module")
    with WorkerProcess("broken", "no_such_module") as worker, expected:
        worker.sample(Order(1, 0.01))


def test_a_server_that_has_ended_is_not_waited_for_by_bare_bytes():
    # It reads what it is asked, and ends.
    ends = (sys.executable, "-S", "-c", "import os; os.read(0, 65536)")
    target = {"transport": "stdio", "era": "2026-07-28", "command": ends, "url": ""}
    expected = pytest.raises(BenchmarkError, match="has ended without an answer")
    with WorkerProcess("bare", "connect_bare", json.dumps(target)) as worker, expected:
        worker.wait_ready()
        worker.ask({"count": 1})


def test_a_suite_that_breaks_off_is_told_and_leaves_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    # A checkout without code: its worker does not start.
    nowhere = tmp_path / "checkout"
    (nowhere / "mcp_client_app").mkdir(parents=True)
    (nowhere / "mcp_client_app" / "__init__.py").touch()
    output = tmp_path / "result.json"
    arguments = ["calls", "--quick", "--cases", STDIO, "--variants", "ours-sync", "--before", str(nowhere)]
    assert main([*arguments, "--output", str(output)]) == 1
    (note,) = json.loads(output.read_text())["notes"]
    assert note.startswith("calls was broken off: The worker 'before-ours-sync' has ended.")
    assert note.splitlines()[0] in capsys.readouterr().out


def test_the_baseline_comes_first_whoever_was_measured_first():
    made = figures(
        ("calls", STDIO, "naive", "p50_us@1", [1]),
        ("calls", STDIO, "before-ours-loop", "p50_us@1", [1]),
        ("calls", STDIO, "ours-loop", "p50_us@1", [1]),
        ("calls", STDIO, "sdk", "p50_us@1", [1]),
    )
    (_, rows) = next(full(made))
    assert [row[0] for row in rows[1:]] == ["sdk", "ours-loop", "naive", "before-ours-loop"]
    made = figures(("rest", "gunicorn", "ours", "rate@1", [1]), ("rest", "gunicorn", "no-op", "rate@1", [1]))
    (_, rows) = next(full(made))
    assert [row[0] for row in rows[1:]] == ["no-op", "ours"]


def test_everybody_comes_first_once():
    crew = ["a", "b", "c"]
    assert [rotated(crew, number)[0] for number in range(4)] == ["a", "b", "c", "a"]
    assert sorted(rotated(crew, 2)) == crew
    assert rotated([], 3) == []


def test_peers_have_pinned_requirements_and_ours_is_this_environment():
    assert python_of("") == sys.executable
    for peer in PEERS:
        if peer.environment:
            lines = (REQUIREMENTS / f"{peer.environment}.txt").read_text().split()
            assert lines, peer.name
            assert all("==" in line for line in lines), peer.name


def test_what_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["no-such-suite"])
    assert "there are calls, crowd" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--variants", "no-such-variant"])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("suite", [name for name in SUITES if name != calls.SUITE])
def test_every_suite_measures_its_targets(suite: str, tmp_path: Path):
    document = run(tmp_path, suite, "--quick")
    assert {entry["suite"] for entry in document["figures"]} == {suite}
    assert document["targets"]
