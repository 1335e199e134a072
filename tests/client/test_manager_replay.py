"""What happens to a call whose server is lost: writes are never repeated, reads once if that is trusted."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from mcp_client_app.exceptions import ServerConnectionError, ServerCrashedError
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import LINKS
from tests.client.peers import PATIENCE, Recorder


@pytest.fixture(params=LINKS)
def manage(request: pytest.FixtureRequest, manage: MakeManager) -> MakeManager:
    """Make managers with one link and then with the other."""
    return partial(manage, default_link=request.param)


@pytest.mark.parametrize("trusted", [False, True])
def test_a_write_is_never_repeated(manage: MakeManager, peer: MakePeer, trusted: bool):
    server = peer("srv", "die_on_call=7", once=True, trust_annotations=trusted)
    manager = manage(server)
    effect = server.directory / "effect"
    with pytest.raises(ServerCrashedError) as caught:
        manager.call_tool("srv__write", {"path": str(effect), "text": "x"})
    assert caught.value.sent is True
    assert effect.read_text() == "x\n"
    assert server.calls() == ["write"]


def test_a_read_is_repeated_once_if_the_row_trusts_annotations(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "die_on_call=7", once=True, trust_annotations=True)
    result = manage(server).call_tool("srv__echo", {"text": "hi"})
    assert (result.text, result.replayed) == ("hi", True)
    assert server.calls() == ["echo", "echo"]
    assert len(server.pids) == 2


def test_a_read_is_not_repeated_without_trust(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "die_on_call=7", once=True)
    with pytest.raises(ServerCrashedError):
        manage(server).call_tool("srv__echo", {"text": "hi"})
    assert server.calls() == ["echo"]


def test_a_read_is_repeated_only_once(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "die_on_call=7", trust_annotations=True)
    with pytest.raises(ServerCrashedError):
        manage(server).call_tool("srv__echo", {"text": "hi"})
    assert server.calls() == ["echo", "echo"]


def test_a_read_is_not_repeated_without_auto_reconnect(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "die_on_call=7", once=True, trust_annotations=True, auto_reconnect=False)
    with pytest.raises(ServerCrashedError):
        manage(server).call_tool("srv__echo", {"text": "hi"})
    assert server.calls() == ["echo"]


def test_a_write_that_is_known_not_to_have_been_sent_is_sent_to_the_next_process(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor, recorder: Recorder
):
    # The first process does not read: one large call fills its pipe, the write waits behind it.
    server = peer("srv", "stop_reading=3", once=True, mode="legacy", shutdown_timeout=0.5)
    manager = manage(server, observers=[recorder])
    manager.connect("srv")
    large = threads.submit(manager.call_tool, "srv__echo", {"text": "x" * 3_000_000})
    path = server.directory / "effect"
    while manager.status("srv").calls_in_flight < 1:
        manager.list_tools("srv")
    small = threads.submit(manager.call_tool, "srv__write", {"path": str(path), "text": "once"})
    while manager.status("srv").calls_in_flight < 2:
        manager.list_tools("srv")
    os.kill(server.pids[0], signal.SIGKILL)
    with pytest.raises(ServerConnectionError) as caught:
        large.result(PATIENCE)
    assert caught.value.details()["outcome"] == "unknown"
    result = small.result(PATIENCE)
    assert (result.text, result.replayed) == ("written", False)
    assert path.read_text() == "once\n"
    assert server.calls() == ["write"]
