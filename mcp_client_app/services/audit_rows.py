"""Writes audit rows so that they outlive whatever becomes of the caller's transaction.

Outside of a transaction a row is written at once. Within one it waits for the end: after a
commit it is written in the same thread, after a rollback by a thread of ours. Writing at
once over another connection would be worse: SQLite would then refuse the caller's own
writes, and a lock that the caller holds on the user's row would stop both.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading

from django.db import IntegrityError, router, transaction

from mcp_client_app.client.callbacks import CallbackExecutor
from mcp_client_app.models import ServerConfig, ToolCall
from mcp_client_app.runtime.options import with_database_closed

logger = logging.getLogger(__name__)

__all__ = ["flush", "write_row"]

PATIENCE = 10.0
"""Seconds that the end of the process waits for rows."""
QUEUE_SIZE = 10_000


def write_row(row: ToolCall) -> None:
    """Write a row now, or once the transaction that is open in this thread has ended.

    Within a ``TestCase`` it is written into the test's transaction.

    Raises:
        Exception: It cannot be written now.
    """
    using = router.db_for_write(ToolCall)
    connection = transaction.get_connection(using)
    blocks = getattr(connection, "atomic_blocks", ())
    if any(getattr(block, "_from_testcase", False) for block in blocks):
        _save(row, using)
    elif connection.in_atomic_block:
        transaction.on_commit(_AtTheEnd(row, using), using=using, robust=True)
    elif connection.get_autocommit():
        _save(row, using)
    else:
        # The project manages its transactions by hand: nobody will tell when this one ends.
        _save_in_background(row, using)


class _AtTheEnd:
    """Writes a row when the open transaction ends, in either way.

    Django has a hook for the commit alone. After a rollback, of the transaction or of a
    savepoint, it drops the hooks of what was rolled back: this object dies uncalled.
    """

    def __init__(self, row: ToolCall, using: str) -> None:
        self._row: ToolCall | None = row
        self._using = using

    def __call__(self) -> None:
        row, self._row = self._row, None
        if row is not None:
            _save(row, self._using)

    def __del__(self) -> None:
        if self._row is None or sys.is_finalizing():
            return
        try:
            if transaction.get_connection(self._using).in_atomic_block:
                # Only a savepoint was rolled back.
                transaction.on_commit(_AtTheEnd(self._row, self._using), using=self._using, robust=True)
            else:
                # Django is in the midst of the rollback: this connection is of no use yet.
                _save_in_background(self._row, self._using)
        except Exception:
            logger.exception("An audit row could not be written after a rollback.")


def _save(row: ToolCall, using: str) -> None:
    try:
        _insert(row, using)
    except IntegrityError:
        # The user or the server is gone meanwhile; their names tell enough.
        row.pk, row.user, row.server = None, None, None
        row.save(using=using, force_insert=True)


def _insert(row: ToolCall, using: str) -> None:
    with transaction.atomic(using=using):
        found = ServerConfig.objects.using(using).named(row.server_name).first() if row.server_name else None
        if found is not None:
            row.server, row.server_name, row.transport = found, found.name, found.transport
        row.save(using=using, force_insert=True)


# The background ------------------------------------------------------------------------

_lock = threading.Lock()
_executor: CallbackExecutor | None = None


def flush(timeout: float = PATIENCE) -> bool:
    """Wait until the rows handed to the background have been written; returns whether they have."""
    executor = _executor
    return executor is None or executor.flush(timeout)


def _save_in_background(row: ToolCall, using: str) -> None:
    global _executor
    with _lock:
        if _executor is None:
            _executor = CallbackExecutor(threads=1, queue_size=QUEUE_SIZE, around=with_database_closed)
        executor = _executor
    executor.post("audit", lambda: _save(row, using))


def _after_fork() -> None:
    """In a forked child: the parent writes its own rows."""
    global _lock, _executor
    _lock, _executor = threading.Lock(), None


os.register_at_fork(after_in_child=_after_fork)
atexit.register(flush)
