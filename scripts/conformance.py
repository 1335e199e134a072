"""Run the MCP conformance suite against this client, and print what came of it.

``make conformance`` runs every scenario that the suite scores (``auth/`` apart, which waits for OAuth), and
those of ``EXTRA``, at both revisions of the protocol and through both links; one at a time, for some measure
time. A warning counts as a failure. ``tests/conformance/baseline.txt`` names what is expected to fail.

``--only sse-retry`` (any part of a name), ``--revision`` and ``--link`` run less; ``--verbose`` shows what
the client wrote.

Exit status: 0 all as expected, 1 not so, 3 the suite cannot be installed here (1 with ``CI`` set).
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from install_published import NAMES, NOT_POSSIBLE, ROOT, TARGET, NotPossibleError, install

FOLDER = TARGET / "conformance"
SUITE = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance"
BASELINE = ROOT / "tests" / "conformance" / "baseline.txt"

REVISIONS = ("2025-11-25", "2026-07-28")
LINKS = ("own", "stock")
OUT_OF_SCOPE = "auth/"
EXTRA = ("json-schema-2020-12-preservation",)
"""Not scored, because it came after the requirements were frozen; held all the same."""
TIMED = {"sse-retry": 3}
"""Scenarios that measure time, to a fraction of a second, and how often a busy machine may try."""
SECONDS = 60
BAD = ("FAILURE", "WARNING")


@dataclass(frozen=True, order=True)
class Run:
    """One scenario at one revision through one link."""

    revision: str
    link: str
    scenario: str

    def __str__(self) -> str:
        return f"{self.revision} {self.link} {self.scenario}"


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    passed: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    output: str = ""


def main() -> int:
    """Run what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description="Run the MCP conformance suite against this client.")
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose name contains this")
    parser.add_argument("--revision", choices=REVISIONS, help="only at this revision")
    parser.add_argument("--link", choices=LINKS, help="only through this link")
    parser.add_argument("--verbose", action="store_true", help="show what the client wrote")
    options = parser.parse_args()
    try:
        install("conformance", TARGET)
    except NotPossibleError as error:
        print(f"Cannot install {NAMES['conformance']}: {error}", file=sys.stderr)
        return 1 if os.environ.get("CI") else NOT_POSSIBLE
    wanted = [
        run
        for run in all_runs()
        if options.only in run.scenario
        and options.revision in (None, run.revision)
        and options.link in (None, run.link)
    ]
    is_whole = not (options.only or options.revision or options.link)
    return judge(dict(outcomes(wanted, options.verbose)), expected_failures(), is_whole)


def all_runs() -> list[Run]:
    """Return what is to be run, in order."""
    return [
        Run(revision, link, scenario)
        for revision in REVISIONS
        for scenario in (*required(revision), *EXTRA)
        for link in LINKS
    ]


def required(revision: str) -> list[str]:
    """Return the client's scenarios that the suite scores at a revision, as the suite itself says."""
    text = (SUITE / "requirements" / f"{revision}.yaml").read_text()
    section = re.search(r"^client:\n((?:[ #].*\n|\n)*)", text, re.MULTILINE)
    names = re.findall(r"^  - (\S+)", section.group(1), re.MULTILINE) if section else []
    if not names:
        raise SystemExit(f"The suite names no scenarios of clients for {revision}.")
    return [name for name in names if not name.startswith(OUT_OF_SCOPE)]


def expected_failures() -> dict[str, str]:
    """Return the lines of the baseline, each with the reason beside it."""
    found = {}
    for line in BASELINE.read_text().splitlines():
        entry, _, reason = line.partition("#")
        if entry.strip():
            found[" ".join(entry.split())] = reason.strip()
    return found


def outcomes(wanted: list[Run], verbose: bool) -> Iterator[tuple[Run, Outcome]]:
    """Do the runs, one after the other, and tell of each."""
    for package in ("mcp_client_app", "tests/conformance"):
        compileall.compile_dir(ROOT / package, quiet=2)
    with tempfile.TemporaryDirectory(prefix="conformance-") as place:
        site = Path(place)
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(FOLDER / "bin"), os.environ.get("PATH", "")]),
            "PYTHONPATH": str(ROOT),
            "CONFORMANCE_DATABASE": str(site / "site.sqlite3"),
        }
        migrated = migrate(site, environment)
        for run in wanted:
            for _ in range(TIMED.get(run.scenario, 1)):
                renew(site, migrated)
                outcome = carry_out(run, site, environment)
                if not outcome.problems:
                    break
            mark = "ok  " if not outcome.problems else "FAIL"
            print(f"{mark} {run!s:62} {outcome.passed:3} checks {outcome.seconds:5.1f} s", flush=True)
            for problem in outcome.problems:
                print(f"       {problem}")
            if outcome.output and (verbose or outcome.problems):
                print("       | " + "\n       | ".join(outcome.output.splitlines()))
            yield run, outcome


