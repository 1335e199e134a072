"""Errors, as the schema describes them; ``api.errors`` makes them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

__all__ = ["ErrorSerializer", "ServerErrorSerializer"]


class ErrorSerializer(serializers.Serializer[Any]):
    """The one form of all failures. What else an error knows stands beside these."""

    code = serializers.CharField(help_text="Stable, for machines.")
    detail = serializers.CharField(help_text="One sentence for people.")
    server = serializers.CharField(allow_null=True, help_text="The server it is about, if any.")
    fields = serializers.DictField(  # type: ignore[assignment]  # an error's own "fields", not the serializer's
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="With the code 'invalid': messages by field.",
    )


class ServerErrorSerializer(serializers.Serializer[Any]):
    """Why one server is missing in a partial answer."""

    code = serializers.CharField()
    detail = serializers.CharField()
