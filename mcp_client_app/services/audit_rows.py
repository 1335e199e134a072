"""Writes audit rows so that they outlive whatever becomes of the caller's transaction.

Outside of a transaction a row is written at once. Within one it waits for the end: after a
commit it is written in the same thread, after a rollback by a thread of ours. Writing at
once over another connection would be worse: SQLite would then refuse the caller's own
writes, and a lock that the caller holds on the user's row would stop both.

With ``MCP_CLIENT_AUDIT_BATCH`` that thread writes nearly all rows, many at once.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Sequence
from typing import Final

from asgiref.sync import sync_to_async
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connections,
    router,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.conf import app_settings
from mcp_client_app.models import ServerConfig, ToolCall
from mcp_client_app.runtime import after_close
from mcp_client_app.services.audit_writer import PATIENCE, AuditWriter, Entry

logger = logging.getLogger(__name__)

__all__ = ["aflush_audit", "flush", "flush_audit", "log_failure", "write_row"]

_AWAY: Final = (OperationalError, InterfaceError)
GIVE_UP: Final = 3
"""So many rows that fail one after another for want of the database: it is away, and so are the others."""


def write_row(row: ToolCall, *, at_once: bool = False) -> None:
    """Write a row, or queue it, now or once the transaction that is open in this thread has ended.

    Within a ``TestCase`` it is written into the test's transaction.

    Args:
        row: Not saved yet.
        at_once: It is not queued, whatever the settings say.

    Raises:
        Exception: It cannot be written now.
    """
    using = router.db_for_write(ToolCall)
    connection = transaction.get_connection(using)
    blocks = getattr(connection, "atomic_blocks", ())
    if any(getattr(block, "_from_testcase", False) for block in blocks):
        _save(row, using)
    elif connection.in_atomic_block:
        transaction.on_commit(_AtTheEnd(row, using, at_once), using=using, robust=True)
    elif _commits_by_itself(connection):
        _save_or_queue(row, using, at_once)
    else:
        # The project manages its transactions by hand: nobody will tell when this one ends.
        _queue(row, using)


def _commits_by_itself(connection: BaseDatabaseWrapper) -> bool:
    # Not asked by get_autocommit(), which connects: a row that is queued needs no connection here.
    if connection.connection is None:
        return bool(connection.settings_dict["AUTOCOMMIT"])
    return connection.autocommit


def flush_audit(timeout: float = PATIENCE) -> bool:
    """Wait until the audit rows that wait in this process are written; returns whether they are.

    Rows wait with ``MCP_CLIENT_AUDIT_BATCH``, and shortly after a rollback. At the end of a
    process this is done anyway.

    Args:
        timeout: Seconds to wait.
    """
    forbid_running_loop("flush_audit")
    return flush(timeout)


async def aflush_audit(timeout: float = PATIENCE) -> bool:
    """Async twin of ``flush_audit``."""
    return await sync_to_async(flush, thread_sensitive=False)(timeout)


class _AtTheEnd:
    """Writes a row when the open transaction ends, in either way.

    Django has a hook for the commit alone. After a rollback, of the transaction or of a
    savepoint, it drops the hooks of what was rolled back: this object dies uncalled.
    """

    def __init__(self, row: ToolCall, using: str, at_once: bool) -> None:
        self._row: ToolCall | None = row
        self._using = using
        self._at_once = at_once

    def __call__(self) -> None:
        row, self._row = self._row, None
        if row is None:
            return
        try:
            _save_or_queue(row, self._using, self._at_once)
        except Exception as error:  # noqa: BLE001 - told; Django would quote the row, or fail to name this hook
            log_failure(row, error)

    def __del__(self) -> None:
        if self._row is None or sys.is_finalizing():
            return
        try:
            if transaction.get_connection(self._using).in_atomic_block:
                # Only a savepoint was rolled back.
                again = _AtTheEnd(self._row, self._using, self._at_once)
                transaction.on_commit(again, using=self._using, robust=True)
            else:
                # Django is in the midst of the rollback: this connection is of no use yet.
                _queue(self._row, self._using)
        except Exception:
            logger.exception("An audit row could not be written after a rollback.")


def _save_or_queue(row: ToolCall, using: str, at_once: bool) -> None:
    is_queued = (
        not at_once
        and app_settings.AUDIT_BATCH
        and _writer.add((using, row), limit=app_settings.AUDIT_QUEUE_SIZE)
    )
    if not is_queued:
        _save(row, using)


def _queue(row: ToolCall, using: str) -> None:
    """Leave a row to the writer, also beyond its limit: this thread cannot write it."""
    if not _writer.add((using, row)):
        logger.error("The audit row of a call of %r is lost: the process ends.", row.server_name)


# Into the database ---------------------------------------------------------------------


def _save(row: ToolCall, using: str) -> None:
    try:
        _insert([row], using)
    except IntegrityError:
        # The user or the server is gone meanwhile; their names tell enough.
        row.pk, row.user, row.server = None, None, None
        row.save(using=using, force_insert=True)


def _insert(rows: Sequence[ToolCall], using: str) -> None:
    # Looked up before the transaction: one that began by reading may not write to SQLite any
    # more once another process has written.
    _refer_to_servers(rows, using)
    with transaction.atomic(using=using):
        if len(rows) == 1:
            rows[0].save(using=using, force_insert=True)
        else:
            ToolCall.objects.using(using).bulk_create(rows)


def _refer_to_servers(rows: Sequence[ToolCall], using: str) -> None:
    found: dict[str, ServerConfig | None] = {"": None}
    servers = ServerConfig.objects.using(using).only("name", "transport")
    for row in rows:
        name = row.server_name
        if name not in found:
            found[name] = servers.named(name).first()
        if (server := found[name]) is not None:
            row.server, row.server_name, row.transport = server, server.name, server.transport


def _save_batch(entries: Sequence[Entry]) -> None:
    by_database: dict[str, list[ToolCall]] = {}
    for using, row in entries:
        by_database.setdefault(using, []).append(row)
    for using, rows in by_database.items():
        try:
            _insert(rows, using)
        except Exception as error:  # noqa: BLE001 - whatever it is, most of these rows may be sound
            if len(rows) > 1:
                reason = type(error).__name__
                logger.warning("%d audit rows (%s) are written one by one.", len(rows), reason)
            if isinstance(error, _AWAY):
                connections[using].close()  # the next attempt gets a new one
            _save_each(rows, using)


def _save_each(rows: Sequence[ToolCall], using: str) -> None:
    failures = 0
    for number, row in enumerate(rows, start=1):
        row.pk = None  # the one that the batch gave it was rolled back
        try:
            _save(row, using)
        except _AWAY as error:
            log_failure(row, error)
            connections[using].close()
            failures += 1
            if failures == GIVE_UP and number < len(rows):
                logger.error("The database is away: %d more audit rows are lost.", len(rows) - number)
                return
        except Exception as error:  # noqa: BLE001 - told, and the next row has its chance
            log_failure(row, error)
            failures = 0
        else:
            failures = 0


def log_failure(row: ToolCall, error: Exception) -> None:
    """Log that a row could not be written; what databases quote of it stays out."""
    logger.error(
        "The audit row of a call of %r could not be written: %s: %s",
        row.server_name,
        type(error).__name__,
        str(error).partition("\n")[0] or "no reason given",
        exc_info=None if isinstance(error, DatabaseError | InterfaceError) else error,
    )


_writer = AuditWriter(_save_batch)
"""This process's."""


def flush(timeout: float = PATIENCE) -> bool:
    """``flush_audit``, on an event loop, too."""
    return _writer.flush(timeout)


after_close(_writer.finish)
os.register_at_fork(after_in_child=_writer.forget)
atexit.register(_writer.close)
