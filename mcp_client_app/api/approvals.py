"""``approvals/``: calls that wait for a person, and questions of servers."""

from __future__ import annotations

from typing import ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import services
from mcp_client_app.api.serializers.approvals import (
    AnswerSerializer,
    ApprovalQuerySerializer,
    ApprovalSerializer,
    ApproveSerializer,
    DenySerializer,
)
from mcp_client_app.api.viewsets import MCPViewSet
from mcp_client_app.models import Approval
from mcp_client_app.services.approval_decisions import approvals_for
from mcp_client_app.services.permissions import CALL, DECIDE, RUN_AGENT

__all__ = ["ApprovalViewSet"]

PEOPLE: Final = (RUN_AGENT, CALL, DECIDE)
"""Who has calls of his own, or decides about others'. Which ones, the services know."""


class ApprovalViewSet(MCPViewSet):
    """Your own; with ``decide_approval`` everybody's."""

    lookup_field = "id"
    required: ClassVar = dict.fromkeys(("list", "retrieve", "approve", "deny", "answer"), PEOPLE)
    serializers: ClassVar = {"approve": ApproveSerializer, "deny": DenySerializer, "answer": AnswerSerializer}

    def list(self, request: Request) -> Response:
        """List what waits for you, and what was decided; newest first."""
        rows = self.paginate_queryset(approvals_for(request.user, **self.query(ApprovalQuerySerializer)))
        return self.get_paginated_response(ApprovalSerializer(rows or [], many=True).data)

    def retrieve(self, request: Request, id: str) -> Response:  # noqa: A002 (as in the address)
        """Show a call that waits for a person, or a question of a server."""
        return _shown(services.get_approval(id, request.user))

    def approve(self, request: Request, id: str) -> Response:  # noqa: A002 (as above)
        """Allow a call, once, as it was asked for or with other arguments.

        The run goes on when nothing of it is open any more. A single call has to be sent again, with
        the `approval`.
        """
        return _shown(services.approve(id, user=request.user, **self.body()))

    def deny(self, request: Request, id: str) -> Response:  # noqa: A002 (as above)
        """Forbid a call. The model is told, with the reason."""
        return _shown(services.deny(id, user=request.user, **self.body()))

    def answer(self, request: Request, id: str) -> Response:  # noqa: A002 (as above)
        """Answer what a server asks in the course of a call, or decline to."""
        return _shown(services.answer_input(id, user=request.user, **self.body()))


def _shown(row: Approval) -> Response:
    # Elsewhere than in a list the data would be taken for the form to fill in.
    return Response(dict(ApprovalSerializer(row).data))
