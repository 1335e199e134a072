"""The audit of calls: one row for each, a line in the log, a signal.

Arguments and results are stored only if the settings say so, then redacted and cut. A row
that cannot be written is logged; it never costs the call.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from mcp_client_app import json_codec
from mcp_client_app.conf import app_settings
from mcp_client_app.exceptions import MCPClientError, PermissionDeniedError, ToolBlockedError
from mcp_client_app.models import ToolCall
from mcp_client_app.models.calls import new_correlation_id
from mcp_client_app.runtime import started_manager
from mcp_client_app.services.audit_rows import log_failure, write_row
from mcp_client_app.services.redaction import redacted
from mcp_client_app.signals import tool_called

logger = logging.getLogger(__name__)
calls = logging.getLogger("mcp_client_app.calls")

__all__ = ["CallRecord"]

REFUSALS: Final = frozenset({PermissionDeniedError.code, ToolBlockedError.code})
"""Outcomes whose rows do not wait for others: who was refused something is to be seen at once."""


@dataclass
class CallRecord:
    """One call while it runs. ``finish`` writes the row."""

    kind: str
    tool: str
    server: str = ""
    """Until the name is resolved what the caller said, then the server's own name."""
    user: Any = None
    agent: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    correlation_id: str = field(default_factory=new_correlation_id)
    recorded_as: Callable[[str], str] = field(default=str, repr=False)
    """Gives the name under which a server is written down that errors call otherwise."""
    conceal: Callable[[Any], Any] = field(default=lambda value: value, repr=False)
    """Masks what is secret in the payloads beyond what the settings and the server's own secrets say."""
    started_at: datetime = field(default_factory=timezone.now)
    _began: float = field(default_factory=time.monotonic)

    def finish(self, *, error: BaseException | None = None, failed: bool = False, result: Any = None) -> None:
        """Log the call, write its row, tell the signal's receivers.

        Args:
            error: Why there is no result.
            failed: The tool itself reported a failure.
            result: What came back, in the wire's form.
        """
        code = _code(error, failed)
        duration = round((time.monotonic() - self._began) * 1000)
        self._log(code, duration)
        if app_settings.AUDIT:
            self._write(code, duration, result)
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

    def _write(self, code: str, duration: int, result: Any) -> None:
        try:
            row = self._row(code, duration, result)
        except Exception:
            logger.exception("The audit row of a call of %r could not be made.", self.server)
            return
        try:
            write_row(row, at_once=code in REFUSALS)
        except Exception as error:  # noqa: BLE001 - told; it never costs the call
            log_failure(row, error)

    def _log(self, code: str, duration: int) -> None:
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

    def _row(self, code: str, duration: int, result: Any) -> ToolCall:
        manager = started_manager()
        entry = manager.entry(self.server) if manager is not None and self.server else None
        if entry is not None:
            self.server = entry.name
        spec = entry.spec if entry is not None else None
        payloads = app_settings.AUDIT_PAYLOADS
        user = self.user if getattr(self.user, "pk", None) is not None else None
        return ToolCall(
            user_id=user.pk if user is not None else None,
            username=_text(user.get_username() if user is not None else "", 255),
            agent=_text(self.agent, 100),
            server_name=_text(self.server, 40),
            transport=entry.transport.value if entry is not None else "",
            kind=self.kind,
            tool=_text(self.tool, 255),
            started_at=self.started_at,
            duration_ms=duration,
            code=code,
            is_error=code != ToolCall.OK,
            request_size=_size(self.arguments),
            result_size=_size(result),
            correlation_id=_text(self.correlation_id, 64),
            arguments=redacted(self.conceal(self.arguments), spec) if payloads else None,
            result=redacted(self.conceal(result), spec) if payloads and result is not None else None,
        )


def _code(error: BaseException | None, failed: bool) -> str:
    if error is None:
        return "tool_failed" if failed else ToolCall.OK
    if isinstance(error, MCPClientError):
        return error.code
    is_interrupted = isinstance(error, asyncio.CancelledError) or not isinstance(error, Exception)
    return "cancelled" if is_interrupted else MCPClientError.code


def _text(value: str, limit: int) -> str:
    """Return a text that fits its column: callers choose these, and some databases refuse NUL."""
    return str(json_codec.scrub(str(value)))[:limit]


def _size(value: Any) -> int:
    try:
        return len(json_codec.dumps(value)) if value else 0
    except (TypeError, ValueError):
        return 0
