"""Stored servers: how they are shown, and what may be changed of them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mcp_client_app.api.serializers.numbers import SecondsField
from mcp_client_app.api.serializers.secrets import (
    SecretChangesField,
    StoredSecretSerializer,
    shown_secrets,
)
from mcp_client_app.api.serializers.states import ServerStatusSerializer, WorkerStateSerializer
from mcp_client_app.configuration.secrets import visible_url, without_secrets_json
from mcp_client_app.datatypes import ProtocolMode, Transport
from mcp_client_app.models import ServerConfig
from mcp_client_app.models.validation import STRICT_NAMES
from mcp_client_app.services.permissions import CHANGE, may

__all__ = ["NewServerConfigSerializer", "ServerChangesSerializer", "ServerConfigSerializer"]

SETTABLE = (
    "label",
    "description",
    "transport",
    "command",
    "args",
    "env",
    "cwd",
    "inherit_environment",
    "inherited_names",
    "url",
    "headers",
    "terminate_on_close",
    "in_process",
    "mode",
    "connect_timeout",
    "list_timeout",
    "call_timeout",
    "shutdown_timeout",
    "idle_timeout",
    "max_concurrency",
    "max_result_size",
    "auto_reconnect",
    "trust_annotations",
    "strict",
    "allowed_tools",
    "blocked_tools",
    "link",
    "enabled",
)
"""The fields that the API sets, in the order in which they are shown."""

TRANSPORTS = [transport.value for transport in Transport]
MODES = [mode.value for mode in ProtocolMode]
YEAR = 366 * 86_400


class ServerConfigSerializer(serializers.ModelSerializer[ServerConfig]):
    """A stored server, with how it stands in this process and in the others.

    The context gives ``statuses`` and ``workers``, both by name: one look for a whole page.
    """

    transport = serializers.ChoiceField(choices=TRANSPORTS)
    mode = serializers.ChoiceField(choices=MODES)
    source = serializers.ChoiceField(  # type: ignore[assignment]  # a field, not the option
        choices=ServerConfig.Source.values
    )
    args = serializers.ListField(child=serializers.CharField())
    inherited_names = serializers.ListField(child=serializers.CharField())
    strict = serializers.ListField(child=serializers.CharField())
    allowed_tools = serializers.ListField(child=serializers.CharField(), allow_null=True)
    blocked_tools = serializers.ListField(child=serializers.CharField())
    env = serializers.DictField(child=StoredSecretSerializer(), help_text="Keys only.")
    headers = serializers.DictField(child=StoredSecretSerializer(), help_text="Keys only.")
    url = serializers.CharField(help_text="Without path and query for users who may not change servers.")
    extra = serializers.DictField(help_text="Keys of an import that mean nothing here; no secrets.")
    read_only = serializers.BooleanField(source="is_read_only")  # type: ignore[assignment]  # as above
    status = ServerStatusSerializer(allow_null=True)
    workers = WorkerStateSerializer(many=True)

    class Meta:
        model = ServerConfig
        fields = (
            "name",
            *SETTABLE,
            "extra",
            "stopped",
            "source",
            "read_only",
            "revision",
            "created_at",
            "updated_at",
            "status",
            "workers",
        )
        read_only_fields = fields

    def to_representation(self, instance: ServerConfig) -> dict[str, Any]:
        """Give secrets as keys, and the URL as far as the user may see it."""
        user = getattr(self.context.get("request"), "user", None)
        url = instance.url if may(user, CHANGE) else visible_url(instance.url)
        shown = {
            "env": shown_secrets(instance.env),
            "headers": shown_secrets(instance.headers),
            "extra": without_secrets_json(dict(instance.extra)),
            "url": url,
        }
        told: dict[str, Any] = {}
        for field in self._readable_fields:
            name = str(field.field_name)
            if name == "status":
                status = self.context.get("statuses", {}).get(instance.name)
                told[name] = None if status is None else field.to_representation(status)
            elif name == "workers":
                told[name] = field.to_representation(self.context.get("workers", {}).get(instance.name, ()))
            elif name in shown:
                told[name] = shown[name]
            else:
                value = field.get_attribute(instance)
                told[name] = None if value is None else field.to_representation(value)
        return told


def _seconds(text: str) -> serializers.FloatField:
    return SecondsField(
        required=False, allow_null=True, min_value=0, max_value=YEAR, help_text=f"{text} Null = the default."
    )


def _texts(**kwargs: Any) -> serializers.ListField:
    child = serializers.CharField(trim_whitespace=False, allow_blank=kwargs.pop("allow_blank", False))
    return serializers.ListField(child=child, required=False, **kwargs)


class ServerChangesSerializer(serializers.ModelSerializer[ServerConfig]):
    """What is changed of a stored server; everything that is not given stays.

    ``env`` and ``headers``: a string sets a value, null removes the key, an object keeps the
    stored value. Keys that are not given stay, except with PUT.
    """

    name = serializers.CharField(
        required=False, max_length=40, help_text="A name never changes: leave it out or repeat it."
    )
    revision = serializers.IntegerField(
        required=False,
        min_value=0,
        help_text="The revision that you have seen; if there is a newer one, nothing is changed.",
    )
    args = _texts(allow_blank=True)
    inherited_names = _texts()
    strict = serializers.ListField(child=serializers.ChoiceField(choices=STRICT_NAMES), required=False)
    allowed_tools = _texts(allow_null=True, help_text="Names or patterns; null = all, [] = none.")
    blocked_tools = _texts(help_text="Names or patterns; they win over allowed ones.")
    env = SecretChangesField()
    headers = SecretChangesField()
    url = serializers.CharField(required=False, allow_blank=True, max_length=2048)
    command = serializers.CharField(required=False, allow_blank=True, max_length=1024, trim_whitespace=False)
    transport = serializers.ChoiceField(choices=TRANSPORTS, required=False)
    mode = serializers.ChoiceField(choices=MODES, required=False)
    link = serializers.ChoiceField(choices=["", "own", "stock"], required=False)
    connect_timeout = _seconds("For connecting; 0 = no limit.")
    list_timeout = _seconds("For listing; 0 = no limit.")
    call_timeout = _seconds("For calls; 0 = no limit.")
    shutdown_timeout = _seconds("For closing; 0 = no limit.")
    idle_timeout = _seconds("Until an unused process is stopped; 0 = never.")
    max_concurrency = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=1_000_000
    )
    max_result_size = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=2**53)

    class Meta:
        model = ServerConfig
        fields = ("name", *SETTABLE, "revision")


class NewServerConfigSerializer(ServerChangesSerializer):
    """A new server. The transport follows from the other fields if it is not given."""

    name = serializers.CharField(max_length=40, help_text="Letters, digits, '-' and '_'; it never changes.")
    revision = None  # type: ignore[assignment]  # REST framework's way to leave a field out

    class Meta:
        model = ServerConfig
        fields = ("name", *SETTABLE)
