"""A call of a tool as it was ordered: run at most once per idempotency key, its answer kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from rest_framework import serializers
from rest_framework.request import Request

from mcp_client_app import json_codec, services
from mcp_client_app.api.errors import Answer, answer_to
from mcp_client_app.api.serializers.calls import ToolResultSerializer
from mcp_client_app.datatypes import Progress, defer_input
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import CallReceipt
from mcp_client_app.models.calls import new_correlation_id
from mcp_client_app.models.receipts import MAX_KEY

__all__ = [
    "CORRELATION_HEADER",
    "KEY_HEADER",
    "REPLAYED_HEADER",
    "ToolCallOrder",
    "correlation_id",
    "idempotency_key",
    "with_input",
]

CORRELATION_HEADER: Final = "X-Correlation-ID"
KEY_HEADER: Final = "Idempotency-Key"
REPLAYED_HEADER: Final = "Idempotent-Replayed"

_NEVER_RAN: Final = frozenset(
    {
        "ambiguous_tool",
        "approval_invalid",
        "approval_required",
        "auth_required",
        "bad_tool_name",
        "busy",
        "configuration",
        "not_connected",
        "permission_denied",
        "server_unavailable",
        "throttled",
        "tool_blocked",
        "unknown_agent",
        "unknown_run",
        "unknown_server",
        "unknown_tool",
    }
)
"""Codes of failures before anything was sent: the key can be used again."""

_CANCELLED: Final = {
    "code": "cancelled",
    "detail": "The client went away, and the call was cancelled; it may have run.",
    "server": None,
    "outcome": "unknown",
}


def correlation_id(request: HttpRequest | Request) -> str:
    """Return the id of the client's request, for the audit row; a new one if it brings none of sound form."""
    given = request.headers.get(CORRELATION_HEADER, "")
    return given if re.fullmatch(r"[\w.:-]{1,64}", given, re.ASCII) else new_correlation_id()


def idempotency_key(request: Request, body: dict[str, Any]) -> str | None:
    """Take the key of a request out of its body; the header wins.

    Raises:
        ValidationError: The header holds no key.
    """
    in_body = body.pop("idempotency_key", None)
    key: str | None = request.headers.get(KEY_HEADER, in_body)
    if key is not None and (not 0 < len(key) <= MAX_KEY or not key.isprintable()):
        raise serializers.ValidationError(
            {"idempotency_key": [f"Give a key of 1 to {MAX_KEY} printable characters."]}
        )
    return key


def with_input(body: dict[str, Any]) -> dict[str, Any]:
    """Return what is asked of the services: what the client accepts, it is asked for itself."""
    others = {name: value for name, value in body.items() if name != "accept_input"}
    return {**others, "on_input": dict.fromkeys(body.get("accept_input") or (), defer_input)}


@dataclass
class ToolCallOrder:
    """One call. Make it with ``place``; then it has been run before, or is to be run now."""

    user: Any
    call: dict[str, Any]
    """What is asked for: name, arguments, server, timeout, what input is accepted or given."""
    correlation_id: str
    receipt: CallReceipt | None = None

    @classmethod
    def place(cls, request: Request, body: dict[str, Any], **more: Any) -> Self:
        """Take an order; ``more`` are further fields of it, and of what a key is good for.

        Raises:
            ValidationError: The header holds no key.
            KeyReusedError, CallInProgressError: See these.
        """
        key = idempotency_key(request, body)
        order = cls(request.user, body, correlation_id(request), **more)
        if key is not None:
            order.receipt = services.claim_key(request.user, key, {**body, **more})
        return order

    @property
    def kept(self) -> tuple[int, Any] | None:
        """Status and body of the answer, if the call was made before."""
        receipt = self.receipt
        if receipt is None or receipt.status is None:
            return None
        return receipt.status, json_codec.loads(bytes(receipt.answer or b"null"))

    def make(self, seconds: float | None) -> dict[str, Any]:
        """Make the call, within ``seconds``; return the body of the answer.

        Raises:
            MCPClientError: As the services do; it has been kept.
        """
        try:
            result = self._send(**self._limited(seconds), user=self.user, correlation_id=self.correlation_id)
        except Exception as error:
            self._failed(error)
            raise
        return self._succeeded(result)

    async def run(self, on_progress: Callable[[Progress], Any]) -> tuple[str, dict[str, Any]]:
        """Make the call and report its progress: the server's time limit holds, not the request's."""
        try:
            result = await self._asend(
                **with_input(self.call),
                user=self.user,
                on_progress=on_progress,
                correlation_id=self.correlation_id,
            )
        except asyncio.CancelledError:
            await sync_to_async(self._settle)(504, _CANCELLED)
            raise
        except MCPClientError as error:
            answer = await sync_to_async(self._failed)(error)
            return "error", {**answer.body, "status": answer.status}
        return "result", await sync_to_async(self._succeeded)(result)

    def _limited(self, seconds: float | None) -> dict[str, Any]:
        call = with_input(self.call)
        limit = services.call_limit(
            seconds, timeout=call.get("timeout"), server=call.get("server"), tool=call["name"]
        )
        return {**call, "timeout": limit}

    def _send(self, **call: Any) -> Any:
        return services.call_tool(**call)

    async def _asend(self, **call: Any) -> Any:
        return await services.acall_tool(**call)

    def _body(self, result: Any) -> dict[str, Any]:
        return dict(ToolResultSerializer(result, context={"correlation_id": self.correlation_id}).data)

    def _succeeded(self, result: Any) -> dict[str, Any]:
        body = self._body(result)
        self._keep(200, body, getattr(result, "error", None))
        return body

    def _failed(self, error: Exception) -> Answer:
        answer = answer_to(error)
        self._keep(answer.status, answer.body, error)
        return answer

    def _keep(self, status: int, body: dict[str, Any], error: Exception | None) -> None:
        """Keep the answer for a repeat, unless the call is known not to have run."""
        if error is None or _may_have_run(error):
            self._settle(status, body)
        elif self.receipt is not None:
            self.receipt.delete()

    def _settle(self, status: int, body: dict[str, Any]) -> None:
        if self.receipt is not None:
            self.receipt.settle(status, json_codec.dumps(body))


def _may_have_run(error: Exception) -> bool:
    if not isinstance(error, MCPClientError):
        return True
    return error.code not in _NEVER_RAN and error.details().get("outcome") != "not_sent"
