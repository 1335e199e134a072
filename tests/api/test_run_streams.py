"""Runs as streams of events: in the test client, and over sockets under WSGI and ASGI.

The test is the worker: it writes the events.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.asgi import get_asgi_application
from django.db import connections
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.api import run_streams, streaming
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentConfig, AgentEvent, AgentRun
from mcp_client_app.services import run_submission
from mcp_client_app.services.run_feed import feed
from mcp_client_app.testing.asgi import serve_asgi
from tests.api.conftest import Api
from tests.runs import backend
from tests.stored import run_process

STREAM = {"accept": "text/event-stream"}
WORKER = "a worker"


@dataclass(frozen=True)
class Event:
    """One event of a stream."""

    name: str
    data: Any
    number: int | None = None


@pytest.fixture(autouse=True)
def _agent(_site, settings, monkeypatch) -> Iterator[None]:
    """An agent whose runs nobody executes but the test; at the end nobody watches any more."""
    settings.MCP_CLIENT_RUN_BACKEND = "tests.runs.backend.take"
    # What this process would execute, too.
    monkeypatch.setitem(run_submission._BACKENDS, "thread", "tests.runs.backend.take")
    backend.given.clear()
    AgentConfig.objects.create(name="support", model="scripted:demo")
    yield
    backend.given.clear()
    nobody_watches()


def nobody_watches() -> None:
    """Wait until all streams have ended, and the thread that looked for them."""
    while feed._thread is not None:
        pass


def begun(api: Api) -> AgentRun:
    """Start a run, and work on it: its first event is ``run.started``."""
    run = services.create_run("support", "Help!", user=api.user)
    assert services.claim(run.pk, WORKER) is not None
    return run


def rounds(run: AgentRun, *numbers: int) -> None:
    services.append_events(run.pk, [("round", {"number": number}) for number in numbers])


def finish(run: AgentRun, text: str = "Done.") -> None:
    services.finish(run.pk, WORKER, RunStatus.COMPLETED, text=text)


def parsed(block: str) -> Event | None:
    """Return the event of a block; None for a comment."""
    if block.startswith(":"):
        return None
    fields = dict(line.split(": ", 1) for line in block.split("\n"))
    number = int(fields["id"]) if "id" in fields else None
    return Event(fields["event"], json.loads(fields["data"]), number)


def told(answer: Any) -> list[Event]:
    """Return the events of a stream of the test client, which has to end."""
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
    text = b"".join(answer.streaming_content).decode()
    answer.close()
    return [event for block in text.strip().split("\n\n") if (event := parsed(block)) is not None]


def follow(api: Api, run: AgentRun, place: str = "", **headers: str) -> list[Event]:
    return told(api.get(f"runs/{run.pk}/events/{place}", **STREAM, **headers))


# What is told


def test_a_run_that_is_over_is_told_from_its_beginning_to_its_end(api):
    run = begun(api)
    rounds(run, 1, 2)
    finish(run)

    events = follow(api, run)

    assert [(event.number, event.name) for event in events] == [
        (1, "run.started"),
        (2, "round"),
        (3, "round"),
        (4, "run.completed"),
    ]
    assert events[1].data == {"number": 1}
    assert events[-1].data["text"] == "Done."


def test_a_stream_goes_on_after_any_event(api):
    run = begun(api)
    rounds(run, *range(1, 6))
    finish(run)

    for place, headers in (
        ("?after=4", {}),
        ("", {"Last-Event-ID": "4"}),
        ("?after=1", {"Last-Event-ID": "4"}),
    ):
        assert [event.number for event in follow(api, run, place, **headers)] == [5, 6, 7]
    assert follow(api, run, "?after=7") == []
    assert follow(api, run, "?after=100") == []


def test_many_events_are_read_in_pieces(api, monkeypatch):
    monkeypatch.setattr(run_streams, "AT_ONCE", 3)
    run = begun(api)
    rounds(run, *range(1, 11))
    finish(run)
    assert [event.number for event in follow(api, run)] == list(range(1, 13))


def test_no_proxy_and_no_middleware_keeps_events_back(api, settings):
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
    run = begun(api)

    answer = api.get(f"runs/{run.pk}/events/", **STREAM, **{"Accept-Encoding": "gzip"})
    with contextlib.closing(answer):
        first, second = next(answer.streaming_content), next(answer.streaming_content)

    assert first.startswith(b": ")
    assert parsed(second.decode().strip()) == Event("run.started", {"agent": "support", "attempt": 1}, 1)
    assert (answer["X-Accel-Buffering"], answer["Cache-Control"]) == ("no", "no-store")
    assert answer["Content-Encoding"] == "identity"


def test_what_is_wrong_before_a_stream_begins_is_answered_as_ever(api, api_as):
    run = begun(api)
    other = api_as("run_agentconfig", name="other")
    for answer, status in (
        (other.get(f"runs/{run.pk}/events/", **STREAM), 404),
        (api.get(f"runs/{run.pk}/events/?after=x", **STREAM), 400),
        (api.post("agents/support/run/", {}, **STREAM), 400),
        (api.get("runs/", **STREAM), 406),
    ):
        assert (answer.status_code, answer["Content-Type"]) == (status, "application/json")
        assert answer.json()["code"]


def test_to_ask_for_the_head_of_a_stream_opens_none(api):
    run = begun(api)
    answer = api.client.head(f"/api/mcp/runs/{run.pk}/events/", headers=STREAM)
    assert (answer.status_code, answer.streaming, answer.content) == (200, False, b"")
    assert run.pk not in feed._watched


@pytest.mark.parametrize("column", ["status", "row"])
def test_a_run_without_a_last_event_ends_its_stream_too(api, column):
    run = begun(api)
    answer = api.get(f"runs/{run.pk}/events/", **STREAM)
    if column == "status":
        AgentRun.objects.update(status=RunStatus.FAILED.value)
    else:
        AgentRun.objects.all().delete()
    assert {event.name for event in told(answer)} <= {"run.started"}


def test_a_run_that_its_worker_has_left_is_told_to_its_end(api):
    run = begun(api)
    answer = api.get(f"runs/{run.pk}/events/", **STREAM)
    AgentRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))

    last = told(answer)[-1]

    assert (last.name, last.data["code"]) == ("run.failed", "abandoned")


# A run that is begun with its stream


def test_a_run_is_begun_and_told_with_what_is_stored_nowhere(api):
    answer = api.post("agents/support/run/", {"prompt": "Help!"}, **STREAM)
    run = AgentRun.objects.get()
    assert backend.given == [str(run.pk)]
    assert answer["Location"].endswith(f"/runs/{run.pk}/")
    services.claim(run.pk, WORKER)
    feed.pass_on(run.pk, "text.delta", {"text": "Do"})
    rounds(run, 1)
    feed.pass_on(run.pk, "text.delta", {"text": "ne."})
    finish(run)

    opening, *events = told(answer)

    assert (opening.name, opening.number) == ("run", None)
    assert (opening.data["id"], opening.data["status"]) == (str(run.pk), "queued")
    # In order, although all of it was there before anything was read.
    assert [(event.name, event.number) for event in events] == [
        ("run.started", 1),
        ("text.delta", None),
        ("round", 2),
        ("text.delta", None),
        ("run.completed", 3),
    ]
    assert [event.data["text"] for event in events if event.name == "text.delta"] == ["Do", "ne."]
    assert "text.delta" not in {event.name for event in follow(api, run)}


def test_the_stream_of_a_new_run_ends_where_people_are_waited_for(api):
    answer = api.post("agents/support/run/", {"prompt": "Help!"}, **STREAM)
    run = AgentRun.objects.get()
    services.claim(run.pk, WORKER)
    services.pause(run.pk, WORKER, RunStatus.AWAITING_APPROVAL, messages=[])
    assert [event.name for event in told(answer)] == ["run", "run.started", "run.paused"]


def test_a_stream_that_is_ordered_again_with_its_key_tells_the_same_run(api):
    body = {"prompt": "Help!", "idempotency_key": "one"}
    first = api.post("agents/support/run/", body, **STREAM)
    first.close()
    run = AgentRun.objects.get()
    services.claim(run.pk, WORKER)
    services.pause(run.pk, WORKER, RunStatus.AWAITING_APPROVAL, messages=[])

    again = api.post("agents/support/run/", body, **STREAM)

    assert again["Idempotent-Replayed"] == "true"
    assert [event.name for event in told(again)] == ["run", "run.started", "run.paused"]
    assert AgentRun.objects.count() == 1


def test_a_full_process_is_told_before_a_stream_begins(api, settings, monkeypatch):
    settings.MCP_CLIENT_RUN_BACKEND = "tests.runs.backend.refuse"
    monkeypatch.setitem(run_submission._BACKENDS, "thread", "tests.runs.backend.refuse")
    answer = api.post("agents/support/run/", {"prompt": "Help!"}, **STREAM)
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (429, "busy", "3")


@pytest.mark.parametrize("asked", [True, False])
def test_a_client_that_goes_away_ends_its_run_only_if_it_said_so(api, asked):
    body = {"prompt": "Help!", "cancel_on_disconnect": asked}
    answer = api.post("agents/support/run/", body, **STREAM)
    run = AgentRun.objects.get()
    services.claim(run.pk, WORKER)
    assert next(answer.streaming_content)

    answer.close()

    assert services.renew(run.pk, WORKER).cancel is asked


def test_a_stream_that_was_read_to_its_end_cancels_nothing(api):
    answer = api.post("agents/support/run/", {"prompt": "Help!", "cancel_on_disconnect": True}, **STREAM)
    run = AgentRun.objects.get()
    services.claim(run.pk, WORKER)
    finish(run)
    told(answer)
    run.refresh_from_db()
    assert (run.status, run.cancel_requested_at) == ("completed", None)


# Over sockets


@dataclass
class Site:
    """The test project behind a real server, and how to follow a run there."""

    url: str

    @contextlib.contextmanager
    def open(self, run: AgentRun, last: int | None = None) -> Iterator[Iterator[Event | None]]:
        """Follow a run; gives an iterator over events and comments (None)."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        credentials = base64.b64encode(b"admin:secret").decode()
        headers = {"Authorization": f"Basic {credentials}", "Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        with contextlib.closing(connection):
            connection.request("GET", f"/api/mcp/runs/{run.pk}/events/", headers=headers)
            response = connection.getresponse()
            assert response.status == 200
            yield blocks(response)
            response.close()


def blocks(response: Any) -> Iterator[Event | None]:
    lines: list[str] = []
    while line := response.readline().decode():
        if line == "\n":
            yield parsed("\n".join(lines))
            lines.clear()
        else:
            lines.append(line.rstrip("\n"))


def next_event(stream: Iterator[Event | None]) -> Event:
    return next(event for event in stream if event is not None)


@contextlib.contextmanager
def under_asgi() -> Iterator[str]:
    with serve_asgi(get_asgi_application()) as url:
        yield url
    connections.close_all()


@pytest.fixture(params=["wsgi", "asgi"])
def site(request, api) -> Iterator[Site]:
    api.user.set_password("secret")
    api.user.save()
    if request.param == "wsgi":
        yield Site(request.getfixturevalue("live_server").url)
    else:
        with under_asgi() as url:
            yield Site(url)


def test_events_are_told_as_they_happen(site, api):
    run = begun(api)
    with site.open(run) as stream:
        assert next_event(stream).name == "run.started"
        for number in range(1, 4):
            rounds(run, number)
            assert next_event(stream) == Event("round", {"number": number}, number + 1)
        finish(run)
        assert [event.name for event in stream if event] == ["run.completed"]


def test_silence_is_filled_with_comments(site, api, monkeypatch):
    monkeypatch.setattr(streaming, "KEEP_ALIVE", 0.05)
    run = begun(api)
    with site.open(run) as stream:
        assert [next(stream) for _ in range(4)] == [
            None,
            Event("run.started", {"agent": "support", "attempt": 1}, 1),
            None,
            None,
        ]


ANOTHER_PROCESS = """
from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
services.append_events({run!r}, [("round", {{"number": number}}) for number in range(1, 4)])
services.finish({run!r}, {worker!r}, RunStatus.COMPLETED, text="There.")
"""


def test_what_another_process_does_is_told_too(site, api):
    run = begun(api)
    with site.open(run) as stream:
        assert next_event(stream).name == "run.started"
        run_process(ANOTHER_PROCESS.format(run=str(run.pk), worker=WORKER))
        events = [event for event in stream if event]
    assert [event.number for event in events] == [2, 3, 4, 5]
    assert events[-1].data["text"] == "There."


def test_a_client_that_reconnects_misses_and_repeats_nothing(site, api):
    run = begun(api)
    seen: list[int] = []
    for number in range(1, 9):
        with site.open(run, seen[-1] if seen else None) as stream:
            # One before the client is there, one while it is, one that it does not read any more.
            rounds(run, number)
            event = next_event(stream)
            assert event.number is not None
            seen.append(event.number)
            rounds(run, -number)
    finish(run)
    with site.open(run, seen[-1]) as stream:
        seen += [event.number for event in stream if event and event.number]

    assert seen == list(range(1, AgentEvent.objects.count() + 1))


def test_the_watch_of_a_client_that_goes_away_ends(site, api, monkeypatch):
    monkeypatch.setattr(streaming, "KEEP_ALIVE", 0.05)
    run = begun(api)
    with site.open(run) as stream:
        assert next_event(stream).name == "run.started"
        assert run.pk in feed._watched
    nobody_watches()
    run.refresh_from_db()
    assert run.cancel_requested_at is None
