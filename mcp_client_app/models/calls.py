"""``ToolCall``: the audit row of one call. It outlives the user, the agent and the server that it names."""

from __future__ import annotations

import uuid
from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mcp_client_app.datatypes import Transport
from mcp_client_app.models.servers import ServerConfig

__all__ = ["ToolCall", "new_correlation_id"]


def new_correlation_id() -> str:
    """Return a random id, for a call that comes without one.

    Migrations refer to this function: never move or rename it.
    """
    return uuid.uuid4().hex


class ToolCallQuerySet(models.QuerySet["ToolCall"]):
    """Calls, by what became of them."""

    def succeeded(self) -> Self:
        """Keep the calls that returned a result."""
        return self.filter(is_error=False)

    def failed(self) -> Self:
        """Keep the calls that did not, and those whose tool reported a failure."""
        return self.filter(is_error=True)


class ToolCall(models.Model):
    """One call: who, what, when, how long, how it ended. Arguments and result only if the settings say so."""

    class Kind(models.TextChoices):
        """What was called."""

        TOOL = "tool", _("tool")
        RESOURCE = "resource", _("resource")
        PROMPT = "prompt", _("prompt")
        COMPLETION = "completion", _("completion")

    OK: ClassVar = "ok"
    """The ``code`` of a call that succeeded."""

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
    agent = models.CharField(
        _("agent"), max_length=100, blank=True, help_text=_("As it was called at the time.")
    )
    server = models.ForeignKey(
        ServerConfig,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="calls",
        verbose_name=_("MCP server"),
    )
    server_name = models.CharField(_("server name"), max_length=40, help_text=_("As it was at the time."))
    kind = models.CharField(_("kind"), max_length=20, choices=Kind.choices, default=Kind.TOOL)
    tool = models.CharField(
        _("tool"),
        max_length=255,
        help_text=_("Name of the tool or prompt, or URI of the resource; cut if longer."),
    )
    transport = models.CharField(_("transport"), max_length=20, default=Transport.STDIO.value)
    started_at = models.DateTimeField(_("started"), default=timezone.now)
    duration_ms = models.PositiveBigIntegerField(_("duration"), default=0, help_text=_("Milliseconds."))
    code = models.CharField(
        _("outcome"), max_length=40, default=OK, help_text=_("'ok', 'tool_failed' or the code of an error.")
    )
    is_error = models.BooleanField(_("failed"), default=False)
    request_size = models.PositiveBigIntegerField(
        _("size of the arguments"), default=0, help_text=_("Bytes.")
    )
    result_size = models.PositiveBigIntegerField(_("size of the result"), default=0, help_text=_("Bytes."))
    correlation_id = models.CharField(_("correlation id"), max_length=64, default=new_correlation_id)
    arguments = models.JSONField(_("arguments"), null=True, blank=True, default=None)
    result = models.JSONField(_("result"), null=True, blank=True, default=None)

    objects = ToolCallQuerySet.as_manager()

    class Meta:
        verbose_name = _("tool call")
        verbose_name_plural = _("tool calls")
        ordering = ("-started_at", "-pk")
        get_latest_by = "started_at"
        indexes: ClassVar = [
            models.Index(fields=("-started_at",), name="mcp_client_call_started_at"),
            models.Index(fields=("server_name", "-started_at"), name="mcp_client_call_server"),
            models.Index(fields=("correlation_id",), name="mcp_client_call_correlation"),
        ]
        permissions: ClassVar = [("call_tool", _("Can call tools of MCP servers"))]

    def __str__(self) -> str:
        return f"{self.server_name}: {self.tool}"
