"""The part of the OpenAPI document about approvals; imported only where drf-spectacular is installed."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from mcp_client_app.api.approvals import ApprovalViewSet
from mcp_client_app.api.schema_parts import operation
from mcp_client_app.api.serializers.approvals import ApprovalQuerySerializer, ApprovalSerializer

__all__ = ["describe_approvals"]

APPROVAL_ID: Final = OpenApiParameter("id", str, OpenApiParameter.PATH, description="The approval's id.")

APPROVE: Final = [
    OpenApiExample("As it is", value={}, request_only=True),
    OpenApiExample(
        "With other arguments",
        value={"arguments": {"article": "tea", "count": 1}, "reason": "One is enough."},
        request_only=True,
    ),
]
DENY: Final = [OpenApiExample("With a reason", value={"reason": "Too dear."}, request_only=True)]
ANSWER: Final = [
    OpenApiExample(
        "A form filled in",
        value={"responses": {"colour": {"action": "accept", "content": {"colour": "red"}}}},
        request_only=True,
    ),
    OpenApiExample("No", value={"responses": {"colour": {"action": "decline"}}}, request_only=True),
]


def describe_approvals() -> None:
    """Describe the endpoints below ``approvals/``."""
    shown = ApprovalSerializer
    one: dict[str, Any] = {"errors": (404, 409), "parameters": [APPROVAL_ID]}
    operation(
        ApprovalViewSet,
        "list",
        "approvals_list",
        shown(many=True),
        errors=(400, 404),
        parameters=[ApprovalQuerySerializer],
    )
    operation(ApprovalViewSet, "retrieve", "approvals_get", shown, errors=(404,), parameters=[APPROVAL_ID])
    operation(ApprovalViewSet, "approve", "approvals_approve", shown, shown=APPROVE, **one)
    operation(ApprovalViewSet, "deny", "approvals_deny", shown, shown=DENY, **one)
    operation(ApprovalViewSet, "answer", "approvals_answer", shown, shown=ANSWER, **one)
