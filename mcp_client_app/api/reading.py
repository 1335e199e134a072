"""How bodies are read: lenient towards nothing that could not be stored, never failing with a 500."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http.request import RawPostDataException
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser
from rest_framework.request import Request

from mcp_client_app import json_codec
from mcp_client_app.api.errors import RequestTooLarge

__all__ = ["ScrubbingJSONParser", "require_acceptable_size"]


class ScrubbingJSONParser(JSONParser):
    """JSON as REST framework reads it; lone surrogates, which no database takes, are replaced.

    As deep as ours may be, and no deeper: it comes back in answers, and these are kept.
    """

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        refusal = ParseError("The JSON text is nested too deeply.")
        try:
            value = super().parse(stream, media_type, parser_context)
        except RecursionError as error:
            raise refusal from error
        if json_codec.is_too_deep(value):
            raise refusal
        return json_codec.replace_surrogates(value)


def require_acceptable_size(request: Request) -> None:
    """Read the body, unless it is too large: Django checks that only for those who ask for it whole.

    Raises:
        RequestTooLarge: It exceeds ``DATA_UPLOAD_MAX_MEMORY_SIZE``.
        RequestDataTooBig: As above, found by Django.
    """
    limit: int | None = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    try:
        body = request._request.body  # noqa: SLF001 (documented by REST framework)
    except RawPostDataException:
        return  # a middleware has read it already, within the limits for forms
    # A body that came in pieces told no length beforehand.
    if len(body) > (limit or math.inf):
        raise RequestTooLarge
