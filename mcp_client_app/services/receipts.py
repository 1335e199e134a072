"""Idempotency keys: a call that is sent twice runs once, and both times gets the same answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, router, transaction
from django.utils import timezone

from mcp_client_app.conf import app_settings
from mcp_client_app.exceptions import (
    CallInProgressError,
    KeyReusedError,
    MCPClientError,
    RequestTimeoutError,
)
from mcp_client_app.models import CallReceipt
from mcp_client_app.services.time_limits import longest_call

__all__ = ["claim_key"]

SETTLING = 60.0
"""Seconds that a call is given beyond its time limit to have its answer written down."""


def claim_key(user: Any, key: str, request: Mapping[str, Any]) -> CallReceipt:
    """Return the receipt of a user's key: a new one without an answer, or the settled one of a repeat.

    Whoever gets a new one makes the call and then either settles the receipt or, if the call
    is known not to have run, deletes it: then the key can be used again.

    Args:
        user: Who calls; keys of different users do not meet.
        key: Any text of at most ``MAX_KEY`` characters.
        request: What is asked for, as JSON.

    Raises:
        KeyReusedError: The key belongs to another request.
        CallInProgressError: The first call with this key has no answer yet.
        RequestTimeoutError: Nor will it get one: it should have been over for long. It may have run.
    """
    using = router.db_for_write(CallReceipt)
    receipts = CallReceipt.objects.using(using)
    receipts.expired().delete()
    fingerprint = _fingerprint(request)
    expires_at = timezone.now() + timedelta(seconds=app_settings.API_KEY_LIFETIME)
    try:
        with transaction.atomic(using=using):
            return receipts.create(user=user, key=key, fingerprint=fingerprint, expires_at=expires_at)
    except IntegrityError:
        found = receipts.filter(user=user, key=key).first()
    if found is None:
        raise CallInProgressError
    if found.fingerprint != fingerprint:
        raise KeyReusedError
    if not found.is_settled:
        raise _unanswered(found, request)
    return found


def _unanswered(receipt: CallReceipt, request: Mapping[str, Any]) -> MCPClientError:
    """Say what is known of a call without an answer: after its time limit its process must have died."""
    limit = longest_call(
        timeout=request.get("timeout"), server=request.get("server"), tool=str(request.get("name", ""))
    )
    # In seconds: a limit may be longer than any date allows.
    age = (timezone.now() - receipt.started_at).total_seconds()
    if limit is None or age < limit + SETTLING:
        return CallInProgressError()
    return RequestTimeoutError(
        "The call with this key has begun and was never answered; it may have run. "
        "Find out whether it has before you call again, with another key.",
        sent=True,
    )


def _fingerprint(request: Mapping[str, Any]) -> str:
    text = json.dumps(request, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
