"""gunicorn and uvicorn serve the example project with several workers, as real processes.

The raw peer's tool ``pid`` tells which worker has answered: each worker has a peer process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests import leftovers
from tests.deployment.sites import KINDS, Answer, Ground, Site, deployed, peer
from tests.deployment.watching import (
    eventually,
    has_argument,
    in_use,
    in_use_again,
    open_files,
    parent,
    seen_pids,
    text,
)
from tests.project.test_docs import snippets

CALLS = 400


@pytest.fixture(scope="module", params=[name for name, kind in KINDS.items() if kind.workers > 1])
def site(
    request: pytest.FixtureRequest, ground: Ground, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    with deployed(KINDS[request.param], ground, tmp_path_factory.mktemp(request.param)) as running:
        yield running


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
    eventually(lambda: seen_pids(site, "many") == workers)


def test_an_edit_through_one_worker_reaches_all(site):
    site.add("edited")
    old = in_use(site, "edited")
    changed = {"args": [*peer("edited")["args"], "--era", "2026-07-28"]}
    assert site.send("PATCH", "servers/edited/", changed).status == 200
    new = in_use_again(site, "edited", old)
    assert all(has_argument(pid, "2026-07-28") for pid in new)
    assert leftovers.survivors({int(pid) for pid in old}) == []


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


def test_no_thread_keeps_a_database_connection(site):
    site.add("used")
    workers = {parent(pid) for pid in in_use(site, "used")}
    database = str(site.directory / "db.sqlite3")

    def held(worker: int) -> list[str]:
        return [target for target in open_files(worker) if target.startswith(database)]

    # The states of connections are written by other threads, perhaps after the answer.
    eventually(lambda: [held(worker) for worker in workers] == [[] for _ in workers])


def test_what_was_preloaded_is_not_shared(ground, tmp_path):
    with deployed(KINDS["gunicorn-preload"], ground, tmp_path) as site:
        theirs = in_use(site, "early")
        masters = {pid for pid in leftovers.descendants(site.master.pid) if is_peer_of(pid, site.master.pid)}
        assert len(masters) == 1
        assert site.master.pid not in {parent(pid) for pid in theirs}
        users = {site.master.pid, *(parent(pid) for pid in theirs)}
        eventually(lambda: seen_pids(site, "early") == users)


def is_peer_of(pid: int, owner: int) -> bool:
    return parent(str(pid)) == owner and has_argument(str(pid), "--lifetime")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_stopping_leaves_no_process_and_no_row(kind, ground, tmp_path):
    with deployed(KINDS[kind], ground, tmp_path) as site:
        site.add("peer")
        site.add("slow")
        assert in_use(site, "peer")
        assert in_use(site, "slow")
        started = leftovers.descendants(site.master.pid)
        # Every worker, its two peers and its reaper, at least.
        expected = 4 * site.workers - (kind == "uvicorn-1")
        assert len(started) >= expected
        eventually(lambda: len(site.rows("SELECT * FROM mcp_client_app_workerprocess")) >= site.workers)
        site.stop()
        assert leftovers.survivors(started) == []
        # They left in good order: nobody has to wait until these rows are outdated.
        assert site.rows("SELECT * FROM mcp_client_app_workerprocess") == []
