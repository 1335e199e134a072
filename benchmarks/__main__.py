"""``python -m benchmarks [SUITE ...]``: measure, print tables, write JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import machine, report
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures
from benchmarks.places import RESULTS
from benchmarks.suites import calls, connecting, crowd, listing, rest, results
from benchmarks.suites.options import Options, say
from benchmarks.targets import judge
from benchmarks.variants import VARIANTS, chosen

SUITES: dict[str, Callable[[Options, Figures], None]] = {
    **{suite.SUITE: suite.run for suite in (calls, crowd, connecting, listing, results)},
    rest.REST: rest.run_rest,
    rest.AUDIT: rest.run_audit,
}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter, no uvloop")
    parser.add_argument("--rounds", type=int, help="rounds, in each of which all variants take turns")
    parser.add_argument("--seconds", type=float, help="length of each measurement")
    parser.add_argument("--variants", nargs="+", choices=[each.name for each in VARIANTS], metavar="VARIANT")
    parser.add_argument("--cases", nargs="+", metavar="PART", help="only cases whose name contains it")
    parser.add_argument("--output", type=Path, help="where the JSON goes")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file, too")
    options = parser.parse_args(arguments)
    if unknown := set(options.suites) - set(SUITES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; return the exit status."""
    given = parse(arguments)
    options = Options(
        quick=given.quick,
        rounds=given.rounds or (3 if given.quick else 7),
        seconds=given.seconds or (0.3 if given.quick else 0.5),
        variants=chosen(given.variants, quick=given.quick),
        cases=given.cases,
    )
    figures = Figures()
    try:
        facts = machine.facts()
        for name in given.suites or SUITES:
            SUITES[name](options, figures)
    except BenchmarkError as error:
        say(f"{error}\n")
        return 1
    say("")
    outcomes = judge(figures)
    path = given.output or RESULTS / "latest.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report.as_json(figures, outcomes, facts), indent=1) + "\n")
    if given.markdown:
        given.markdown.write_text(report.markdown(figures, outcomes, facts))
    sys.stdout.write(f"{report.text(figures, outcomes, facts)}\n\nJSON: {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
