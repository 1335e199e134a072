from __future__ import annotations

import pytest

from mcp_client_app.client.backoff import Backoff
from mcp_client_app.client.standing import SOUND, Standing
from mcp_client_app.datatypes import ConnectionState, ServerSpec, Transport
from mcp_client_app.exceptions import (
    AuthRequiredError,
    ConfigurationError,
    MCPClientError,
    NotConnectedError,
    ServerCrashedError,
    ServerUnavailableError,
)


class Watched(Standing):
    """Counts how often the observers would be told."""

    def __init__(self, shared: Backoff | None = None, **fields: object) -> None:
        spec = ServerSpec(name="srv", transport=Transport.STDIO, **fields)  # type: ignore[arg-type]
        self.told: list[ConnectionState] = []
        super().__init__(spec, shared or Backoff(), lambda: self.told.append(self.state))


CRASH = ServerCrashedError("It crashed.", server="srv")


def test_a_new_server_may_be_connected():
    standing = Watched()
    standing.check_may_connect(0.0)
    assert standing.state is ConnectionState.IDLE


def test_observers_are_told_once_for_each_change():
    standing = Watched()
    standing.move(ConnectionState.CONNECTING)
    standing.move(ConnectionState.CONNECTING)
    standing.move(ConnectionState.READY)
    assert standing.told == [ConnectionState.CONNECTING, ConnectionState.READY]


def test_after_a_failure_there_is_a_delay_that_says_how_long_and_why():
    standing = Watched()
    standing.failed(CRASH, now=100.0)
    assert (standing.state, standing.reason, standing.error) == (
        ConnectionState.BACKING_OFF,
        "It crashed.",
        CRASH,
    )
    with pytest.raises(ServerUnavailableError, match=r"next try in 1 s: It crashed\.") as caught:
        standing.check_may_connect(100.0)
    assert caught.value.retry_after == standing.backoff.wait(100.0)
    assert caught.value.__cause__ is CRASH
    standing.check_may_connect(102.0)


def test_the_breaker_opens_after_five_failures():
    standing = Watched()
    for _ in range(5):
        standing.failed(CRASH, now=0.0)
    with pytest.raises(ServerUnavailableError):
        standing.check_may_connect(50.0)
    standing.check_may_connect(67.0)


def test_the_breaker_is_the_servers_and_holds_for_all_principals():
    shared = Backoff()
    one, other = Watched(shared), Watched(shared)
    for _ in range(5):
        one.failed(CRASH, now=0.0)
    with pytest.raises(ServerUnavailableError, match=r"next try in \d+ s: It crashed\.") as caught:
        other.check_may_connect(50.0)
    assert caught.value.__cause__ is CRASH
    assert other.state is ConnectionState.IDLE
    other.check_may_connect(67.0)
    other.reset()
    one.check_may_connect(0.0)
    other.check_may_connect(0.0)


def test_refused_credentials_of_one_principal_keep_no_other_waiting():
    shared = Backoff()
    one, other = Watched(shared), Watched(shared)
    for _ in range(5):
        one.failed(AuthRequiredError("Log in.", server="srv", status=401), now=0.0)
    assert one.failures == 5
    with pytest.raises(AuthRequiredError):
        one.check_may_connect(50.0)
    other.check_may_connect(0.0)
    assert other.failures == 0
    one.connected()
    one.failed(AuthRequiredError("Log in.", server="srv", status=401), now=100.0)
    assert one.failures == 1


def test_a_server_that_asks_for_patience_gets_it():
    standing = Watched()
    standing.failed(ServerUnavailableError("Busy.", server="srv", retry_after=500.0), now=0.0)
    with pytest.raises(ServerUnavailableError):
        standing.check_may_connect(499.0)
    standing.check_may_connect(501.0)


def test_a_wrong_configuration_waits_for_another_one_and_is_raised_as_itself_each_time():
    standing = Watched()
    error = ConfigurationError("No such command.", server="srv", field="command")
    standing.failed(error, now=0.0)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=r"No such command\.") as caught:
            standing.check_may_connect(1e9)
        assert caught.value is not error
        assert caught.value.field == "command"


def test_refused_credentials_are_a_state_of_their_own():
    standing = Watched()
    standing.failed(AuthRequiredError("Log in.", server="srv", status=401), now=0.0)
    assert standing.state is ConnectionState.NEEDS_AUTH
    with pytest.raises(AuthRequiredError, match=r"Log in\."):
        standing.check_may_connect(0.5)
    standing.check_may_connect(5.0)


def test_a_stop_holds_for_ever():
    standing = Watched()
    standing.move(ConnectionState.STOPPED, "disconnected")
    with pytest.raises(NotConnectedError, match="connect it first"):
        standing.check_may_connect(1e9)


def test_after_a_loss_the_next_use_may_connect_at_once():
    standing = Watched()
    standing.lost(CRASH, lived=5.0, now=100.0)
    assert standing.state is ConnectionState.LOST
    standing.check_may_connect(100.0)


def test_one_loss_after_another_without_a_success_is_treated_as_a_failure():
    standing = Watched()
    standing.lost(CRASH, lived=5.0, now=100.0)
    standing.lost(CRASH, lived=5.0, now=101.0)
    assert standing.state is ConnectionState.BACKING_OFF
    with pytest.raises(ServerUnavailableError):
        standing.check_may_connect(101.0)


def test_a_link_that_lived_long_forgives_earlier_failures():
    standing = Watched()
    standing.lost(CRASH, lived=5.0, now=100.0)
    standing.lost(CRASH, lived=SOUND, now=300.0)
    assert standing.state is ConnectionState.LOST


@pytest.mark.parametrize("how", ["failed", "lost"])
def test_without_auto_reconnect_trouble_is_final(how: str):
    standing = Watched(auto_reconnect=False)
    if how == "failed":
        standing.failed(CRASH, now=0.0)
    else:
        standing.lost(CRASH, lived=1.0, now=0.0)
    assert standing.state is ConnectionState.FAILED
    with pytest.raises(ServerCrashedError):
        standing.check_may_connect(1e9)


def test_an_explanation_without_an_error_says_that_there_is_no_connection():
    error = Watched().explanation()
    assert isinstance(error, MCPClientError)
    assert error.code == "not_connected"
