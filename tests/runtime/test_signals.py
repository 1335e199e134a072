"""Signals: off the loop, in order, with the database at hand, and no connection left open."""

from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest
from django.db import connection

from mcp_client_app import signals
from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import close_mcp_manager, get_mcp_manager
from tests.stored import stored

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def listen():
    """Connect receivers for the time of a test."""
    connected = []

    def connect(signal, receiver):
        signal.connect(receiver, weak=False)
        connected.append((signal, receiver))

    yield connect
    for signal, receiver in connected:
        signal.disconnect(receiver)


def test_changes_of_state_are_told_in_order_each_with_the_one_before(listen):
    stored("peer")
    seen = []
    listen(
        signals.server_state_changed,
        lambda sender, status, previous, **kwargs: seen.append((previous.value, status.state.value)),
    )

    get_mcp_manager().connect("peer")
    get_mcp_manager().disconnect("peer")
    close_mcp_manager()

    assert seen[:3] == [("idle", "connecting"), ("connecting", "ready"), ("ready", "stopped")]


def test_receivers_run_off_the_loop_and_may_use_the_database(listen):
    """D06."""
    stored("peer")
    seen = []

    def receiver(sender, status, **kwargs):
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        seen.append((threading.current_thread().name, ServerConfig.objects.count()))

    listen(signals.catalogue_changed, receiver)

    get_mcp_manager().connect("peer")
    close_mcp_manager()

    assert seen == [("mcp-callback", 1)]


def test_the_connections_that_receivers_have_opened_are_closed(listen):
    """D07."""
    stored("peer")
    opened = []

    def receiver(sender, **kwargs):
        connection.ensure_connection()
        opened.append(connection.connection)

    listen(signals.server_state_changed, receiver)
    get_mcp_manager().connect("peer")
    close_mcp_manager()

    assert opened
    for each in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            each.execute("SELECT 1")


def test_a_receiver_that_fails_costs_the_others_nothing(listen, caplog):
    stored("peer")
    seen = []

    def failing(sender, **kwargs):
        raise ValueError("of the receiver")

    listen(signals.server_state_changed, failing)
    listen(signals.server_state_changed, lambda sender, status, **kwargs: seen.append(status.state.value))

    get_mcp_manager().connect("peer")
    close_mcp_manager()

    assert seen == ["connecting", "ready", "stopped"]
    assert "of the receiver" in caplog.text


def test_lines_of_standard_error_and_log_messages_are_told(listen):
    stored("peer", "--scenario=stderr_partial", "--scenario=log_messages")
    lines, messages = [], []
    listen(signals.server_stderr, lambda sender, line, **kwargs: lines.append(line))
    listen(signals.server_log, lambda sender, message, **kwargs: messages.append(message))

    get_mcp_manager().call_tool("peer__echo", {"text": "hi"})
    close_mcp_manager()

    assert {line.server for line in lines} == {"peer"}
    assert {message.server for message in messages} == {"peer"}
