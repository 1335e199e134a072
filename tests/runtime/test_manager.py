"""The process's manager: one, made on first use, made anew after its end."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcp_client_app.exceptions import ManagerClosedError
from mcp_client_app.runtime import (
    aclose_mcp_manager,
    close_mcp_manager,
    get_mcp_manager,
    set_mcp_manager,
    started_manager,
)
from tests.stored import close_connections, run_process, stored

pytestmark = pytest.mark.django_db(transaction=True)


def test_twenty_threads_get_one_manager():
    gate = threading.Barrier(20)

    def get(_):
        gate.wait()
        return get_mcp_manager()

    with ThreadPoolExecutor(20) as threads:
        managers = set(threads.map(get, range(20)))

    assert len(managers) == 1


def test_nothing_is_made_by_asking_whether_there_is_a_manager():
    assert started_manager() is None

    manager = get_mcp_manager()

    assert started_manager() is manager


def test_a_closed_manager_is_replaced():
    first = get_mcp_manager()
    first.close()
    assert started_manager() is None

    second = get_mcp_manager()

    assert second is not first
    with pytest.raises(ManagerClosedError):
        first.list_tools()
    assert second.list_tools() == []


def test_closing_ends_the_process_of_a_server():
    stored("peer")
    pid = get_mcp_manager().connect("peer").pid
    assert pid is not None

    close_mcp_manager()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    close_mcp_manager()  # again: nothing to do


@pytest.mark.anyio
async def test_an_application_can_close_the_manager_on_its_loop():
    manager = get_mcp_manager()
    assert await manager.alist_servers() == []

    await aclose_mcp_manager()

    assert manager.is_closed
    assert started_manager() is None
    await close_connections()


def test_another_manager_can_be_put_in_place_and_taken_back():
    mine = get_mcp_manager()

    assert set_mcp_manager(None) is mine
    other = get_mcp_manager()
    assert other is not mine
    assert set_mcp_manager(mine) is other

    assert get_mcp_manager() is mine
    other.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_takes_neither_the_locks_nor_the_servers_of_its_parent():
    printed = run_process("""
import os, sys
from django.db import connections
from mcp_client_app.runtime import get_mcp_manager, row_source
import mcp_client_app.runtime as runtime
from mcp_client_app.services import audit_rows
from tests.stored import stored
from mcp_client_app.models import ServerConfig
stored("forked")
mine = get_mcp_manager().call_tool("forked__pid").text
connections.close_all()
observer = get_mcp_manager().observers[0]
# As if threads were within these sections at the moment of the fork.
locks = [runtime._lock, row_source._lock, observer._states._lock, audit_rows._writer._condition]
for lock in locks:
    lock.acquire()
child = os.fork()
if child == 0:
    theirs = get_mcp_manager().call_tool("forked__pid").text
    runtime.close_mcp_manager()
    os._exit(0 if theirs != mine else 1)
for lock in locks:
    lock.release()
assert os.waitpid(child, 0)[1] == 0
assert get_mcp_manager().call_tool("forked__pid").text == mine
runtime.close_mcp_manager()
ServerConfig.objects.all().delete()
print("fine")
""")
    assert printed == "fine\n"


FAKE_GEVENT = """
import sys, types
monkey = types.ModuleType("gevent.monkey")
monkey.is_module_patched = lambda name: name == "threading" and {patched}
sys.modules["gevent.monkey"] = monkey
"""
FAKE_EVENTLET = """
import sys, types
patcher = types.ModuleType("eventlet.patcher")
patcher.is_monkey_patched = lambda name: name == "thread" and {patched}
sys.modules["eventlet.patcher"] = patcher
"""
FAKE_UWSGI = """
import sys, types
uwsgi = types.ModuleType("uwsgi")
uwsgi.opt = {options}
{more}
sys.modules["uwsgi"] = uwsgi
"""
ASK = """
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.runtime import get_mcp_manager
try:
    get_mcp_manager()
except ConfigurationError as error:
    print(error)
else:
    print("made")
"""


@pytest.mark.parametrize(
    ("fake", "cure"),
    [
        (FAKE_GEVENT.format(patched=True), "gthread"),
        (FAKE_EVENTLET.format(patched=True), "gthread"),
        (FAKE_UWSGI.format(options="{'master': b'true'}", more=""), "enable-threads"),
        (FAKE_UWSGI.format(options="{'threads': b'2'}", more="uwsgi.has_threads = 0"), "enable-threads"),
    ],
    ids=["gevent", "eventlet", "uwsgi", "uwsgi-that-tells"],
)
def test_places_without_real_threads_are_refused_with_the_cure(fake, cure):
    assert cure in run_process(fake + ASK)


@pytest.mark.parametrize(
    "fake",
    [
        FAKE_GEVENT.format(patched=False),
        FAKE_EVENTLET.format(patched=False),
        FAKE_UWSGI.format(options="{'enable-threads': b'true'}", more=""),
        FAKE_UWSGI.format(options="{b'threads': b'2'}", more=""),
        FAKE_UWSGI.format(options="{}", more="uwsgi.has_threads = 1"),
    ],
    ids=["gevent", "eventlet", "uwsgi-enable-threads", "uwsgi-threads", "uwsgi-that-tells"],
)
def test_the_same_servers_are_fine_with_real_threads(fake):
    assert run_process(fake + ASK) == "made\n"


def test_services_runtime_and_receivers_load_no_sdk_and_start_no_thread():
    run_process("""
import sys, threading
import mcp_client_app.receivers, mcp_client_app.runtime, mcp_client_app.services
loaded = {"mcp", "mcp_types", "aiohttp", "httpx2", "anyio", "uvicorn"} & set(sys.modules)
assert not loaded, loaded
assert threading.enumerate() == [threading.main_thread()]
""")
