"""The columns of a stored server.

A row says what an operator wants; whether the server can be reached is observed and kept
elsewhere. Values are stored raw: references to variables are filled in at connect time.
Values of ``env`` and ``headers`` are write-only for people.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_client_app import validators
from mcp_client_app.configuration.dialects import MAX_LABEL
from mcp_client_app.datatypes import ProtocolMode, Transport
from mcp_client_app.models.fields import SecretMapField
from mcp_client_app.models.named import NamedModel
from mcp_client_app.naming import MAX_SERVER_NAME

__all__ = ["ServerFields"]


class ServerFields(NamedModel):
    """All columns of ``ServerConfig``; rules and verbs build on this class, so that it knows none of them."""

    class Source(models.TextChoices):
        """Where the server is defined; only those of the database are edited."""

        DATABASE = "database", _("database")
        SETTINGS = "settings", _("settings")
        FILE = "file", _("file")

    TRANSPORTS: ClassVar = [
        (Transport.STDIO.value, _("stdio: a local process")),
        (Transport.STREAMABLE_HTTP.value, _("streamable HTTP")),
        (Transport.SSE.value, _("SSE: the older HTTP transport")),
        (Transport.IN_PROCESS.value, _("in this process")),
    ]
    MODES: ClassVar = [
        (ProtocolMode.AUTO.value, _("automatic")),
        (ProtocolMode.LEGACY.value, _("with handshake, up to 2025-11-25")),
        (ProtocolMode.MODERN.value, _("2026-07-28")),
    ]

    name = models.CharField(
        _("name"),
        max_length=MAX_SERVER_NAME,
        unique=True,
        validators=[validators.validate_server_name],
        help_text=_("Letters, digits, '-' and '_'; part of the names of its tools."),
        error_messages={"unique": _("A server of this name exists already.")},
    )
    label = models.CharField(
        _("label"), max_length=MAX_LABEL, blank=True, help_text=_("The name to show; any text.")
    )
    description = models.TextField(_("description"), blank=True)
    transport = models.CharField(
        _("transport"), max_length=20, choices=TRANSPORTS, default=Transport.STDIO.value
    )

    command = models.CharField(
        _("command"),
        max_length=1024,
        blank=True,
        validators=[validators.validate_command],
        help_text=_("One program, found on the PATH or by its path; no shell is used."),
    )
    args = models.JSONField(
        _("arguments"),
        default=list,
        blank=True,
        validators=[validators.validate_args],
        help_text=_("A list of strings."),
    )
    env = SecretMapField(
        _("environment"),
        validators=[validators.validate_env],
        help_text=_("Values are never shown again; they may refer to variables."),
    )
    cwd = models.CharField(_("working directory"), max_length=1024, blank=True)
    inherit_environment = models.BooleanField(
        _("inherit the environment"),
        default=True,
        help_text=_("Pass PATH, HOME and the like on; otherwise only the variables given here."),
    )
    inherited_names = models.JSONField(
        _("further inherited variables"),
        default=list,
        blank=True,
        validators=[validators.validate_variable_names],
        help_text=_("Names of variables of this process to pass on."),
    )

    url = models.CharField(
        _("URL"),
        max_length=2048,
        blank=True,
        validators=[validators.validate_url],
        help_text=_("It may refer to variables."),
    )
    headers = SecretMapField(
        _("headers"),
        validators=[validators.validate_headers],
        help_text=_("Values are never shown again; they may refer to variables."),
    )
    terminate_on_close = models.BooleanField(
        _("end the session on closing"), default=True, help_text=_("For servers that keep sessions.")
    )
    in_process = models.CharField(
        _("server in this process"),
        max_length=100,
        blank=True,
        help_text=_("A key of MCP_CLIENT_IN_PROCESS_SERVERS."),
    )

    mode = models.CharField(_("protocol"), max_length=20, choices=MODES, default=ProtocolMode.AUTO.value)
    connect_timeout = models.FloatField(
        _("time limit for connecting"),
        null=True,
        blank=True,
        validators=[validators.validate_seconds],
        help_text=_("Seconds; 0 = no limit, empty = the default."),
    )
    list_timeout = models.FloatField(
        _("time limit for listing"), null=True, blank=True, validators=[validators.validate_seconds]
    )
    call_timeout = models.FloatField(
        _("time limit for calls"), null=True, blank=True, validators=[validators.validate_seconds]
    )
    shutdown_timeout = models.FloatField(
        _("time limit for closing"), null=True, blank=True, validators=[validators.validate_seconds]
    )
    idle_timeout = models.FloatField(
        _("idle time"),
        null=True,
        blank=True,
        validators=[validators.validate_seconds],
        help_text=_("Seconds until an unused process is stopped; 0 = never."),
    )
    max_concurrency = models.PositiveIntegerField(
        _("calls at once"), null=True, blank=True, help_text=_("Further calls wait; 0 = no limit.")
    )
    max_result_size = models.PositiveBigIntegerField(
        _("largest result"), null=True, blank=True, help_text=_("Bytes; longer text is cut. 0 = no limit.")
    )
    auto_reconnect = models.BooleanField(
        _("reconnect"), default=True, help_text=_("Connect again at the next use after a loss.")
    )
    trust_annotations = models.BooleanField(
        _("trust annotations"),
        default=False,
        help_text=_("Repeat a lost call once if the tool says that this is harmless."),
    )
    strict = models.JSONField(
        _("strict options"), default=list, blank=True, help_text=_("Names of checks that are off by default.")
    )
    allowed_tools = models.JSONField(
        _("allowed tools"),
        null=True,
        blank=True,
        default=None,
        validators=[validators.validate_tool_patterns],
        help_text=_("Names or patterns; null = all, [] = none."),
    )
    blocked_tools = models.JSONField(
        _("blocked tools"),
        default=list,
        blank=True,
        validators=[validators.validate_tool_patterns],
        help_text=_("Names or patterns; they win over allowed ones."),
    )
    link = models.CharField(
        _("link"), max_length=200, blank=True, help_text=_("'own' or 'stock'; empty = the default.")
    )

    enabled = models.BooleanField(_("enabled"), default=True, help_text=_("Whether the server may be used."))
    stopped = models.BooleanField(
        _("stopped"),
        default=False,
        editable=False,
        help_text=_("Disconnected by hand, until connected again."),
    )
    source = models.CharField(
        _("source"), max_length=20, choices=Source.choices, default=Source.DATABASE, editable=False
    )
    may_reference_environment = models.BooleanField(
        _("may refer to all variables"),
        default=False,
        editable=False,
        help_text=_("Saved by somebody who may refer to the environment."),
    )
    extra = SecretMapField(
        _("other keys"), help_text=_("Keys of an import that mean nothing here; an export gives them back.")
    )

    class Meta:
        abstract = True

    @property
    def is_read_only(self) -> bool:
        """Whether the server is defined in the settings or the file, by the operator of this site."""
        return self.source in (self.Source.SETTINGS, self.Source.FILE)
