"""The audit row of each call: written at once, and kept although the caller's transaction is rolled back.

Arguments and results are stored only if the settings say so, then redacted and cut. A row
that cannot be written is logged; it never costs the call.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, router, transaction
from django.utils import timezone

from mcp_client_app import json_codec
from mcp_client_app.client.callbacks import CallbackExecutor
from mcp_client_app.conf import app_settings
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import ServerConfig, ToolCall
from mcp_client_app.models.calls import new_correlation_id
from mcp_client_app.runtime.options import with_database_closed
from mcp_client_app.services.redaction import redacted
from mcp_client_app.signals import tool_called

logger = logging.getLogger(__name__)
calls = logging.getLogger("mcp_client_app.calls")

__all__ = ["CallRecord", "flush"]

PATIENCE = 10.0
"""Seconds that a call waits for its row to be written by another thread."""


@dataclass
class CallRecord:
    """One call while it runs. ``finish`` writes the row."""

    kind: str
    tool: str
    server: str = ""
    """Filled in once the name is resolved; until then what the caller said."""
    user: Any = None
    agent: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    correlation_id: str = field(default_factory=new_correlation_id)
    started_at: Any = field(default_factory=timezone.now)
    _began: float = field(default_factory=time.monotonic)

    def finish(
        self, *, error: BaseException | None = None, failed: bool = False, result: Any = None, size: int = 0
    ) -> None:
        """Log the call, write its row, tell the signal's receivers."""
        code = _code(error, failed)
        duration = round((time.monotonic() - self._began) * 1000)
        calls.info(
            "%s %r of %r: %s in %d ms",
            self.kind,
            self.tool,
            self.server,
            code,
            duration,
            extra={
                "mcp_server": self.server,
                "mcp_tool": self.tool,
                "mcp_code": code,
                "mcp_duration_ms": duration,
                "correlation_id": self.correlation_id,
            },
        )
        if app_settings.AUDIT:
            _write(self._row(code, duration, result, size), self.server)
        tool_called.send_robust(
            sender=ToolCall,
            server=self.server,
            tool=self.tool,
            kind=self.kind,
            code=code,
            duration_ms=duration,
            user=self.user,
            correlation_id=self.correlation_id,
        )

    def _row(self, code: str, duration: int, result: Any, size: int) -> ToolCall:
        payloads = app_settings.AUDIT_PAYLOADS
        user = self.user if getattr(self.user, "pk", None) is not None else None
        return ToolCall(
            user_id=user.pk if user is not None else None,
            username=(user.get_username() if user is not None else "")[:255],
            agent=self.agent[:100],
            server_name=self.server[:40],
            kind=self.kind,
            tool=json_codec.scrub(self.tool)[:255],
            started_at=self.started_at,
            duration_ms=duration,
            code=code,
            is_error=code != ToolCall.OK,
            request_size=_size(self.arguments),
            result_size=size or _size(result),
            correlation_id=self.correlation_id[:64],
            arguments=redacted(self.arguments, self.server) if payloads else None,
            result=redacted(result, self.server) if payloads and result is not None else None,
        )


def _code(error: BaseException | None, failed: bool) -> str:
    if error is None:
        return "tool_failed" if failed else ToolCall.OK
    return error.code if isinstance(error, MCPClientError) else "cancelled"


def _size(value: Any) -> int:
    try:
        return len(json_codec.dumps(value)) if value else 0
    except (TypeError, ValueError):
        return 0


# Writing -----------------------------------------------------------------------------


def _write(row: ToolCall, server: str) -> None:
    using = router.db_for_write(ToolCall)
    connection = transaction.get_connection(using)
    if not _would_be_rolled_back(connection):
        _save(row, server, using)
        return
    # Within the caller's transaction the row would go with it: another connection has to write it.
    done = threading.Event()
    _executor().post("audit", lambda: _save_and_tell(row, server, using, done))
    if connection.vendor != "sqlite":
        done.wait(PATIENCE)
    # SQLite has one writer: ours waits for the caller's transaction to end, so nobody may wait for it.


def _would_be_rolled_back(connection: Any) -> bool:
    """Say whether a transaction of the project is open; the one around a TestCase does not count."""
    blocks = list(getattr(connection, "atomic_blocks", ()))
    if any(getattr(block, "_from_testcase", False) for block in blocks):
        return False
    return bool(connection.in_atomic_block)


def _save_and_tell(row: ToolCall, server: str, using: str, done: threading.Event) -> None:
    try:
        _save(row, server, using)
    finally:
        done.set()


def _save(row: ToolCall, server: str, using: str) -> None:
    try:
        with transaction.atomic(using=using, savepoint=True):
            found = ServerConfig.objects.using(using).filter(name=server).first()
            if found is not None:
                row.server, row.transport = found, found.transport
            row.save(using=using)
    except DatabaseError:
        logger.exception("The audit row of a call of %r could not be written.", server)


_lock = threading.Lock()
_background: CallbackExecutor | None = None
_pid = 0


def _executor() -> CallbackExecutor:
    global _background, _pid
    with _lock:
        if _background is None or _pid != os.getpid():
            _background = CallbackExecutor(threads=1, queue_size=10_000, around=with_database_closed)
            _pid = os.getpid()
        return _background


def flush(timeout: float = PATIENCE) -> bool:
    """Wait until the rows handed to the background have been written; returns whether they have."""
    return _background is None or _pid != os.getpid() or _background.flush(timeout)


atexit.register(flush)
