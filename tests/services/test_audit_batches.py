"""Audit rows in batches: no call waits for its row, and none is lost on the way."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created

from mcp_client_app import services
from mcp_client_app.exceptions import AsyncContextError, PermissionDeniedError, ToolBlockedError
from mcp_client_app.models import ToolCall
from mcp_client_app.runtime import aclose_mcp_manager, set_mcp_manager
from mcp_client_app.services.audit_rows import write_row
from mcp_client_app.services.audit_writer import AuditWriter, Entry
from tests.stored import close_connections, run_process, stored

pytestmark = pytest.mark.django_db(transaction=True)

WRITER = "mcp-audit"
SECONDS = 20
"""Limit of everything that waits for another thread: never reached unless something hangs."""


@pytest.fixture(autouse=True)
def _batches(settings: Any) -> Iterator[None]:
    settings.MCP_CLIENT_AUDIT_BATCH = True
    yield
    assert services.flush_audit(SECONDS)


def call(*texts: str, **options: Any) -> None:
    for text in texts:
        services.call_tool("shop__echo", {"text": text}, correlation_id=text, **options)


def written() -> list[str]:
    """Return the correlation ids of the rows that are there now."""
    return list(ToolCall.objects.order_by("started_at", "pk").values_list("correlation_id", flat=True))


def told() -> list[str]:
    """Return them once all are written."""
    assert services.flush_audit(SECONDS)
    return written()


class Writer:
    """What the writer's thread does with the database, seen from there."""

    def __init__(self) -> None:
        self.connections: list[Any] = []
        self.inserts: list[str] = []
        self.after_insert: Callable[[], None] | None = None
        self.refusals = 0
        """So many attempts to connect fail."""
        self.is_there = threading.Event()
        self._may_go_on = threading.Event()
        self._may_go_on.set()

    def connected(self, connection: Any, **kwargs: Any) -> None:
        """Take part whenever the writer has connected; as a receiver of Django's signal."""
        if threading.current_thread().name != WRITER:
            return
        self.is_there.set()
        assert self._may_go_on.wait(SECONDS)
        if self.refusals:
            self.refusals -= 1
            connection.close()
            raise OperationalError("no such luck\nDETAIL: a secret")
        if connection not in self.connections:  # the same object may connect again
            self.connections.append(connection)
            connection.execute_wrappers.append(self._execute)

    def _execute(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if sql.startswith("INSERT"):
            self.inserts.append(sql)
            if self.after_insert is not None:
                self.after_insert()
        return result

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let the writer get no further than to its connection while the block runs."""
        self.is_there.clear()
        self._may_go_on.clear()
        try:
            yield
        finally:
            self._may_go_on.set()


@pytest.fixture
def writer(the_shop: Any) -> Iterator[Writer]:
    found = Writer()
    connection_created.connect(found.connected)
    yield found
    assert services.flush_audit(SECONDS)
    connection_created.disconnect(found.connected)


@contextlib.contextmanager
def refused(correlation_id: str) -> Iterator[None]:
    """Have the database refuse one row while the block runs."""
    table, name = ToolCall._meta.db_table, "refuses_one"
    if connection.vendor == "postgresql":
        begin = f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK (correlation_id <> '{correlation_id}')"
        end = f"ALTER TABLE {table} DROP CONSTRAINT {name}"
    else:
        begin = (
            f"CREATE TRIGGER {name} BEFORE INSERT ON {table} WHEN NEW.correlation_id = '{correlation_id}' "
            "BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )
        end = f"DROP TRIGGER {name}"
    with connection.cursor() as cursor:
        cursor.execute(begin)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(end)


def test_calls_do_not_wait_for_their_rows(writer):
    with writer.held():
        call("one", "two")
        assert written() == []

    assert told() == ["one", "two"]


def test_rows_that_come_together_are_written_together(writer):
    with writer.held():
        call("first")
        assert writer.is_there.wait(SECONDS)
        call(*(str(number) for number in range(40)))

    assert told() == ["first", *(str(number) for number in range(40))]
    assert len(writer.inserts) == 2


def test_rows_are_the_same_as_without_batches(writer, settings, make_user):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    user = make_user("call_tool")
    call("now", "then", user=user, agent="Ada")

    assert told() == ["now", "then"]
    for row in ToolCall.objects.all():
        assert (row.user, row.username, row.agent) == (user, user.username, "Ada")
        assert row.server is not None
        assert (row.server.name, row.server_name, row.transport) == ("shop", "shop", "in_process")
        assert (row.kind, row.tool, row.code, row.is_error) == ("tool", "echo", "ok", False)
        assert row.arguments == {"text": row.correlation_id}
        assert "content" in str(row.result)


def test_one_bad_row_does_not_lose_its_batch(writer, settings, caplog):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    with refused("planted-bad"):
        with writer.held():
            call("one", "planted-bad", "two")

        assert told() == ["one", "two"]
    [line] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert line.name == "mcp_client_app.services.audit_rows"
    assert "'shop' could not be written: IntegrityError: " in line.getMessage()
    assert "planted" not in caplog.text, "databases quote the row"


def test_a_bad_row_alone_is_logged_and_the_next_ones_are_written(writer, caplog):
    with refused("bad"):
        call("bad")
        assert told() == []
        call("good")
        assert told() == ["good"]
    assert caplog.text.count("could not be written") == 1


def test_a_user_who_is_gone_meanwhile_is_told_by_name(writer, make_user):
    staying, leaving = make_user("call_tool"), make_user("call_tool")
    with writer.held():
        call("one", user=staying)
        call("two", user=leaving)
        name = leaving.username
        User.objects.get(pk=leaving.pk).delete()

    assert told() == ["one", "two"]
    one, two = ToolCall.objects.order_by("started_at")
    assert (one.user, one.username) == (staying, staying.username)
    assert (two.user, two.username) == (None, name)


def test_a_full_queue_makes_calls_write_their_own_rows(writer, settings):
    settings.MCP_CLIENT_AUDIT_QUEUE_SIZE = 2
    with writer.held():
        call("taken")
        assert writer.is_there.wait(SECONDS)
        call("queued", "queued too")
        assert written() == []

        call("own", "own too")
        assert written() == ["own", "own too"]

    assert told() == ["taken", "queued", "queued too", "own", "own too"]


def test_refusals_are_written_at_once(writer, the_shop, make_user):
    nobody = make_user()
    the_shop.blocked_tools = ["price"]
    the_shop.save()
    with writer.held():
        with pytest.raises(PermissionDeniedError):
            call("nobody", user=nobody)
        with pytest.raises(ToolBlockedError):
            services.call_tool("shop__price", {"article": "oak"}, correlation_id="blocked")
        assert written() == ["nobody", "blocked"]


def test_a_connection_that_broke_is_replaced(writer):
    writer.refusals = 1
    call("one", "two")

    assert told() == ["one", "two"]


def test_a_database_that_is_away_costs_rows_but_no_call_and_no_time(writer, caplog):
    writer.refusals = 4  # of the batch, and of the three rows that are tried
    with writer.held():
        call("one", "two", "three", "four", "five")

    assert told() == []
    assert caplog.text.count("could not be written: OperationalError: no such luck") == 3
    assert "The database is away: 2 more audit rows are lost." in caplog.text
    assert "a secret" not in caplog.text

    call("back")
    assert told() == ["back"]


def test_nothing_stays_after_a_flush(writer):
    call("one")

    assert told() == ["one"]
    assert [each.connection for each in writer.connections] == [None]
    call("two")
    assert told() == ["one", "two"], "and then it starts again"


def test_a_row_that_is_queued_needs_no_connection_of_the_caller(writer):
    connection.close()

    write_row(ToolCall(tool="echo", correlation_id="one"))

    assert connection.connection is None
    assert told() == ["one"]


def test_a_flush_waits_no_longer_than_told(writer):
    with writer.held():
        call("one")
        assert not services.flush_audit(0)
        assert writer.is_there.wait(SECONDS)
        assert not services.flush_audit(0.01)

    assert services.flush_audit(SECONDS)
    assert services.flush_audit(0), "there is nothing to wait for"


def test_a_flush_does_not_wait_for_rows_that_come_later(writer):
    """Else it would never end while others go on calling."""
    may_end = threading.Event()

    def add_another() -> None:
        if not may_end.is_set():
            write_row(ToolCall(tool="echo"))  # queued after the commit

    writer.after_insert = add_another
    call("one")
    try:
        assert services.flush_audit(SECONDS)
        assert "one" in written()
    finally:
        may_end.set()


def test_a_row_that_is_added_while_the_thread_starts_starts_no_other():
    """A collection of garbage may end a transaction anywhere, also within the writer."""
    seen: list[Entry] = []
    audit = AuditWriter(seen.extend)
    first, second = ("default", ToolCall(tool="first")), ("default", ToolCall(tool="second"))

    def add_another(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code is threading.Thread.start.__code__:
            sys.setprofile(None)
            assert audit.add(second)

    sys.setprofile(add_another)
    try:
        assert audit.add(first)
    finally:
        sys.setprofile(None)

    assert [thread.name for thread in threading.enumerate()].count(WRITER) == 1
    assert audit.flush(SECONDS)
    assert seen == [second, first]


@pytest.mark.anyio
async def test_a_loop_has_its_own_flush(the_shop):
    await services.acall_tool("shop__echo", {"text": "hi"}, correlation_id="hi")
    with pytest.raises(AsyncContextError, match="await aflush_audit"):
        services.flush_audit()

    assert await services.aflush_audit(SECONDS)

    assert await ToolCall.objects.acount() == 1
    await close_connections()


@pytest.mark.anyio
async def test_the_end_of_a_lifespan_writes_what_waits(the_shop):
    """uvicorn ends by the signal that it got: no other hook runs there."""
    await services.acall_tool("shop__echo", {"text": "hi"}, correlation_id="hi")
    mine = await sync_to_async(set_mcp_manager)(None)

    await aclose_mcp_manager()

    assert await ToolCall.objects.acount() == 1
    await sync_to_async(set_mcp_manager)(mine)
    await close_connections()


PRELUDE = """
import os, sys, threading
from django.conf import settings
from mcp_client_app import services
from mcp_client_app.models import ServerConfig, ToolCall
from mcp_client_app.services.audit_rows import write_row
from tests.stored import stored
settings.MCP_CLIENT_AUDIT_BATCH = True
def call(text):
    services.call_tool("peer__echo", {"text": text}, correlation_id=text)
"""


def run(code: str, *, before: str = "") -> None:
    run_process(PRELUDE + code, before=before)


@pytest.fixture
def peer() -> None:
    stored("peer")


@pytest.mark.usefixtures("peer")
class TestTheEndOfTheProcess:
    def test_all_rows_are_written(self):
        run("for number in range(30): call(str(number))")

        assert written() == [str(number) for number in range(30)]

    def test_rows_that_come_after_the_last_flush_are_written_by_their_calls(self):
        run("""
import atexit
from mcp_client_app.services import audit_rows
call("one")
# Exit hooks run from the last registered to the first: this one after all of the app's.
atexit.unregister(audit_rows._writer.close)
def late():
    call("two")
    assert not [thread for thread in threading.enumerate() if thread.name == "mcp-audit"]
atexit.register(late)
atexit.register(audit_rows._writer.close)
""")
        assert written() == ["one", "two"]

    def test_a_child_of_multiprocessing_writes_its_rows(self):
        run("""
import multiprocessing
from django.db import connections
call("parent")
assert services.flush_audit()
connections.close_all()
child = multiprocessing.get_context("fork").Process(target=call, args=["child"])
child.start()
child.join()
assert child.exitcode == 0
""")
        assert written() == ["parent", "child"]


@pytest.mark.usefixtures("peer")
def test_a_forked_child_leaves_the_rows_of_its_parent_to_it():
    run("""
from django.db import connections
from mcp_client_app.runtime import close_mcp_manager
from mcp_client_app.services import audit_writer
audit_writer.INTERVAL = 600  # all rows wait for a flush
for number in range(5): call(f"parent {number}")
assert not ToolCall.objects.exists()
connections.close_all()
child = os.fork()
if child == 0:
    call("child")
    close_mcp_manager()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert list(ToolCall.objects.values_list("correlation_id", flat=True)) == ["child"]
""")
    assert sorted(written()) == ["child", *(f"parent {number}" for number in range(5))]


def test_a_row_goes_to_the_database_that_the_router_names(tmp_path):
    run(f"""
from django.core.management import call_command
from django.db import connections
from django.test import override_settings
class Router:
    def db_for_read(self, model, **hints):
        return "tools" if model._meta.app_label == "mcp_client_app" else None
    db_for_write = db_for_read
    def allow_relation(self, *args, **hints): return True
router = Router()
connections.settings["tools"] = {{
    **connections.settings["default"], "ENGINE": "django.db.backends.sqlite3",
    "NAME": {str(tmp_path / "tools.sqlite3")!r}, "OPTIONS": {{"timeout": 20}},
}}
call_command("migrate", database="tools", verbosity=0)
with override_settings(DATABASE_ROUTERS=[router]):
    stored("peer")
    call("one"); call("two")
    assert services.flush_audit()
    assert ToolCall.objects.using("tools").count() == 2
    assert ToolCall.objects.using("tools").first().server.name == "peer"
    assert ToolCall.objects.using("default").count() == 0
""")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="other databases know no such refusal")
@pytest.mark.usefixtures("peer")
def test_a_row_bears_with_writes_of_others_in_between():
    """SQLite lets no transaction write that has read before the last write of another."""
    run("""
import sqlite3
from django.db import connection
connection.settings_dict["OPTIONS"] |= {"transaction_mode": "DEFERRED", "timeout": 5}
settings.MCP_CLIENT_AUDIT_BATCH = False
other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
def in_between(execute, sql, *rest):
    if sql.startswith("INSERT") and "toolcall" in sql:
        other.execute("UPDATE mcp_client_app_serverconfig SET label = label || 'x'")
    return execute(sql, *rest)
with connection.execute_wrapper(in_between):
    call("one")
other.close()
""")
    assert written() == ["one"]
