"""Who may use an endpoint: signed in, with one of the permissions that the viewset names for the action.

This refuses before a body is read, and hides forms of the browsable API. It is not what
protects: the services ask for the same permissions again, also where a project has put
classes of its own in the place of this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from mcp_client_app.api.errors import MissingPermission
from mcp_client_app.services.permissions import may

if TYPE_CHECKING:
    from rest_framework.views import APIView

__all__ = ["ActionPermission"]


class ActionPermission(BasePermission):
    """Asks for one of ``view.required[view.action]``; an action without an entry needs signing in only."""

    def has_permission(self, request: Request, view: APIView | Any) -> bool:
        """Refuse, naming the permission.

        Raises:
            MissingPermission: The user has none of them.
        """
        if not request.user.is_authenticated:
            return False
        required = getattr(view, "required", {}).get(getattr(view, "action", None), ())
        if required and not any(may(request.user, permission) for permission in required):
            raise MissingPermission(required[0])
        return True
