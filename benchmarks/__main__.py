"""``python -m benchmarks [SUITE ...]``: measure, print tables, write JSON.

Exit status: 0 measured (whether the targets are met or not), 1 something could not be measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures
from benchmarks.places import RESULTS, ROOT
from benchmarks.suites import agents, calls, connecting, crowd, listing, rest, results
from benchmarks.suites.options import Options, say
from benchmarks.targets import judge
from benchmarks.variants import VARIANTS, before, chosen

SUITES: dict[str, Callable[[Options, Figures], None]] = {
    **{suite.SUITE: suite.run for suite in (calls, crowd, connecting, listing, results)},
    rest.REST: rest.run_rest,
    rest.AUDIT: rest.run_audit,
    agents.SUITE: agents.run,
}
PAGE = ROOT / "docs" / "performance.md"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the client.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter; no peers, no uvloop")
    parser.add_argument("--rounds", type=int, help="rounds, in each of which all variants take turns")
    parser.add_argument("--seconds", type=float, help="length of each measurement")
    parser.add_argument("--variants", nargs="+", choices=[each.name for each in VARIANTS], metavar="VARIANT")
    parser.add_argument("--cases", nargs="+", metavar="PART", help="only cases whose name contains it")
    parser.add_argument("--output", type=Path, default=RESULTS / "latest.json", help="where the JSON goes")
    parser.add_argument("--before", type=Path, metavar="DIR", help="measure another checkout's code, too")
    parser.add_argument("--read", type=Path, help="measure nothing: show what is in such a file")
    parser.add_argument("--docs", action="store_true", help=f"put the tables into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    if unknown := set(options.suites) - set(SUITES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    return options


def options_of(given: argparse.Namespace) -> Options:
    """Return how much is measured."""
    variants = chosen(given.variants, quick=given.quick)
    return Options(
        quick=given.quick,
        rounds=given.rounds or (3 if given.quick else 7),
        seconds=given.seconds or (0.3 if given.quick else 0.5),
        variants=[*variants, *(before(variants, given.before.resolve()) if given.before else [])],
        cases=given.cases,
    )


def measure(given: argparse.Namespace, figures: Figures, facts: dict[str, Any]) -> int:
    """Run the suites, and write what there is after each; return the exit status."""
    options, status = options_of(given), 0
    for name in given.suites or SUITES:
        try:
            SUITES[name](options, figures)
        except BenchmarkError as error:
            status = 1
            figures.notes.append(f"{name} was broken off: {error}")
        given.output.parent.mkdir(parents=True, exist_ok=True)
        document = report.as_json(figures, judge(figures), facts)
        given.output.write_text(json.dumps(document, indent=1) + "\n")
    say("")
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; return the exit status."""
    given = parse(arguments)
    try:
        if given.read:
            document = json.loads(given.read.read_text())
            figures, facts, status = report.figures_of(document), document["facts"], 0
        else:
            figures, facts = Figures(), machine.facts()
            status = measure(given, figures, facts)
        outcomes = judge(figures)
        if given.docs:
            report.put_between_marks(PAGE, report.markdown(figures, outcomes, facts))
    except BenchmarkError as error:
        say(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        say("Broken off.\n")
        return 1
    sys.stdout.write(f"{report.text(figures, outcomes, facts)}\n\nJSON: {given.read or given.output}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
