"""Workers that are recycled, reloaded or killed, and masters that are: nothing stays, and calls go on."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import leftovers
from tests.deployment.sites import KINDS, Ground, deployed
from tests.deployment.watching import eventually, in_use, in_use_again, parent, seen_pids, text

GUNICORN = KINDS["gunicorn"]
RECYCLED_AFTER = 50
LONG_AGO = "2020-01-01 00:00:00"


def test_a_worker_killed_hard_takes_its_servers_along_and_another_one_goes_on(
    ground: Ground, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
):
    child = tmp_path_factory.mktemp("peer") / "child"
    # The peer ignores the end of its input, and its child never reads it: only the reaper can end them.
    stubborn = ["--scenario=ignore_eof_and_term", f"--scenario=grandchild={child}"]
    with deployed(GUNICORN, ground, tmp_path) as site:
        site.add("killed", *stubborn)
        pid = text(site.call("killed__pid"))
        grandchild = int(child.read_text())
        worker = parent(pid)
        started = leftovers.descendants(worker)
        assert int(pid) in started
        eventually(lambda: worker in seen_pids(site, "killed"))

        os.kill(worker, signal.SIGKILL)

        assert leftovers.survivors({worker, grandchild, *started}) == []
        # gunicorn replaces the worker; all answer, from processes of their own.
        new = in_use_again(site, "killed", {pid})
        workers = {parent(each) for each in new}
        assert worker not in workers

        # What the dead one has written counts for three minutes, then it is not shown, and then cleared away.
        assert worker in seen_pids(site, "killed")
        site.rows("UPDATE mcp_client_app_workerprocess SET seen_at = ? WHERE pid = ?", LONG_AGO, worker)
        eventually(lambda: seen_pids(site, "killed") == workers)


def test_a_master_killed_hard_leaves_no_process(ground: Ground, tmp_path: Path):
    with deployed(GUNICORN, ground, tmp_path) as site:
        site.add("killed", "--scenario=ignore_eof_and_term")
        assert in_use(site, "killed")
        started = leftovers.descendants(site.master.pid)

        site.master.kill()
        site.master.wait()

        # The workers see within moments that they are orphans, and leave in good order: this server gets
        # two seconds to end with its input, and two after SIGTERM.
        assert leftovers.survivors(started, seconds=30) == []
        eventually(lambda: site.rows("SELECT * FROM mcp_client_app_workerprocess") == [])


def test_recycled_workers_lose_no_call_and_leave_nothing(ground: Ground, tmp_path: Path):
    with deployed(GUNICORN.with_flags(f"--max-requests={RECYCLED_AFTER}"), ground, tmp_path) as site:
        site.add("recycled")
        first = in_use(site, "recycled")
        answers = site.at_once([lambda: site.call("recycled__pid")] * (2 * RECYCLED_AFTER))
        used = first | {text(answer) for answer in answers}
        assert len(used) > len(first)

        living = in_use_again(site, "recycled", first)
        assert leftovers.survivors({int(pid) for pid in first - living}) == []


def test_a_reload_lets_running_calls_end_and_starts_afresh(ground: Ground, tmp_path: Path):
    go, wire = tmp_path / "go", tmp_path / "wire"
    with deployed(GUNICORN, ground, tmp_path) as site, ThreadPoolExecutor(1) as pool:
        site.add("reloaded", "--wire-log", str(wire))
        old = in_use(site, "reloaded")
        workers = {parent(pid) for pid in old}

        waiting = pool.submit(site.call, "reloaded__wait", path=str(go))
        eventually(lambda: str(go) in wire.read_text())  # the call has reached the server
        site.master.send_signal(signal.SIGHUP)
        new = in_use_again(site, "reloaded", old)
        assert not workers & {parent(pid) for pid in new}
        go.touch()

        assert text(waiting.result()) == "there"
        assert leftovers.survivors({*workers, *(int(pid) for pid in old)}) == []
