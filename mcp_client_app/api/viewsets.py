"""What all endpoints share: settings, errors, permissions, the time limit of a request."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.signals import got_request_exception
from django.db import connections, transaction
from django.utils.module_loading import import_string
from rest_framework import exceptions as drf
from rest_framework.authentication import BaseAuthentication
from rest_framework.parsers import FormParser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from mcp_client_app.api.errors import answer_to
from mcp_client_app.api.pagination import Pages
from mcp_client_app.api.permissions import ActionPermission
from mcp_client_app.api.reading import ScrubbingJSONParser, require_acceptable_size
from mcp_client_app.conf import app_settings
from mcp_client_app.models import ServerConfig

logger = logging.getLogger(__name__)

__all__ = ["ConfiguredEndpoint", "MCPViewSet"]

SAFE = ("GET", "HEAD", "OPTIONS")


class ConfiguredEndpoint(APIView):
    """Classes from the settings, errors in the one form, and no answer that is kept."""

    def get_authenticators(self) -> list[BaseAuthentication]:
        return _instances(app_settings.API_AUTHENTICATION, api_settings.DEFAULT_AUTHENTICATION_CLASSES)

    def get_permissions(self) -> list[BasePermission]:
        return _instances(app_settings.API_PERMISSIONS, [ActionPermission])

    def get_throttles(self) -> list[BaseThrottle]:
        return _instances(app_settings.API_THROTTLES, api_settings.DEFAULT_THROTTLE_CLASSES)

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, drf.NotAuthenticated | drf.AuthenticationFailed):
            # 401 needs a challenge; authentication by session has none.
            challenge = self.get_authenticate_header(self.request)
            if not challenge:
                exc.status_code = 403
        else:
            challenge = ""
        answer = answer_to(exc)
        if challenge:
            answer.headers["WWW-Authenticate"] = challenge
        if not answer.is_expected:
            logger.error("A request to the REST API failed.", exc_info=exc)
            got_request_exception.send(sender=type(self), request=self.request)
        response = Response(answer.body, status=answer.status, headers=answer.headers)
        response.exception = True
        return response

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        response = super().finalize_response(request, response, *args, **kwargs)
        # States change without a revision: a kept answer would show old ones under a good ETag.
        response["Cache-Control"] = "no-store"
        return response


class MCPViewSet(ConfiguredEndpoint, GenericViewSet[Any]):
    """Base of all endpoints. ``required`` and ``serializers`` speak of actions by name."""

    required: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Action to permissions, one of which is needed; none named: being signed in is enough."""
    serializers: ClassVar[Mapping[str, type[BaseSerializer[Any]]]] = {}
    """Action to the serializer of its body, for reading it and for the forms of the browsable API."""
    pagination_class = Pages
    # Forms are for the browsable API; programs are told of JSON only.
    parser_classes = (ScrubbingJSONParser, FormParser)
    filter_backends = ()
    lookup_field = "name"
    ends_at: float | None = None

    @classmethod
    def as_view(cls, actions: Any = None, **initkwargs: Any) -> Any:
        """Return the view; it runs outside transactions: it may wait long, and what it did is done."""
        view: Any = super().as_view(actions, **initkwargs)
        for alias in connections:
            view = transaction.non_atomic_requests(using=alias)(view)
        return view

    # A request -------------------------------------------------------------------------

    def initialize_request(self, request: Any, *args: Any, **kwargs: Any) -> Request:
        seconds = app_settings.REQUEST_TIMEOUT
        self.ends_at = time.monotonic() + seconds if seconds else None
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if request.method not in SAFE:
            require_acceptable_size(request)
        super().initial(request, *args, **kwargs)

    def time_left(self) -> float | None:
        """Return the seconds until the request has to be answered; None if there is no limit."""
        # The services take 0 for "no limit".
        return None if self.ends_at is None else max(0.001, round(self.ends_at - time.monotonic(), 3))

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        # The browsable API asks for actions without a body, too.
        return self.serializers.get(self.action, Serializer)

    def get_queryset(self) -> Any:
        # The browsable API asks, too, for the sake of filter backends, of which there are none.
        return ServerConfig.objects.none()

    def body(self) -> dict[str, Any]:
        """Return the validated body of the request.

        Raises:
            ValidationError: REST framework's.
        """
        serializer = self.get_serializer(data=self.request.data)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def query(self, serializer: type[BaseSerializer[Any]]) -> dict[str, Any]:
        """Return the validated parameters of the URL; unknown ones are ignored.

        Raises:
            ValidationError: REST framework's.
        """
        parameters = serializer(data=self.request.query_params.dict())
        parameters.is_valid(raise_exception=True)
        return dict(parameters.validated_data)


def _instances(paths: list[str] | None, defaults: Any) -> list[Any]:
    classes = defaults if paths is None else [import_string(path.replace(":", ".")) for path in paths]
    return [each() for each in classes]
