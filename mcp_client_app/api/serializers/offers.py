"""What servers offer. Each item says whether it can be used now, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

__all__ = [
    "OfferSerializer",
    "PromptInfoSerializer",
    "ResourceInfoSerializer",
    "ResourceTemplateInfoSerializer",
    "ToolInfoSerializer",
]


class OfferSerializer(serializers.Serializer[Any]):
    """An item of any kind. The context gives ``errors`` of servers that cannot be reached, by name."""

    server = serializers.CharField()
    available = serializers.SerializerMethodField(help_text="Whether the server can be used now.")
    reason = serializers.SerializerMethodField(help_text="Why it cannot; empty if it can.")

    def get_available(self, item: Any) -> bool:
        return item.server not in self._errors

    def get_reason(self, item: Any) -> str:
        return str(self._errors.get(item.server, ""))

    @property
    def _errors(self) -> Mapping[str, Exception]:
        errors: Mapping[str, Exception] = self.context.get("errors", {})
        return errors


class ToolAnnotationsSerializer(serializers.Serializer[Any]):
    """Hints about a tool: claims of the server, never a guarantee."""

    title = serializers.CharField(allow_null=True)
    read_only = serializers.BooleanField(allow_null=True)  # type: ignore[assignment]  # a field, not the option
    destructive = serializers.BooleanField(allow_null=True)
    idempotent = serializers.BooleanField(allow_null=True)
    open_world = serializers.BooleanField(allow_null=True)


class ToolInfoSerializer(OfferSerializer):
    """One tool of one server."""

    name = serializers.CharField(help_text="As the server calls it.")
    public_name = serializers.CharField(help_text="As models and `tools/call/` call it: unique.")
    title = serializers.CharField(allow_null=True)
    description = serializers.CharField(allow_null=True)
    input_schema = serializers.DictField()
    output_schema = serializers.DictField(allow_null=True)
    annotations = ToolAnnotationsSerializer()
    icons = serializers.ListField(child=serializers.DictField())
    meta = serializers.DictField(allow_null=True)
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="What was mended or left out when it was read."
    )


class ResourceInfoSerializer(OfferSerializer):
    """One resource of one server."""

    uri = serializers.CharField()
    name = serializers.CharField()
    title = serializers.CharField(allow_null=True)
    description = serializers.CharField(allow_null=True)
    mime_type = serializers.CharField(allow_null=True)
    size = serializers.IntegerField(allow_null=True)
    annotations = serializers.DictField(allow_null=True)
    meta = serializers.DictField(allow_null=True)


class ResourceTemplateInfoSerializer(OfferSerializer):
    """One template for URIs of resources (RFC 6570)."""

    uri_template = serializers.CharField()
    name = serializers.CharField()
    title = serializers.CharField(allow_null=True)
    description = serializers.CharField(allow_null=True)
    mime_type = serializers.CharField(allow_null=True)
    annotations = serializers.DictField(allow_null=True)
    meta = serializers.DictField(allow_null=True)


class PromptArgumentSerializer(serializers.Serializer[Any]):
    """One argument of a prompt."""

    name = serializers.CharField()
    description = serializers.CharField(allow_null=True)
    required = serializers.BooleanField()  # type: ignore[assignment]  # a field, not the option


class PromptInfoSerializer(OfferSerializer):
    """One prompt of one server."""

    name = serializers.CharField()
    title = serializers.CharField(allow_null=True)
    description = serializers.CharField(allow_null=True)
    arguments = PromptArgumentSerializer(many=True)
    meta = serializers.DictField(allow_null=True)
