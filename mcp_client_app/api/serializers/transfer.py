"""Import and export of servers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

__all__ = ["ExportSerializer", "ImportReportSerializer", "ImportRequestSerializer"]


class ConfigField(serializers.JSONField):
    """The content of an ``mcp.json``: decoded, or its text."""

    def to_internal_value(self, data: Any) -> Any:
        """Accept an object or a text; what is in it, the import judges."""
        if not isinstance(data, str | dict):
            raise serializers.ValidationError("Give the content of an mcp.json: an object, or its text.")
        return data


class ImportRequestSerializer(serializers.Serializer[Any]):
    """Servers to import, in any dialect."""

    config = ConfigField(help_text="The content of an `mcp.json`: an object, or its text.")
    dry_run = serializers.BooleanField(default=False, help_text="Say what would happen, change nothing.")
    enable = serializers.BooleanField(
        required=False, allow_null=True, help_text="Force the servers on or off; null leaves that to them."
    )
    only = serializers.ListField(
        child=serializers.CharField(max_length=500),
        required=False,
        allow_null=True,
        help_text="Names to import, as in the file or ours; null = all.",
    )


class ImportEntrySerializer(serializers.Serializer[Any]):
    """What became, or would become, of one entry."""

    name = serializers.CharField()
    label = serializers.CharField(  # type: ignore[assignment]  # a field, not the option
        help_text="As it is called in the file."
    )
    action = serializers.ChoiceField(choices=["create", "update", "unchanged", "error"])
    changes = serializers.ListField(child=serializers.CharField())
    notices = serializers.ListField(child=serializers.CharField())
    error = serializers.CharField(allow_null=True)


class ImportReportSerializer(serializers.Serializer[Any]):
    """What became of each entry; one bad entry never sinks the others."""

    dry_run = serializers.BooleanField()
    entries = ImportEntrySerializer(many=True)
    created = serializers.ListField(child=serializers.CharField())
    updated = serializers.ListField(child=serializers.CharField())
    failed = serializers.ListField(child=serializers.CharField())


class ExportSerializer(serializers.Serializer[Any]):
    """An ``mcp.json``; literal secrets are null."""

    mcpServers = serializers.DictField(child=serializers.DictField())  # noqa: N815 (the format's own word)
