"""What tests with whole sites look at: who has answered, what is open, what ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from tests.deployment.sites import SECONDS, Answer, Site


def text(answer: Answer) -> str:
    assert answer.status == 200, answer
    assert not answer.body["is_error"], answer
    return str(answer.body["text"])


def peers(answers: list[Answer]) -> set[str]:
    """Return the process ids of the peers that answered; none if any call failed."""
    return {text(answer) for answer in answers} if all(answer.status == 200 for answer in answers) else set()


def in_use(site: Site, name: str) -> set[str]:
    """Call the peer until every worker has connected it; return the process ids of its processes."""
    return peers(
        site.until(lambda: site.call(f"{name}__pid"), lambda found: len(peers(found)) == site.workers)
    )


def parent(pid: str) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def has_argument(pid: str, wanted: str) -> bool:
    return wanted.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def in_use_again(site: Site, name: str, old: set[str]) -> set[str]:
    """Call the peer until all workers answer from processes that are not among ``old``."""
    return peers(
        site.until(
            lambda: site.call(f"{name}__pid"),
            lambda found: len(peers(found)) == site.workers and not peers(found) & old,
        )
    )


def seen_pids(site: Site, name: str) -> set[int]:
    """Return the processes that the API names as those that have connected a server."""
    return {state["pid"] for state in site.send("GET", f"servers/{name}/").body["workers"]}


def open_files(pid: int) -> list[str]:
    """Return what the descriptors of a process point to."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(link))
        except OSError:  # closed meanwhile
            continue
    return found


def eventually(is_so: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Look until something of other processes is so, for what gives no sign to wait for.

    Raises:
        AssertionError: It never is.
    """
    given_up = threading.Event()
    timer = threading.Timer(seconds, given_up.set)
    timer.start()
    try:
        while not is_so():
            assert not given_up.wait(0.02), "Never so."
    finally:
        timer.cancel()
