"""What the processes of this site have observed: which of them live, and how their connections stand.

Written on transitions and once a minute, read by the admin and the API. A call never
depends on these rows.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, Final, Self

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mcp_client_app.datatypes import SHARED, ConnectionState
from mcp_client_app.models.servers import ServerConfig

__all__ = ["WORKER_LIFETIME", "ServerState", "WorkerProcess"]

WORKER_LIFETIME: Final = timedelta(seconds=180)
"""A worker that was not seen for this long is taken for dead; three missed reports."""


class WorkerProcessQuerySet(models.QuerySet["WorkerProcess"]):
    """Workers, by whether they live."""

    def alive(self, now: datetime | None = None) -> Self:
        """Keep the workers that were seen lately."""
        return self.filter(seen_at__gte=(now or timezone.now()) - WORKER_LIFETIME)

    def gone(self, now: datetime | None = None) -> Self:
        """Keep the workers that were not."""
        return self.filter(seen_at__lt=(now or timezone.now()) - WORKER_LIFETIME)


class WorkerProcess(models.Model):
    """A process that holds connections."""

    host = models.CharField(_("host"), max_length=255)
    pid = models.PositiveBigIntegerField(_("process id"))
    started_at = models.DateTimeField(_("started"), default=timezone.now)
    seen_at = models.DateTimeField(_("last seen"), default=timezone.now)

    objects = WorkerProcessQuerySet.as_manager()

    class Meta:
        verbose_name = _("worker process")
        verbose_name_plural = _("worker processes")
        ordering = ("host", "pid", "started_at")
        constraints: ClassVar = [
            # Containers may share host names and process ids; the start tells them apart.
            models.UniqueConstraint(fields=("host", "pid", "started_at"), name="mcp_client_worker_process"),
        ]
        indexes: ClassVar = [models.Index(fields=("seen_at",), name="mcp_client_worker_seen_at")]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"

    def is_alive(self, now: datetime | None = None) -> bool:
        """Say whether the process was seen lately."""
        return self.seen_at >= (now or timezone.now()) - WORKER_LIFETIME

    def touch(self) -> None:
        """Note that the process lives."""
        self.seen_at = timezone.now()
        self.save(update_fields=["seen_at"])


class ServerStateQuerySet(models.QuerySet["ServerState"]):
    """States, by whether they count."""

    def current(self, now: datetime | None = None) -> Self:
        """Keep the states whose worker lives."""
        return self.filter(worker__seen_at__gte=(now or timezone.now()) - WORKER_LIFETIME)


class ServerState(models.Model):
    """How one server stands in one process, for one principal. Free of secrets."""

    STATES: ClassVar = [
        (ConnectionState.IDLE.value, _("idle")),
        (ConnectionState.CONNECTING.value, _("connecting")),
        (ConnectionState.READY.value, _("ready")),
        (ConnectionState.LOST.value, _("lost")),
        (ConnectionState.BACKING_OFF.value, _("backing off")),
        (ConnectionState.FAILED.value, _("failed")),
        (ConnectionState.NEEDS_AUTH.value, _("needs authorization")),
        (ConnectionState.STOPPED.value, _("stopped")),
    ]

    worker = models.ForeignKey(
        WorkerProcess, on_delete=models.CASCADE, related_name="states", verbose_name=_("worker process")
    )
    server = models.ForeignKey(
        ServerConfig, on_delete=models.CASCADE, related_name="states", verbose_name=_("MCP server")
    )
    principal = models.CharField(
        _("principal"),
        max_length=100,
        default=SHARED,
        help_text=_("Whose credentials the connection carries."),
    )
    state = models.CharField(_("state"), max_length=20, choices=STATES, default=ConnectionState.IDLE.value)
    reason = models.TextField(_("reason"), blank=True)
    code = models.CharField(_("error code"), max_length=40, blank=True)
    since = models.DateTimeField(_("since"), default=timezone.now)
    retry_at = models.DateTimeField(_("next try"), null=True, blank=True)
    failures = models.PositiveIntegerField(_("failures in a row"), default=0)
    revision = models.PositiveBigIntegerField(_("revision of the server"), default=0)
    link = models.CharField(_("link"), max_length=200, blank=True)
    protocol_version = models.CharField(_("protocol version"), max_length=40, blank=True)
    server_name = models.CharField(_("name told by the server"), max_length=200, blank=True)
    server_version = models.CharField(_("version told by the server"), max_length=200, blank=True)
    tools = models.PositiveIntegerField(_("tools"), default=0)
    resources = models.PositiveIntegerField(_("resources"), default=0)
    resource_templates = models.PositiveIntegerField(_("resource templates"), default=0)
    prompts = models.PositiveIntegerField(_("prompts"), default=0)
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    objects = ServerStateQuerySet.as_manager()

    class Meta:
        verbose_name = _("server state")
        verbose_name_plural = _("server states")
        ordering = ("server", "worker", "principal")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=("worker", "server", "principal"), name="mcp_client_state_connection"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.server}: {self.state}"
