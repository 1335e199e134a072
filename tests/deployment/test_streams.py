"""Event streams of runs over real servers: as many as there may be at once, and none that loses an event.

The model is a script, its tools are real: it executes in the processes of the site.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import leftovers
from tests.api.test_run_streams import Event, blocks
from tests.deployment.sites import KINDS, SECONDS, Ground, Site, deployed
from tests.deployment.watching import eventually, in_use, open_files, parent

SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.deployment.streaming_settings"}
AGENT = {"name": "streamer", "model": "scripted:caller", "servers": [{"server": "peer"}], "max_rounds": 50}


@contextlib.contextmanager
def events(
    site: Site, method: str, place: str, body: Any = None, **headers: str
) -> Iterator[Iterator[Event]]:
    """Open a stream; gives its events as they come."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=SECONDS)
    given = {
        "Authorization": f"Token {site.token}",
        "Accept": "text/event-stream",
        "Content-Type": "application/json",
        **headers,
    }
    with contextlib.closing(connection):
        connection.request(method, f"/api/mcp/{place}", None if body is None else json.dumps(body), given)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        yield (event for event in blocks(response) if event is not None)
        response.close()


def prompt(*calls: tuple[str, dict[str, Any]]) -> dict[str, str]:
    """Return the body that has the scripted model make these calls, one in each round."""
    return {"prompt": "\n".join(f"peer__{tool} {json.dumps(arguments)}" for tool, arguments in calls)}


@contextlib.contextmanager
def streaming_site(kind: str, ground: Ground, directory: Path, *flags: str, workers: int) -> Iterator[Site]:
    with deployed(
        replace(KINDS[kind].with_flags(*flags), workers=workers), ground, directory, **SETTINGS
    ) as site:
        site.add("peer")
        answer = site.send("POST", "agents/", AGENT)
        assert answer.status == 201, answer
        yield site


@pytest.mark.parametrize(
    ("kind", "flags", "streams"),
    [("uvicorn-1", (), 100), ("gunicorn", ("--workers=1", "--threads=8"), 8)],
    ids=["uvicorn", "gunicorn"],
)
def test_as_many_streams_as_there_may_be_are_held_at_once(kind, flags, streams, ground, tmp_path):
    """The peer answers the calls only together: no run goes on before all of them are there."""
    with streaming_site(kind, ground, tmp_path, *flags, workers=1) as site:
        worker = {parent(pid) for pid in in_use(site, "peer")}.pop()
        database = str(site.directory / "db.sqlite3")
        go = tmp_path / "go"
        all_there = threading.Barrier(streams + 1, timeout=SECONDS)

        def follow(number: int) -> list[Event]:
            calls = (
                ("meet", {"count": streams}),
                ("wait", {"path": str(go)}),
                ("echo", {"text": f"run {number}"}),
            )
            found: list[Event] = []
            with events(site, "POST", "agents/streamer/run/", prompt(*calls)) as stream:
                for event in stream:
                    found.append(event)
                    if event.name == "tool.call" and event.data["name"] == "peer__wait":
                        all_there.wait()
            return found

        with ThreadPoolExecutor(streams) as pool:
            followed = [pool.submit(follow, number) for number in range(streams)]
            all_there.wait()
            # They all wait now: nobody needs a database connection for that.
            eventually(lambda: not [path for path in open_files(worker) if path.startswith(database)])
            if kind == "uvicorn-1":
                assert site.send("GET", "health/").status == 200
            go.touch()
            told = [each.result(SECONDS) for each in followed]

    for number, found in enumerate(told):
        assert [event.number for event in found if event.number] == list(range(1, 12)), found
        assert found[-1].name == "run.completed"
        assert found[-1].data["text"] == f"It said: run {number}"
        text = "".join(event.data["text"] for event in found if event.name.startswith("text."))
        assert text == f"It said: run {number}"


@pytest.mark.parametrize("kind", ["uvicorn-2", "gunicorn"])
def test_a_client_that_reconnects_anywhere_misses_and_repeats_nothing(kind, ground, tmp_path):
    with streaming_site(kind, ground, tmp_path, workers=2) as site:
        steps = [tmp_path / f"step-{number}" for number in range(10)]
        calls = [("wait", {"path": str(step)}) for step in steps]
        run = site.send("POST", "agents/streamer/runs/", prompt(*calls)).body["id"]
        seen: list[Event] = []

        def follow(until: str) -> None:
            last = {"Last-Event-ID": str(seen[-1].number)} if seen else {}
            with events(site, "GET", f"runs/{run}/events/", **last) as stream:
                for event in stream:
                    seen.append(event)
                    if event.name == until:
                        return

        for step in steps:
            follow("tool.call")
            # What happens now happens while nobody follows.
            step.touch()
        follow("run.completed")

        stored = site.send("GET", f"runs/{run}/events/?limit=1000").body
    assert [event.number for event in seen] == list(range(1, stored["last"] + 1))
    assert [(event.number, event.name, event.data) for event in seen] == [
        (each["number"], each["kind"], each["data"]) for each in stored["results"]
    ]
    assert stored["status"] == "completed"
    assert [event.name for event in seen].count("tool.result") == len(steps)


@pytest.mark.parametrize(
    ("kind", "flag"),
    [("uvicorn-1", "--timeout-graceful-shutdown=1"), ("gunicorn", "--graceful-timeout=1")],
    ids=["uvicorn", "gunicorn"],
)
def test_open_streams_do_not_hold_up_the_end_of_a_site(kind, flag, ground, tmp_path):
    with streaming_site(kind, ground, tmp_path, flag, workers=1) as site:
        never = prompt(("wait", {"path": str(tmp_path / "never")}))
        with events(site, "POST", "agents/streamer/run/", never) as stream:
            while next(stream).name != "tool.call":
                pass
            started = leftovers.descendants(site.master.pid)
            site.stop()
            # Cut off, or at its end; nothing of it says that the run is over.
            with contextlib.suppress(ConnectionError, http.client.HTTPException):
                assert "run.cancelled" not in [event.name for event in stream]
        assert leftovers.survivors(started) == []
        [(status,)] = site.rows("SELECT status FROM mcp_client_app_agentrun")
    assert status in ("running", "queued"), "others may go on with it"
