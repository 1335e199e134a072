"""What observers are told: standard error, log messages, states; in order, off the loop."""

from __future__ import annotations

import threading

import pytest

from mcp_client_app.client.observers import Observer
from mcp_client_app.datatypes import ConnectionState, ServerStatus, StderrLine
from mcp_client_app.exceptions import ServerCrashedError
from tests.client.conftest import MakeManager, MakePeer
from tests.client.peers import Recorder

# Standard error ----------------------------------------------------------------------


def test_standard_error_comes_line_by_line_without_blanks(
    manage: MakeManager, peer: MakePeer, recorder: Recorder
):
    # One piece with each message: the fourth, without a newline, is a line when the process ends.
    manager = manage(peer("srv", "stderr_partial", mode="legacy"), observers=[recorder])
    manager.call_tool("srv__echo", {"text": "hi"})
    recorder.wait_for(lambda: len(recorder.lines) == 2)
    manager.disconnect("srv")
    recorder.wait_for(lambda: len(recorder.lines) == 3)
    lines = [line.line for line in recorder.lines]
    assert lines == ["first half, second half", "next café line", "unfinished"]
    assert manager.stderr("srv") == tuple(lines)
    assert recorder.lines[0].server == "srv"
    assert recorder.lines[0].received_at.tzinfo is not None


def test_a_flood_on_standard_error_is_kept_in_a_ring_and_told_in_full(
    manage: MakeManager, peer: MakePeer, recorder: Recorder
):
    manager = manage(
        peer("srv", "stderr_flood=2000", mode="legacy"),
        observers=[recorder],
        stderr_lines=50,
        queue_size=5000,
    )
    with pytest.raises(ServerCrashedError) as caught:
        manager.connect("srv")
    assert caught.value.stderr_tail[-1] == "flood 2000"
    assert manager.stderr("srv") == tuple(f"flood {n}" for n in range(1951, 2001))
    recorder.wait_for(lambda: len(recorder.lines) == 2000)
    assert [line.line for line in recorder.lines] == [f"flood {n}" for n in range(1, 2001)]


def test_events_that_nobody_takes_in_time_are_dropped_oldest_first_and_counted(
    manage: MakeManager, peer: MakePeer
):
    gate, lines = threading.Event(), []

    class Slow(Observer):
        def stderr(self, line: StderrLine) -> None:
            gate.wait(20)
            lines.append(line.line)

    manager = manage(peer("srv", "stderr_flood=500", mode="legacy"), observers=[Slow()], queue_size=10)
    with pytest.raises(ServerCrashedError):
        manager.connect("srv")
    dropped = manager.status("srv").dropped_events
    gate.set()
    assert dropped > 400
    assert manager._engine is not None
    assert manager._engine.flush_callbacks(20)
    # The one being told when the flood came, then the last ones; the changes of state took places, too.
    assert len(lines) <= 11
    assert lines == sorted(lines, key=lambda line: int(line.split()[1]))


# Log messages ------------------------------------------------------------------------


def test_log_messages_are_told_in_order_and_kept(manage: MakeManager, peer: MakePeer, recorder: Recorder):
    manager = manage(peer("srv", "log_messages"), observers=[recorder])
    manager.call_tool("srv__echo", {"text": "hi"})
    recorder.wait_for(lambda: len(recorder.logs) == 3)
    assert [(m.level, m.logger, m.data) for m in recorder.logs] == [
        (level, "faulty", {"text": f"a {level} message"}) for level in ("debug", "warning", "error")
    ]
    assert manager.server_logs("srv") == tuple(recorder.logs)


# States ------------------------------------------------------------------------------


def test_each_change_of_state_is_told_in_order(manage: MakeManager, peer: MakePeer, recorder: Recorder):
    manager = manage(peer("srv"), observers=[recorder])
    manager.connect("srv")
    manager.disconnect("srv")
    recorder.wait_for_state("srv", ConnectionState.STOPPED)
    assert recorder.path("srv") == ["connecting", "ready", "stopped"]
    assert len(recorder.catalogues) == 1
    assert recorder.catalogues[0].tools == 13


def test_a_failing_observer_is_logged_and_harms_nobody(
    manage: MakeManager, peer: MakePeer, recorder: Recorder, caplog: pytest.LogCaptureFixture
):
    class Failing(Observer):
        def state_changed(self, status: ServerStatus) -> None:
            raise ZeroDivisionError

    manager = manage(peer("srv"), observers=[Failing(), recorder])
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"
    recorder.wait_for_state("srv", ConnectionState.READY)
    assert "ZeroDivisionError" in caplog.text


def test_an_observer_may_use_the_manager(manage: MakeManager, peer: MakePeer):
    answers: list[str] = []
    done = threading.Event()

    class Curious(Observer):
        def state_changed(self, status: ServerStatus) -> None:
            if status.is_ready:
                answers.append(manager.call_tool("srv__echo", {"text": "from a callback"}).text)
                done.set()

    manager = manage(peer("srv"), observers=[Curious()])
    manager.connect("srv")
    assert done.wait(20)
    assert answers == ["from a callback"]


def test_a_slow_observer_of_one_server_does_not_delay_another(manage: MakeManager, peer: MakePeer):
    gate, other = threading.Event(), threading.Event()

    class Waiting(Observer):
        def state_changed(self, status: ServerStatus) -> None:
            if status.name == "first":
                gate.wait(20)
            elif status.is_ready:
                other.set()

    manager = manage(peer("first"), peer("second"), observers=[Waiting()])
    manager.connect("first")
    manager.connect("second")
    assert other.wait(20)
    gate.set()


def test_callbacks_run_within_what_the_project_wraps_around_them(
    manage: MakeManager, peer: MakePeer, recorder: Recorder
):
    wrapped: list[str] = []

    def around(callback):
        callback()
        wrapped.append(threading.current_thread().name)

    manager = manage(peer("srv"), observers=[recorder], around_callback=around)
    manager.connect("srv")
    recorder.wait_for_state("srv", ConnectionState.READY)
    manager.close()
    assert set(wrapped) == {"mcp-callback"}


def test_frames_are_logged_when_debugging(
    manage: MakeManager, peer: MakePeer, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("DEBUG", "mcp_client_app.frames")
    manager = manage(peer("srv", env={"TOKEN": "tops3cret"}), debug=True)
    manager.call_tool("srv__env")
    told = [record.getMessage() for record in caplog.records if record.name == "mcp_client_app.frames"]
    assert any(text.startswith('srv -> {"jsonrpc":"2.0","id":') for text in told)
    assert any(text.startswith("srv <- ") and "***" in text for text in told)
    assert not any("tops3cret" in text for text in told)
