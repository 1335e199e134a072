"""The soak: ``python -m tests.soak --seconds 30 --seed 7``. Exit status 0 says that all of this held:

- no answer was wrong or lost, no write was done twice, none was done that its caller was told was not sent;
- no call outlived its own time limit;
- callers of a server that nobody disturbed saw no error, others only such as what was done to it explains;
- at rest, memory and objects are as after the first quarter of the time;
- after the end there is no thread, no child, no descriptor and no object of the app's left.

Fifty servers over stdio, streamable HTTP in both eras, SSE and in process are stored as rows of a database
of its own; sixty-four threads and two event loops call them through the process's manager and the services,
while a saboteur kills, hangs, restarts, edits, stops and deletes servers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import logging
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_client_app.client.manager import MCPClientManager
    from tests.soak.callers import Crowd
    from tests.soak.flatness import Measure
    from tests.soak.fleet import Fleet
    from tests.soak.ledger import Ledger
    from tests.soak.saboteur import Saboteur
    from tests.soak.score import Score

THREADS = 64
LOOPS = 2
WARM_UP = 0.25
"""Part of the time after which nothing may grow any more."""
PATIENCE = 90.0
"""Seconds for all calls to end, or all servers to be ready again."""
SETTLING = 20.0
"""Seconds for what is allowed to end a little later than the call that it belongs to."""
HANG = 3
"""Exit status if something hangs: then nothing can be ended in good order."""


def main(argv: list[str] | None = None) -> int:
    """Run the soak; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="The soak.")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long calls are made")
    parser.add_argument("--seed", type=int, help="of everything random; printed in any case")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--loops", type=int, default=LOOPS)
    parser.add_argument("--calm", action="store_true", help="disturb nobody")
    options = parser.parse_args(argv)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1_000_000)
    print(f"soak: {options.seconds:g} s, --seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mcp-soak-") as directory:
        _set_up(Path(directory))
        from tests.soak.score import LogWatch, Score

        score = Score()
        logging.getLogger("mcp_client_app").addHandler(LogWatch(score))
        logging.getLogger("asyncio").addHandler(LogWatch(score))
        _run(options, Path(directory), score)
    for complaint in score.complaints:
        print(f"FAILED: {complaint}")
    print("soak: " + (f"{len(score.complaints)} complaints" if score.complaints else "all held"), flush=True)
    return 1 if score.complaints else 0


def _set_up(directory: Path) -> None:
    """Make a site with a database of its own."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.soak.settings"
    os.environ["TEST_DATABASE_FILE"] = str(directory / "soak.sqlite3")
    os.environ["SOAK_JOURNAL"] = str(directory / "journal")
    logging.basicConfig(filename=directory / "log", level=logging.ERROR)
    import django

    django.setup()
    from asgiref.sync import sync_to_async
    from django.core.management import call_command
    from django.db import connections

    call_command("migrate", verbosity=0)
    connections.close_all()
    # The thread that asgiref keeps for the database's sake is there from now on.
    asyncio.run(sync_to_async(connections.close_all)())


def _run(options: argparse.Namespace, directory: Path, score: Score) -> None:
    from django.db import connections

    from mcp_client_app.runtime import close_mcp_manager, get_mcp_manager
    from tests import leftovers
    from tests.soak import flatness
    from tests.soak.callers import Crowd
    from tests.soak.fleet import Fleet
    from tests.soak.ledger import Ledger
    from tests.soak.saboteur import Saboteur

    descriptors, threads = leftovers.descriptors(), set(threading.enumerate())
    fleet = Fleet(directory)
    ledger = Ledger(directory / "claims")
    try:
        fleet.raise_up()
        manager = get_mcp_manager()
        crowd = Crowd(manager, fleet, ledger, score, options.seed)
        saboteur = Saboteur(manager, fleet, score, options.seed)
        with _watched(manager, fleet, score):
            first, last = _soak(options, manager, fleet, crowd, saboteur, score)
            with score.under_way("closing the manager", 60.0):
                close_mcp_manager()
        del manager, crowd, saboteur
    finally:
        close_mcp_manager()
        fleet.close()
        connections.close_all()
    _verify(fleet, ledger, first, last, score)
    for found in (
        *(f"thread {thread.name!r}" for thread in threading.enumerate() if thread not in threads),
        *leftovers.our_threads(),
        *leftovers.children(),
        *leftovers.new_descriptors(descriptors),
        *flatness.leftovers(flatness.measured()),
    ):
        score.complain(f"left behind: {found}")
    _report(score, first, last)


def _soak(
    options: argparse.Namespace,
    manager: MCPClientManager,
    fleet: Fleet,
    crowd: Crowd,
    saboteur: Saboteur,
    score: Score,
) -> tuple[Measure, Measure]:
    """Call and disturb for the whole time; return what the process held at a quarter, and in the end."""
    _all_ready(manager, score)
    crowd.start(options.threads, options.loops)
    if not options.calm:
        saboteur.start()
    measures = []
    for part in (WARM_UP, 1 - WARM_UP):
        _wait(part * options.seconds, score)
        crowd.pause()
        if not options.calm:
            saboteur.rest()
        _until_quiet(manager, score)
        _all_ready(manager, score)
        measures.append(_at_rest(fleet, score))
        if len(measures) == 1:
            crowd.go_on()
            if not options.calm:
                saboteur.go_on()
    if not options.calm:
        saboteur.end()
    crowd.end(PATIENCE)
    return measures[0], measures[1]


def _wait(seconds: float, score: Score) -> None:
    """Let it go on, and say each second how it goes if anybody looks."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(1.0, left))
        if sys.stdout.isatty():
            line = (
                f"{left:5.0f} s left, {score.total} calls, {score.errors.total()} failed as they may, "
                f"{score.disturbances.total()} disturbances, {len(score.complaints)} complaints"
            )
            print(f"\r{line}\x1b[K", end="", flush=True)
    if sys.stdout.isatty():
        print()


