"""``AgentRun``: one conversation of an agent, with its events and the ledger of its calls.

The rows are the whole state: any process can go on where another one stopped. Who works on a
run holds its lease; every write of a worker is conditional on still holding it.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models.agents import AgentConfig
from mcp_client_app.models.calls import new_correlation_id

__all__ = ["FINAL", "AgentEvent", "AgentRun", "AgentRunQuerySet", "RunCall"]

STATUSES = [
    (RunStatus.QUEUED.value, _("queued")),
    (RunStatus.RUNNING.value, _("running")),
    (RunStatus.AWAITING_APPROVAL.value, _("awaiting approval")),
    (RunStatus.AWAITING_INPUT.value, _("awaiting input")),
    (RunStatus.COMPLETED.value, _("completed")),
    (RunStatus.LIMIT_REACHED.value, _("limit reached")),
    (RunStatus.FAILED.value, _("failed")),
    (RunStatus.CANCELLED.value, _("cancelled")),
]
FINAL = tuple(status.value for status in RunStatus if status.is_final)
PAUSED = tuple(status.value for status in RunStatus if status.is_paused)


class AgentRunQuerySet(models.QuerySet["AgentRun"]):
    """Runs, by where they stand."""

    def unfinished(self) -> Self:
        """Keep the runs of which something is still to come."""
        return self.exclude(status__in=FINAL)

    def paused(self) -> Self:
        """Keep the runs that wait for people."""
        return self.filter(status__in=PAUSED)

    def abandoned(self, now: datetime | None = None) -> Self:
        """Keep the runs that nobody works on any more, or has not begun in time."""
        waiting = (RunStatus.QUEUED.value, RunStatus.RUNNING.value)
        return self.filter(status__in=waiting, lease_until__lt=now or timezone.now())

    def for_user(self, user: Any) -> Self:
        """Keep a user's own runs; all for None, and for those who may see the others' runs."""
        if user is None or user.has_perm("mcp_client_app.view_agentrun"):
            return self
        return self.filter(user_id=getattr(user, "pk", None), user__isnull=False)


class AgentRun(models.Model):
    """One run: prompt, state, answer."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    agent = models.ForeignKey(
        AgentConfig,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="runs",
        verbose_name=_("agent"),
    )
    agent_name = models.CharField(_("agent name"), max_length=100, help_text=_("As it was at the time."))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("user"),
    )
    username = models.CharField(
        _("user name"), max_length=255, blank=True, help_text=_("As it was at the time.")
    )
    prompt = models.TextField(_("prompt"), blank=True)
    deps = models.JSONField(_("values of the caller"), null=True, blank=True, default=None)
    correlation_id = models.CharField(_("correlation id"), max_length=64, default=new_correlation_id)

    status = models.CharField(_("status"), max_length=20, choices=STATUSES, default=RunStatus.QUEUED.value)
    code = models.CharField(
        _("reason"), max_length=40, blank=True, help_text=_("Why it ended as it did, for machines.")
    )
    detail = models.TextField(_("detail"), blank=True, help_text=_("Why it ended as it did, in a sentence."))
    text = models.TextField(_("answer"), blank=True)
    tool_rounds = models.PositiveIntegerField(_("rounds with tools"), default=0)
    usage = models.JSONField(_("usage"), default=dict, blank=True)
    messages = models.JSONField(
        _("messages"),
        default=list,
        blank=True,
        help_text=_("The conversation as of the last point from which it can go on."),
    )
    seconds_used = models.FloatField(_("time used"), default=0.0, help_text=_("Seconds, without pauses."))

    in_background = models.BooleanField(
        _("in the background"),
        default=False,
        help_text=_("Nobody waits for it: any process may go on with it."),
    )
    attempts = models.PositiveIntegerField(
        _("attempts"), default=0, help_text=_("How often it was begun since it last came to rest.")
    )
    lease_owner = models.CharField(_("worker"), max_length=100, blank=True)
    lease_until = models.DateTimeField(
        _("worker's lease"),
        null=True,
        blank=True,
        help_text=_("Until when it is let alone, running or queued."),
    )
    event_count = models.PositiveBigIntegerField(_("events"), default=0, editable=False)
    cancel_requested_at = models.DateTimeField(_("cancelling asked for"), null=True, blank=True)

    created_at = models.DateTimeField(_("created"), default=timezone.now)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    objects = AgentRunQuerySet.as_manager()

    class Meta:
        verbose_name = _("agent run")
        verbose_name_plural = _("agent runs")
        ordering = ("-created_at", "-pk")
        get_latest_by = "created_at"
        indexes: ClassVar = [
            models.Index(fields=("-created_at",), name="mcp_client_run_created_at"),
            models.Index(fields=("status", "lease_until"), name="mcp_client_run_lease"),
            models.Index(fields=("user", "-created_at"), name="mcp_client_run_user"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_name} {self.pk}"

    @property
    def state(self) -> RunStatus:
        """The status as a value of its type."""
        return RunStatus(self.status)


class AgentEvent(models.Model):
    """Something that happened in a run, in order; what an event stream replays."""

    run = models.ForeignKey(AgentRun, on_delete=models.CASCADE, related_name="events", verbose_name=_("run"))
    number = models.PositiveBigIntegerField(_("number"), help_text=_("Within the run, from 1, without gaps."))
    kind = models.CharField(_("kind"), max_length=40)
    data = models.JSONField(_("data"), default=dict, blank=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now)

    class Meta:
        verbose_name = _("event of a run")
        verbose_name_plural = _("events of runs")
        ordering = ("run", "number")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("run", "number"), name="mcp_client_event_number"),
        ]

    def __str__(self) -> str:
        return f"{self.number}: {self.kind}"


class RunCall(models.Model):
    """One call of a run, written down before it is sent: after a crash it says what may have happened."""

    class Status(models.TextChoices):
        """What is known of the call."""

        STARTED = "started", _("started")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        UNKNOWN = "unknown", _("unknown")

    run = models.ForeignKey(AgentRun, on_delete=models.CASCADE, related_name="calls", verbose_name=_("run"))
    call_id = models.CharField(_("call id"), max_length=200, help_text=_("As the model's provider named it."))
    server_name = models.CharField(_("server name"), max_length=40, blank=True)
    tool = models.CharField(_("tool"), max_length=255)
    fingerprint = models.CharField(_("fingerprint"), max_length=64, help_text=_("Of tool and arguments."))
    arguments = models.JSONField(_("arguments"), default=dict, blank=True)
    is_safe = models.BooleanField(
        _("safe to repeat"), default=False, help_text=_("Trusted annotations say that repeating is harmless.")
    )
    status = models.CharField(_("status"), max_length=10, choices=Status.choices, default=Status.STARTED)
    code = models.CharField(_("outcome"), max_length=40, blank=True)
    result = models.JSONField(
        _("result"), null=True, blank=True, default=None, help_text=_("As the model read it.")
    )
    started_at = models.DateTimeField(_("started"), default=timezone.now)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
        verbose_name = _("call of a run")
        verbose_name_plural = _("calls of runs")
        ordering = ("run", "started_at", "pk")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("run", "call_id"), name="mcp_client_run_call"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} ({self.call_id})"