def migrate(site: Path, environment: dict[str, str]) -> Path:
    """Make the database that each run starts from."""
    command = [sys.executable, "-m", "django", "migrate", "--verbosity=0"]
    settings = {"DJANGO_SETTINGS_MODULE": "tests.conformance.settings"}
    subprocess.run(command, cwd=ROOT, env={**environment, **settings}, check=True)
    return (site / "site.sqlite3").rename(site / "migrated.sqlite3")


def renew(site: Path, migrated: Path) -> None:
    """Put a fresh database in place; what a killed client leaves of its journal would be played into it."""
    for old in site.glob("site.sqlite3*"):
        old.unlink()
    shutil.copy(migrated, site / "site.sqlite3")


def carry_out(run: Run, site: Path, environment: dict[str, str]) -> Outcome:
    """Run one scenario; what the suite wrote about it tells how it went."""
    results = site / "results"
    shutil.rmtree(results, ignore_errors=True)
    command = [
        str(FOLDER / "bin" / "node"),
        str(SUITE / "dist" / "index.js"),
        "client",
        f"--command={sys.executable} -m tests.conformance.client {run.link}",
        f"--scenario={run.scenario}",
        f"--spec-version={run.revision}",
        f"--timeout={SECONDS * 1000}",
        f"--output-dir={results}",
    ]
    began, limit = time.monotonic(), 3 * SECONDS  # the suite has the first third to end by itself
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return Outcome(problems=[f"the suite did not end within {limit:g} s"], seconds=limit)
    seconds = time.monotonic() - began
    found = sorted(results.glob("**/checks.json"))
    checks: list[dict[str, Any]] = json.loads(found[0].read_text()) if found else []
    problems = [told(check) for check in checks if check["status"] in BAD]
    passed = sum(check["status"] == "SUCCESS" for check in checks)
    if done.returncode and not problems:
        problems.append(f"the suite ended with status {done.returncode}")
    if not passed and not problems:
        problems.append("nothing was checked")
    written = "".join(path.read_text() for path in sorted(results.glob("**/std*.txt")))
    return Outcome(passed, problems, seconds, (written or done.stdout)[-4000:])


def told(check: dict[str, Any]) -> str:
    """Return one line on a check that did not succeed."""
    why = check.get("errorMessage") or check.get("description") or ""
    return f"{check['status']} {check['id']}: {why}"


def judge(found: dict[Run, Outcome], expected: dict[str, str], is_whole: bool) -> int:
    """Print the table, hold it to the baseline, return the exit status."""
    table(found)
    failed = {str(run) for run, outcome in found.items() if outcome.problems}
    unexpected = sorted(failed - set(expected))
    ran = {str(run) for run in found}
    stale = sorted(entry for entry in expected if entry not in failed and (is_whole or entry in ran))
    for entry in unexpected:
        print(f"Failed: {entry}")
    for entry in stale:
        print(f"In the baseline, but passed or not run: {entry}")
    checks = sum(outcome.passed for outcome in found.values())
    seconds = sum(outcome.seconds for outcome in found.values())
    print(f"{len(found) - len(failed)} of {len(found)} runs passed, {checks} checks, {seconds:.0f} s.")
    if not found:
        print("Nothing was run.")
    return 1 if unexpected or stale or not found else 0


def table(found: dict[Run, Outcome]) -> None:
    """Print scenarios by revision and link."""
    columns = sorted({(run.revision, run.link) for run in found})
    print(f"\n{'scenario':38}" + "".join(f"{revision} {link:8}" for revision, link in columns))
    for scenario in dict.fromkeys(run.scenario for run in found):
        row = f"{scenario:38}"
        for revision, link in columns:
            outcome = found.get(Run(revision, link, scenario))
            row += f"{'' if outcome is None else 'failed' if outcome.problems else 'passed':19}"
        print(row.rstrip())


if __name__ == "__main__":
    sys.exit(main())