def _until_quiet(manager: MCPClientManager, score: Score) -> None:
    """Wait until no call is under way and nothing that was replaced is still closing.

    What never ends is the watchdog's.
    """
    while score.running:
        time.sleep(0.02)
    engine = manager._engine
    assert engine is not None
    with score.under_way("closing what was replaced", PATIENCE):
        while engine.pool._leaving:
            time.sleep(0.02)


def _all_ready(manager: MCPClientManager, score: Score) -> None:
    """Connect everything; whatever was done to a server has been mended by now."""
    with score.under_way("connecting everything", PATIENCE):
        trouble = {name: status for name, status in manager.connect_all().items() if not status.is_ready}
        if trouble:  # its process may have come back in the middle of the first attempt
            trouble = {name: each for name, each in manager.connect_all().items() if not each.is_ready}
    for name, status in trouble.items():
        score.complain(f"{name} is {status.state.value} although all is mended: {status.reason}")


def _at_rest(fleet: Fleet, score: Score) -> Measure:
    """Measure, once what has been replaced and given up is gone: farewells have a few seconds."""
    from tests.soak import flatness

    end = time.monotonic() + SETTLING
    while True:
        measure = flatness.measured()
        excess = flatness.excess(measure, fleet.needs())
        if not excess or time.monotonic() > end:
            break
        time.sleep(0.5)
    for kind, what in excess.items():
        score.complain(f"at rest there are {what}{flatness.held(kind)}")
    return measure


def _verify(fleet: Fleet, ledger: Ledger, first: Measure, last: Measure, score: Score) -> None:
    from tests.soak import flatness

    for complaint in (*ledger.complaints(fleet.journal), *flatness.growth(first, last)):
        score.complain(complaint)


@contextlib.contextmanager
def _watched(manager: MCPClientManager, fleet: Fleet, score: Score) -> Iterator[None]:
    """Look for calls that outlive their time; the first one ends the process, with all stacks."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            now = time.monotonic()
            hanging = [each for each in list(score.running.values()) if each.hangs(now)]
            if hanging:
                _give_up(manager, fleet, [f"{each.what} ({now - each.since:.0f} s)" for each in hanging])

    thread = threading.Thread(target=watch, name="soak-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _give_up(manager: MCPClientManager, fleet: Fleet, hanging: list[str]) -> None:
    print(f"\nFAILED: {len(hanging)} hang:", *hanging, sep="\n  ", flush=True)
    faulthandler.dump_traceback(all_threads=True)
    engine = manager._engine
    if engine is not None:
        for task in asyncio.all_tasks(engine.thread.loop):
            task.print_stack(file=sys.stderr)
        engine.pool.kill_now()
    for host in fleet.hosts.values():
        host.end(hard=True)
    os._exit(HANG)


def _report(score: Score, first: Measure, last: Measure) -> None:
    from tests.soak import flatness

    for title, counts in (
        ("answered rightly", score.calls),
        ("failed as they may", score.errors),
        ("disturbances", score.disturbances),
    ):
        print(f"{title}: {counts.total()}")
        for name, count in sorted(counts.items()):
            print(f"  {name:24} {count:8}")
    print("at rest, after a quarter of the time and in the end:")
    for what in flatness.BOUNDS:
        print(f"  {what:12} {getattr(first, what):14,} {getattr(last, what):14,}")


if __name__ == "__main__":
    sys.exit(main())
