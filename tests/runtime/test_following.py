"""Connections follow what operators do to rows: here at once, elsewhere with the next look."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest

from mcp_client_app import services
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.exceptions import (
    MCPClientError,
    NotConnectedError,
    ToolBlockedError,
    UnknownServerError,
)
from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import aclose_mcp_manager, get_mcp_manager
from tests.stored import (
    ROOT,
    close_connections,
    peer_fields,
    process_environment,
    run_process,
    stored,
)

pytestmark = pytest.mark.django_db(transaction=True)


class Life:
    """Waits for the end of a process, however long ago it was started."""

    def __init__(self, pid: int | None) -> None:
        assert pid is not None
        self._descriptor = os.pidfd_open(pid)

    def has_ended(self) -> bool:
        """Wait for the end."""
        ended = bool(select.select([self._descriptor], [], [], 20)[0])
        os.close(self._descriptor)
        return ended


def connected(name: str = "peer") -> tuple[str, Life]:
    """Connect; returns the process id and what waits for its end."""
    status = get_mcp_manager().connect(name)
    return str(status.pid), Life(status.pid)


def test_an_edit_starts_a_new_process_and_ends_the_old_one():
    row = stored("peer")
    pid, life = connected()

    row.env = {"GREETING": "hello"}
    row.save()

    assert '"GREETING": "hello"' in get_mcp_manager().call_tool("peer__env").text
    assert get_mcp_manager().call_tool("peer__pid").text != pid
    assert life.has_ended()


def test_an_edit_ends_the_old_process_without_waiting_for_a_use():
    row = stored("peer")
    _, life = connected()

    row.env = {"GREETING": "hello"}
    row.save()

    assert life.has_ended()
    assert get_mcp_manager().status("peer").state is ConnectionState.IDLE


def test_an_edit_of_filters_and_limits_keeps_the_process():
    row = stored("peer")
    pid, life = connected()

    row.blocked_tools = ["echo"]
    row.call_timeout = 30
    row.save()

    with pytest.raises(ToolBlockedError):
        get_mcp_manager().call_tool("peer__echo", {"text": "hi"})
    assert "echo" not in [tool.name for tool in get_mcp_manager().list_tools("peer")]
    assert get_mcp_manager().call_tool("peer__pid").text == pid
    services.remove_server("peer")
    assert life.has_ended()


def test_an_edit_that_cannot_work_is_the_state_that_everybody_sees():
    row = stored("peer")
    _, life = connected()

    row.command = "${SURELY_NOT_SET_ANYWHERE}"
    row.may_reference_environment = True
    row.save()

    assert life.has_ended()
    status = get_mcp_manager().status("peer")
    assert (status.state, status.code) == (ConnectionState.FAILED, "configuration")
    assert "SURELY_NOT_SET_ANYWHERE" in status.reason


@pytest.mark.parametrize("end", ["delete", "disable"])
def test_a_server_that_is_deleted_or_disabled_is_not_left_running(end):
    row = stored("peer")
    _, life = connected()

    getattr(row, end)()

    assert life.has_ended()
    with pytest.raises(LookupError):
        get_mcp_manager().call_tool("peer__pid")
    with pytest.raises(UnknownServerError):
        get_mcp_manager().call_tool("pid", server="peer")


def test_a_bulk_change_is_followed_with_the_next_look(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    stored("peer")
    pid, life = connected()

    ServerConfig.objects.update(env={"GREETING": "hello"})

    assert get_mcp_manager().call_tool("peer__pid").text != pid
    assert life.has_ended()


# What refuses a call is looked at anew -----------------------------------------------------


@pytest.mark.parametrize(
    ("outdated", "lifted"),
    [
        ({"stopped": True}, {"stopped": False}),
        ({"blocked_tools": ["echo"]}, {"blocked_tools": []}),
        ({"enabled": False}, {"enabled": True}),
        ({"command": "surely-no-such-program"}, {"command": sys.executable}),
    ],
    ids=["stop", "filter", "disabled", "command"],
)
def test_no_call_is_refused_for_what_another_process_has_lifted(settings, outdated, lifted):
    settings.MCP_CLIENT_REVISION_INTERVAL = 3600
    stored("peer", **outdated)
    with pytest.raises(MCPClientError):
        call_echo()

    ServerConfig.objects.update(**lifted)  # as other processes do: nobody here is told

    assert call_echo() == "hi"


def call_echo() -> str:
    return get_mcp_manager().call_tool("peer__echo", {"text": "hi"}).text


def test_a_server_that_another_process_has_just_stored_is_known(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 3600
    assert get_mcp_manager().list_servers() == []

    ServerConfig.objects.bulk_create([ServerConfig(name="peer", **peer_fields())])

    assert call_echo() == "hi"


@pytest.mark.anyio
async def test_the_async_form_looks_anew_as_well(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 3600
    assert await get_mcp_manager().alist_servers() == []

    await ServerConfig.objects.abulk_create([ServerConfig(name="peer", **peer_fields())])

    result = await get_mcp_manager().acall_tool("peer__echo", {"text": "hi"})
    assert result.text == "hi"
    await aclose_mcp_manager()
    await close_connections()


def test_a_refusal_that_holds_costs_one_look(settings, django_assert_num_queries):
    settings.MCP_CLIENT_REVISION_INTERVAL = 3600
    stored("peer", stopped=True)
    get_mcp_manager().list_servers()

    with django_assert_num_queries(1), pytest.raises(NotConnectedError):
        call_echo()


# The stop that holds for all processes ----------------------------------------------------


def test_a_disconnect_holds_until_a_connect():
    stored("peer")
    _, life = connected()

    status = services.disconnect("peer")

    assert status.state is ConnectionState.STOPPED
    assert life.has_ended()
    with pytest.raises(NotConnectedError):
        get_mcp_manager().call_tool("peer__pid")
    assert services.connect("peer").is_ready
    assert not ServerConfig.objects.get().stopped


def test_a_stop_is_obeyed_by_other_processes_and_a_connect_there_lifts_it_here(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    stored("peer")
    _, life = connected()

    run_process("""
