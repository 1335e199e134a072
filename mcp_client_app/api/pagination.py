"""Pages: ``{"count", "next", "previous", "results"}``, and partial lists with the errors beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.pagination import PageNumberPagination
from rest_framework.response import Response

__all__ = ["Pages", "PartialPages"]


class Pages(PageNumberPagination):
    """Numbered pages, whatever the project's default is."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000


class PartialPages(Pages):
    """Pages of what could be listed, and why the rest could not."""

    errors: Mapping[str, Any] = {}
    """Server name to ``{"code", "detail", ...}``; set by the view before it answers."""

    def get_paginated_response(self, data: Any) -> Response:
        response = super().get_paginated_response(data)
        response.data["errors"] = dict(self.errors)
        return response

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        described = super().get_paginated_response_schema(schema)
        described["required"] = [*described.get("required", []), "errors"]
        described["properties"]["errors"] = {
            "type": "object",
            "description": "The servers that could not be asked, and why.",
            "additionalProperties": {"$ref": "#/components/schemas/ServerError"},
        }
        return described
