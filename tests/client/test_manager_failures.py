"""What users see when a server cannot be started, dies, or talks nonsense."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from mcp_client_app.datatypes import ConnectionState, ServerSpec, StrictOptions, Transport
from mcp_client_app.exceptions import (
    ConfigurationError,
    ConnectionLostError,
    MCPClientError,
    ProtocolError,
    RequestTimeoutError,
    ServerCrashedError,
    ServerUnavailableError,
    TransportError,
)
from tests import leftovers
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import LINKS
from tests.client.peers import Recorder


@pytest.fixture(params=LINKS)
def manage(request: pytest.FixtureRequest, manage: MakeManager) -> MakeManager:
    """Make managers with one link and then with the other."""
    return partial(manage, default_link=request.param)


# Starting ----------------------------------------------------------------------------


def a_server(**fields: object) -> ServerSpec:
    return ServerSpec(name="srv", transport=Transport.STDIO, **fields)  # type: ignore[arg-type]


def test_missing_command_missing_directory_and_unrunnable_file_have_three_messages(
    manage: MakeManager, tmp_path: Path
):
    plain = tmp_path / "plain.txt"
    plain.write_text("no program")
    odd = tmp_path / "odd"
    odd.write_text("no #! line")
    odd.chmod(0o755)
    specs = {
        "command": a_server(command="no-such-command-4711"),
        "file": a_server(command=str(plain)),
        "format": a_server(command=str(odd)),
        "cwd": a_server(command="true", cwd=str(tmp_path / "nowhere")),
    }
    messages = {}
    for kind, spec in specs.items():
        manager = manage(spec)
        with pytest.raises(ConfigurationError) as caught:
            manager.connect("srv")
        messages[kind] = str(caught.value)
        status = manager.status("srv")
        assert (status.state, status.code) == (ConnectionState.FAILED, "configuration")
        assert status.reason == messages[kind]
    assert "'no-such-command-4711' of 'srv' was not found" in messages["command"]
    assert "is not executable" in messages["file"]
    assert "neither a program nor a script" in messages["format"]
    assert "working directory" in messages["cwd"]
    assert len(set(messages.values())) == 4


def test_what_no_process_can_be_given_is_a_configuration_error(manage: MakeManager):
    manager = manage(a_server(command="true", args=("a\0b",)))
    with pytest.raises(ConfigurationError, match="NUL"):
        manager.connect("srv")


def test_configuration_errors_wait_for_a_new_configuration(manage: MakeManager, peer: MakePeer):
    manager = manage(a_server(command="no-such-command-4711"))
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="was not found"):
            manager.call_tool("srv__echo", {})
    good = peer("srv")
    manager.source.replace([good.spec])  # type: ignore[attr-defined]
    assert manager.call_tool("srv__echo", {"text": "mended"}).text == "mended"


def test_exit_at_start_tells_the_exit_code_and_the_last_words(manage: MakeManager, peer: MakePeer):
    dead = peer("srv", "exit_at_start=3")
    manager = manage(dead)
    with pytest.raises(ServerCrashedError) as caught:
        manager.connect("srv")
    assert caught.value.exit_code == 3
    assert caught.value.stderr_tail == ("faulty peer: the variable API_KEY is not set",)
    assert "exited with code 3" in str(caught.value)
    assert "API_KEY is not set" in str(caught.value)
    status = manager.status("srv")
    assert status.state is ConnectionState.BACKING_OFF
    assert (status.code, status.exit_code) == ("server_crashed", 3)
    assert status.stderr_tail == ("faulty peer: the variable API_KEY is not set",)
    assert status.pid is None
    assert status.retry_at is not None
    assert leftovers.survivors(set(dead.pids)) == []


def test_silence_ends_at_the_connect_limit_and_leaves_no_process(manage: MakeManager, peer: MakePeer):
    silent = peer("srv", "mute", "ignore_eof_and_term", connect_timeout=0.3)
    manager = manage(silent)
    with pytest.raises(RequestTimeoutError, match=r"was not ready within 0\.3 s") as caught:
        manager.connect("srv")
    assert caught.value.seconds == 0.3
    assert len(silent.pids) == 1
    assert leftovers.survivors(set(silent.pids)) == []


def test_a_listing_that_never_comes_is_named_with_its_own_limit(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "mute_list", list_timeout=0.2))
    with pytest.raises(RequestTimeoutError, match=r"did not answer 'tools/list' within 0\.2 s") as caught:
        manager.connect("srv")
    assert caught.value.seconds == 0.2


def test_a_refused_handshake_is_a_protocol_error(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "error_on_initialize=-32000"))
    with pytest.raises(ProtocolError, match="faulty peer refuses") as caught:
        manager.connect("srv")
    assert caught.value.rpc_code == -32000
    assert manager.status("srv").state is ConnectionState.BACKING_OFF


# Noise -------------------------------------------------------------------------------


def test_noise_on_standard_output_is_counted_and_quoted(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "banner"))
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"
    status = manager.status("srv")
    assert status.noise_count == 4
    assert status.noise_last == "{not json"


def test_bytes_that_are_no_utf8_cost_one_line(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "non_utf8"))
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"
    assert manager.status("srv").noise_count == 1


def test_noise_drops_the_connection_only_if_that_is_asked_for(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "banner", strict=StrictOptions(parse_errors=True)))
    with pytest.raises(TransportError, match="no JSON"):
        manager.connect("srv")


def test_junk_notifications_are_survived(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "junk_notifications"))
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"
    assert manager.status("srv").is_ready


# Dying -------------------------------------------------------------------------------


def test_death_in_mid_call_fails_the_call_at_once_and_the_next_call_reconnects(
    manage: MakeManager, peer: MakePeer, tmp_path: Path
):
    dying = peer("srv", "die_on_call=7", once=True)
    manager = manage(dying)
    manager.connect("srv")
    with pytest.raises(ServerCrashedError) as caught:
        manager.call_tool("srv__write", {"path": str(tmp_path / "effect"), "text": "once"})
    assert caught.value.exit_code == 7
    assert caught.value.sent is True
    assert caught.value.details()["outcome"] == "unknown"
    assert manager.call_tool("srv__echo", {"text": "back"}).text == "back"
    assert (tmp_path / "effect").read_text() == "once\n"
    assert dying.calls() == ["write", "echo"]
    assert len(dying.pids) == 2
    assert manager.status("srv").connects == 2


def test_calls_in_flight_all_fail_when_the_server_dies(manage: MakeManager, peer: MakePeer, threads):
    dying = peer("srv", "die_on_idle=5")
    manager = manage(dying)
    manager.connect("srv")
    hanging = [threads.submit(manager.call_tool, "srv__hang") for _ in range(3)]
    dying.wait_for("tools/call", 3)
    os.kill(dying.pids[0], signal.SIGUSR1)
    for call in hanging:
        with pytest.raises(ServerCrashedError, match="exited with code 5"):
            call.result(20)


def test_death_while_idle_is_noticed_and_the_next_call_reconnects(
    manage: MakeManager, peer: MakePeer, recorder: Recorder
):
    dying = peer("srv", "die_on_idle=5")
    manager = manage(dying, observers=[recorder])
    manager.connect("srv")
    os.kill(dying.pids[0], signal.SIGUSR1)
    lost = recorder.wait_for_state("srv", ConnectionState.LOST)
    assert (lost.code, lost.exit_code) == ("server_crashed", 5)
    assert "exited with code 5" in lost.reason
    assert lost.stderr_tail == ("faulty peer: dying while idle",)
    assert len(manager.list_tools()) == 13  # as last known
    assert manager.call_tool("srv__echo", {"text": "back"}).text == "back"
    assert len(dying.pids) == 2


def test_a_signal_is_told_as_the_reason(manage: MakeManager, peer: MakePeer, recorder: Recorder):
    killed = peer("srv")
    manager = manage(killed, observers=[recorder])
    manager.connect("srv")
    os.kill(killed.pids[0], signal.SIGKILL)
    lost = recorder.wait_for_state("srv", ConnectionState.LOST)
    assert lost.exit_code == -9
    assert "was ended by signal 9" in lost.reason


def test_a_server_that_closes_its_output_but_lives_on_is_lost(manage: MakeManager, peer: MakePeer):
    deaf = peer("srv", "close_output_on_call")
    manager = manage(deaf)
    with pytest.raises(ConnectionLostError, match="closed its standard output"):
        manager.call_tool("srv__echo", {"text": "hi"})
    manager.close()
    assert leftovers.survivors(set(deaf.pids)) == []


def test_a_server_that_dies_again_and_again_is_left_alone_for_a_while(manage: MakeManager, peer: MakePeer):
    dying = peer("srv", "die_on_call=7")
    manager = manage(dying)
    for _ in range(2):
        with pytest.raises(ServerCrashedError):
            manager.call_tool("srv__echo", {"text": "hi"})
    with pytest.raises(ServerUnavailableError, match="next try in") as caught:
        manager.call_tool("srv__echo", {"text": "hi"})
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 0
    assert isinstance(caught.value.__cause__, ServerCrashedError)
    assert len(dying.pids) == 2


def test_no_message_status_or_log_shows_a_secret(
    manage: MakeManager, peer: MakePeer, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("DEBUG")
    secret = "hunter2-hunter2"
    echoing = peer("srv", "exit_at_start=1", env={"API_KEY": secret, "LINE": "API_KEY is not set"})
    manager = manage(echoing, debug=True)
    with pytest.raises(MCPClientError) as caught:
        manager.connect("srv")
    told = [str(caught.value), repr(caught.value.details()), repr(manager.status("srv")), caplog.text]
    assert not any(secret in text or "API_KEY is not set" in text for text in told)
    assert "***" in str(caught.value)
