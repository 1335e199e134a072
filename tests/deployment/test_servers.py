"""gunicorn and uvicorn serve the example project with several workers, as real processes.

The raw peer's tool ``pid`` tells which worker has answered: each worker has a peer process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests import leftovers
from tests.deployment.sites import MODULES, Answer, Site, deployed, peer
from tests.project.test_docs import snippets

CALLS = 400


@pytest.fixture(scope="module", params=sorted(MODULES))
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with deployed(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


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


def test_400_calls_of_eight_clients_are_answered_right_by_every_worker(site: Site):
    site.add("many")
    workers = {parent(pid) for pid in in_use(site, "many")}
    assert len(workers) == site.workers

    def echo(number: int) -> Answer:
        return site.call("many__echo", text=f"call {number}")

    def add(number: int) -> Answer:
        return site.call("many__add", a=number, b=1)

    calls = [(echo, f"call {number}") if number % 2 else (add, str(number + 1)) for number in range(CALLS)]
    answers = site.at_once([partial(verb, number) for number, (verb, _) in enumerate(calls)])
    assert [text(answer) for answer in answers] == [wanted for _, wanted in calls]

    written = site.send("GET", "calls/?server=many&code=ok&page_size=1").body["count"]
    assert written >= CALLS
    told = site.send("GET", "servers/many/").body["workers"]
    assert {state["pid"] for state in told} == workers


def test_an_edit_through_one_worker_reaches_all(site):
    site.add("edited")
    old = in_use(site, "edited")
    changed = {"args": [*peer("edited")["args"], "--era", "2026-07-28"]}
    assert site.send("PATCH", "servers/edited/", changed).status == 200
    new = in_use_again(site, "edited", old)
    assert all(has_argument(pid, "2026-07-28") for pid in new)
    assert leftovers.survivors({int(pid) for pid in old}) == []


def in_use_again(site: Site, name: str, old: set[str]) -> set[str]:
    """Call the peer until all workers answer from processes that are not among ``old``."""
    return peers(
        site.until(
            lambda: site.call(f"{name}__pid"),
            lambda found: len(peers(found)) == site.workers and not peers(found) & old,
        )
    )


def all_refuse(code: str) -> Callable[[list[Answer]], bool]:
    return lambda answers: {answer.body.get("code") for answer in answers} == {code}


def test_a_stop_through_one_worker_holds_in_all_until_a_connect_through_one(site):
    site.add("stopped")
    old = in_use(site, "stopped")
    assert site.send("POST", "servers/stopped/disconnect/", {}).status == 200
    answers = site.until(lambda: site.call("stopped__pid"), all_refuse("not_connected"))
    assert {answer.status for answer in answers} == {503}
    assert leftovers.survivors({int(pid) for pid in old}) == []

    assert site.send("POST", "servers/stopped/connect/", {}).status == 200
    assert not in_use_again(site, "stopped", old) & old


def test_a_deletion_through_one_worker_holds_in_all(site):
    site.add("deleted")
    old = in_use(site, "deleted")
    assert site.send("DELETE", "servers/deleted/").status == 204
    answers = site.until(lambda: site.call("deleted__pid"), all_refuse("unknown_tool"))
    assert {answer.status for answer in answers} == {404}
    assert leftovers.survivors({int(pid) for pid in old}) == []


def test_the_curl_of_the_readme_calls_a_tool(site: Site):
    site.add("workshop")
    [command] = [each for each in snippets("sh") if each.page.name == "README.md" and "curl" in each.text]
    result = subprocess.run(
        ["bash", "-ec", command.text.replace("127.0.0.1:8000", f"127.0.0.1:{site.port}")],
        env=os.environ | {"TOKEN": site.token},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(result.stdout)["text"] == "5"


@pytest.mark.parametrize("kind", sorted(MODULES))
def test_stopping_leaves_no_process(kind, tmp_path):
    with deployed(kind, tmp_path) as site:
        site.add("peer")
        site.add("slow")
        assert in_use(site, "peer")
        assert in_use(site, "slow")
        started = leftovers.descendants(site.master.pid)
        # Every worker, its two peers and its reaper, at least.
        expected = 4 * site.workers - (kind == "uvicorn-1")
        assert len(started) >= expected
        site.stop()
    assert leftovers.survivors(started) == []
