"""``CallReceipt``: the answer to a call that came with an idempotency key, so that a repeat gets the same."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = ["MAX_KEY", "CallReceipt"]

MAX_KEY = 200


class CallReceiptQuerySet(models.QuerySet["CallReceipt"]):
    """Receipts, by whether they still count."""

    def expired(self, now: datetime | None = None) -> Self:
        """Keep the receipts whose time is over."""
        return self.filter(expires_at__lt=now or timezone.now())


class CallReceipt(models.Model):
    """One key of one user. Without an answer: the call has begun, and may have run.

    The answer is kept as the bytes that were sent: a database might change or refuse JSON
    that came from a server.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", verbose_name=_("user")
    )
    key = models.CharField(_("key"), max_length=MAX_KEY)
    fingerprint = models.CharField(
        _("fingerprint"), max_length=64, help_text=_("Of the request: the key is good for no other one.")
    )
    status = models.PositiveSmallIntegerField(_("HTTP status"), null=True, blank=True)
    answer = models.BinaryField(_("answer"), null=True, blank=True)
    started_at = models.DateTimeField(_("started"), default=timezone.now)
    expires_at = models.DateTimeField(_("expires"))

    objects = CallReceiptQuerySet.as_manager()

    class Meta:
        verbose_name = _("call receipt")
        verbose_name_plural = _("call receipts")
        ordering = ("-started_at",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("user", "key"), name="mcp_client_receipt_key"),
        ]
        indexes: ClassVar = [models.Index(fields=("expires_at",), name="mcp_client_receipt_expires_at")]

    def __str__(self) -> str:
        return self.key

    @property
    def is_settled(self) -> bool:
        """Whether there is an answer."""
        return self.status is not None

    def settle(self, status: int, answer: bytes) -> None:
        """Keep the answer."""
        self.status, self.answer = status, answer
        self.save(update_fields=["status", "answer"])