from mcp_client_app import services
services.disconnect("peer")
""")

    with pytest.raises(NotConnectedError):
        get_mcp_manager().call_tool("peer__pid")
    assert life.has_ended()

    run_process("""
from mcp_client_app import runtime, services
services.connect("peer")
runtime.close_mcp_manager()
""")

    assert get_mcp_manager().call_tool("peer__echo", {"text": "again"}).text == "again"


def test_a_stop_made_here_is_lifted_by_a_connect_elsewhere(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    stored("peer")
    _, life = connected()
    services.disconnect("peer")
    assert life.has_ended()

    run_process("""
from mcp_client_app import runtime, services
services.connect("peer")
runtime.close_mcp_manager()
""")

    assert get_mcp_manager().call_tool("peer__echo", {"text": "again"}).text == "again"


def test_a_stopped_server_that_is_tested_stays_stopped(settings):
    stored("peer", stopped=True)

    assert services.test_server("peer").ok

    assert services.server_status("peer").state is ConnectionState.STOPPED


@pytest.mark.parametrize("broken", [{"enabled": False}, {"command": ""}], ids=["disabled", "unsound"])
def test_a_server_that_cannot_be_used_can_still_be_stopped(broken):
    stored("peer", **broken)
    get_mcp_manager().list_servers()

    services.disconnect("peer")

    assert ServerConfig.objects.get().stopped


def test_a_change_by_another_process_ends_the_process_of_a_server_here(settings):
    """A long-lived neighbour, not one that ends: it edits, and waits while we look."""
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    stored("peer")
    pid, life = connected()
    neighbour = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import django\ndjango.setup()\n"
            "from mcp_client_app import services\n"
            f"services.update_server('peer', args={peer_fields('--scenario=banner')['args']!r})\n"
            "print('saved', flush=True)\ninput()",
        ],
        cwd=ROOT,
        env=process_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with neighbour:
        assert neighbour.stdout is not None
        assert neighbour.stdout.readline() == "saved\n"

        assert get_mcp_manager().call_tool("peer__pid").text != pid
        assert life.has_ended()
        neighbour.communicate("\n")
    assert neighbour.returncode == 0
