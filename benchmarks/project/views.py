"""An endpoint that takes and gives the same JSON as a call of a tool, and calls nothing."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


class CallSerializer(serializers.Serializer[Any]):
    """What is asked for."""

    name = serializers.CharField(max_length=1000)
    arguments = serializers.DictField(required=False)
    server = serializers.CharField(max_length=40, required=False, allow_null=True)
    timeout = serializers.FloatField(required=False, allow_null=True)


class ResultSerializer(serializers.Serializer[Any]):
    """What is answered."""

    server = serializers.CharField()
    tool = serializers.CharField()
    is_error = serializers.BooleanField()
    text = serializers.CharField()
    content = serializers.ListField(child=serializers.DictField())
    structured = serializers.JSONField(allow_null=True)


class NoOpView(APIView):
    """Validates, and answers at once."""

    permission_classes = (IsAuthenticated,)

    def post(self, request: Request) -> Response:
        """Answer with what came in."""
        asked = CallSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        text = asked.validated_data["arguments"]["text"]
        result = {
            "server": "fast",
            "tool": "echo",
            "is_error": False,
            "text": text,
            "content": [{"type": "text", "text": text}],
            "structured": None,
        }
        return Response(ResultSerializer(result).data)
