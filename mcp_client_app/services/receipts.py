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
from mcp_client_app.exceptions import CallInProgressError, KeyReusedError
from mcp_client_app.models import CallReceipt

__all__ = ["claim_key"]


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
        CallInProgressError: The first call with this key has no answer yet, or died without one.
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
    if found is None or (found.fingerprint == fingerprint and not found.is_settled):
        raise CallInProgressError
    if found.fingerprint != fingerprint:
        raise KeyReusedError
    return found


def _fingerprint(request: Mapping[str, Any]) -> str:
    text = json.dumps(request, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
