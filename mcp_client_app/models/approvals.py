"""``Approval``: a call that waits for a person, or a question of a server that one has to answer.

Bound to the exact call by a fingerprint, good for one use, and only for a time. Whoever decides
or uses one does it by one conditional ``UPDATE``, which one of many can win.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mcp_client_app.models.agents import AgentConfig
from mcp_client_app.models.runs import AgentRun

__all__ = ["Approval", "ApprovalQuerySet"]


class ApprovalQuerySet(models.QuerySet["Approval"]):
    """Approvals, by whether they wait."""

    def pending(self, now: datetime | None = None) -> Self:
        """Keep those that can still be decided."""
        return self.filter(status=Approval.Status.PENDING, expires_at__gt=now or timezone.now())

    def unsettled(self) -> Self:
        """Keep those that are still to be decided, or to be used."""
        return self.filter(status__in=UNSETTLED)

    def overdue(self, now: datetime | None = None) -> Self:
        """Keep those that nobody decided, or used, in time, and that still have to be told so."""
        return self.unsettled().filter(expires_at__lte=now or timezone.now())

    def settle(self, status: str, **columns: Any) -> int:
        """Give the unsettled ones their last status, and forget what was kept to be sent."""
        return self.unsettled().update(
            **{"status": status, "open_key": None, "answers": None, "request_state": "", **columns}
        )

    def for_user(self, user: Any) -> Self:
        """Keep a user's own; all for None, and for those who may decide for others."""
        if user is None or user.has_perm("mcp_client_app.decide_approval"):
            return self
        return self.filter(user_id=getattr(user, "pk", None), user__isnull=False)


class Approval(models.Model):
    """One question to a person, and what became of it."""

    class Kind(models.TextChoices):
        """What is asked."""

        APPROVAL = "approval", _("approval of a call")
        INPUT = "input", _("input for a server")

    class Status(models.TextChoices):
        """What became of it."""

        PENDING = "pending", _("pending")
        APPROVED = "approved", _("approved")
        DENIED = "denied", _("denied")
        ANSWERED = "answered", _("answered")
        USED = "used", _("used")
        EXPIRED = "expired", _("expired")
        CANCELLED = "cancelled", _("cancelled")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices, default=Kind.APPROVAL)
    run = models.ForeignKey(
        AgentRun,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="approvals",
        verbose_name=_("run"),
        help_text=_("Empty for a single call."),
    )
    agent = models.ForeignKey(
        AgentConfig,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="approvals",
        verbose_name=_("agent"),
    )
    agent_name = models.CharField(_("agent name"), max_length=100, help_text=_("As it was at the time."))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("asked for by"),
    )
    username = models.CharField(_("user name"), max_length=255, blank=True)
    call_id = models.CharField(_("call id"), max_length=200, blank=True)
    server_name = models.CharField(_("server name"), max_length=40)
    tool = models.CharField(_("tool"), max_length=255)
    arguments = models.JSONField(
        _("arguments"),
        default=dict,
        blank=True,
        help_text=_("As the model gave them, without fixed ones."),
    )
    fingerprint = models.CharField(_("fingerprint"), max_length=64, help_text=_("Of tool and arguments."))
    requests = models.JSONField(
        _("questions"), default=dict, blank=True, help_text=_("What the server asks for, by key.")
    )
    request_state = models.TextField(_("state of the server"), blank=True, editable=False)
    schema = models.JSONField(
        _("schema"),
        null=True,
        blank=True,
        default=None,
        help_text=_("Of the tool's arguments, without fixed ones; what edited arguments are held to."),
    )
    fixed_names = models.JSONField(_("names of fixed arguments"), default=list, blank=True, editable=False)
    open_key = models.CharField(
        _("key"),
        max_length=64,
        null=True,
        blank=True,
        unique=True,
        editable=False,
        help_text=_("Of the call while it waits or may be made: nobody is asked twice about the same one."),
    )

    status = models.CharField(_("status"), max_length=10, choices=Status.choices, default=Status.PENDING)
    edited_arguments = models.JSONField(_("edited arguments"), null=True, blank=True, default=None)
    answers = models.JSONField(
        _("answers"),
        null=True,
        blank=True,
        default=None,
        editable=False,
        help_text=_("By key; deleted once they have been sent."),
    )
    reason = models.TextField(
        _("reason"), blank=True, help_text=_("The model reads it if the call is denied.")
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("decided by"),
    )
    decided_by_name = models.CharField(_("name of who decided"), max_length=255, blank=True)
    decided_at = models.DateTimeField(_("decided"), null=True, blank=True)
    used_at = models.DateTimeField(_("used"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    expires_at = models.DateTimeField(_("expires"))

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        verbose_name = _("approval")
        verbose_name_plural = _("approvals")
        ordering = ("-created_at", "-pk")
        indexes: ClassVar = [
            models.Index(fields=("-created_at",), name="mcp_client_approval_created"),
            models.Index(fields=("status", "expires_at"), name="mcp_client_approval_status"),
            models.Index(fields=("run", "call_id"), name="mcp_client_approval_call"),
        ]
        permissions: ClassVar = [("decide_approval", _("Can approve or deny calls of other users' runs"))]

    def __str__(self) -> str:
        return f"{self.tool} ({self.get_status_display()})"

    @property
    def is_expired(self) -> bool:
        """Whether its time is over."""
        return self.expires_at <= timezone.now()

    @property
    def standing(self) -> Approval.Status:
        """The status as it is now, also before anybody has written down that the time is over."""
        is_overdue = self.status in UNSETTLED and self.is_expired
        return self.Status.EXPIRED if is_overdue else self.Status(self.status)

    @property
    def is_pending(self) -> bool:
        """Whether it can still be decided."""
        return self.standing == self.Status.PENDING

    @property
    def is_input(self) -> bool:
        """Whether it is a question of a server, to be answered rather than approved."""
        return self.kind == self.Kind.INPUT


UNSETTLED = (Approval.Status.PENDING, Approval.Status.APPROVED, Approval.Status.ANSWERED)
"""Some use is still to come."""
