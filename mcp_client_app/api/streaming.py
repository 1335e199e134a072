"""Answers that are streams of server-sent events: their form, their headers, and what they hold on to."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Any, ClassVar

from django.db import connections
from django.http import StreamingHttpResponse
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import json_codec
from mcp_client_app.api.viewsets import MCPViewSet

__all__ = [
    "EventStreamRenderer",
    "StreamingViewSet",
    "comment",
    "encoded",
    "let_go_of_database",
    "stream_response",
    "wants_stream",
]

KEEP_ALIVE = 10.0
"""Seconds of silence after which a comment is sent."""


class EventStreamRenderer(BaseRenderer):
    """Makes ``Accept: text/event-stream`` acceptable; what is said before a stream begins is JSON."""

    media_type = "text/event-stream"
    format = "events"
    charset = "utf-8"

    def render(self, data: Any, *args: Any, **kwargs: Any) -> bytes:
        return json_codec.dumps(data)


class StreamingViewSet(MCPViewSet):
    """Endpoints of which some answer with a stream if they are asked to."""

    streams: ClassVar[frozenset[str]] = frozenset()
    """The actions that do."""

    def get_renderers(self) -> list[BaseRenderer]:
        found = super().get_renderers()
        return [*found, EventStreamRenderer()] if self.action in self.streams else found

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        if not response.streaming and accepts_stream(request):
            # No stream has begun: this is an ordinary answer.
            request.accepted_renderer = JSONRenderer()
            request.accepted_media_type = JSONRenderer.media_type
        return super().finalize_response(request, response, *args, **kwargs)


def wants_stream(request: Request) -> bool:
    """Say whether the client has asked for events; HEAD asks for what comes before them."""
    return request.method != "HEAD" and accepts_stream(request)


def accepts_stream(request: Request) -> bool:
    """Say whether the client takes nothing but events."""
    return isinstance(getattr(request, "accepted_renderer", None), EventStreamRenderer)


def stream_response(events: AsyncIterable[bytes] | Iterable[bytes]) -> StreamingHttpResponse:
    """Return the answer that tells these events; under ASGI an asynchronous iterator, else a plain one."""
    response = StreamingHttpResponse(events, content_type="text/event-stream; charset=utf-8")
    # Known to nginx: without it, events wait in its buffer.
    response["X-Accel-Buffering"] = "no"
    # Django's GZipMiddleware would keep events until it has enough of them: it leaves alone what is encoded.
    response["Content-Encoding"] = "identity"
    return response


def encoded(name: str, body: Any, number: int | None = None) -> bytes:
    """Return an event; ``number`` is what a client gives as ``Last-Event-ID`` to go on after it."""
    # JSON holds no line break, so one data line is enough.
    head = b"" if number is None else b"id: %d\n" % number
    return head + b"event: " + name.encode() + b"\ndata: " + json_codec.dumps(body) + b"\n\n"


def comment(text: str) -> bytes:
    """Return what clients skip: it shows that the stream lives, and that the client does."""
    return b": " + text.encode() + b"\n\n"


def let_go_of_database() -> None:
    """Close the database connections of this thread, which has only to wait; not within a transaction."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
