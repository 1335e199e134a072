"""``runs/``: runs of agents, looked at, followed, cancelled, answered. ``api.agent_runs`` begins them."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.http.response import HttpResponseBase
from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import services
from mcp_client_app.agents import api as agents
from mcp_client_app.api.orders import CORRELATION_HEADER
from mcp_client_app.api.run_streams import run_stream_response
from mcp_client_app.api.serializers.runs import (
    AgentRunSerializer,
    AgentRunSummarySerializer,
    EventQuerySerializer,
    RunEventListSerializer,
    RunInputSerializer,
    RunQuerySerializer,
)
from mcp_client_app.api.streaming import StreamingViewSet, wants_stream
from mcp_client_app.exceptions import RunStateError, UnknownRunError
from mcp_client_app.models import AgentRun, Approval
from mcp_client_app.services.permissions import CHANGE_RUN, DECIDE, RUN_AGENT, VIEW_RUN
from mcp_client_app.services.run_feed import feed

__all__ = ["LAST_EVENT_HEADER", "RunAnswers", "RunViewSet"]

LAST_EVENT_HEADER: Final = "Last-Event-ID"


class RunAnswers(StreamingViewSet):
    """How runs are answered."""

    def answer_with(self, run: AgentRun, status: int | None = None) -> Response:
        """Answer with a run: 202 if something is still to come."""
        if status is None:
            status = 200 if run.state.is_final else 202
        return Response(_whole(run), status=status, headers=self.headers_of(run))

    def headers_of(self, run: AgentRun) -> dict[str, str]:
        namespace = self.request.resolver_match.namespace if self.request.resolver_match else "mcp_client"
        place = reverse(f"{namespace}:run-detail", kwargs={"id": str(run.pk)}) + "/"
        return {"Location": self.request.build_absolute_uri(place), CORRELATION_HEADER: run.correlation_id}


class RunViewSet(RunAnswers):
    """Runs of all agents: one's own, and others' for whoever may see them."""

    required: ClassVar = {
        "list": (RUN_AGENT, VIEW_RUN),
        "retrieve": (RUN_AGENT, VIEW_RUN),
        "events": (RUN_AGENT, VIEW_RUN),
        "cancel": (RUN_AGENT, CHANGE_RUN),
        "answer": (RUN_AGENT, DECIDE),
    }
    serializers: ClassVar = {"answer": RunInputSerializer}
    streams = frozenset({"events"})
    lookup_field = "id"

    def list(self, request: Request) -> Response:
        """List your runs, and those of others if you may see them; latest first."""
        runs = services.list_runs(request.user, **self.query(RunQuerySerializer))
        return self.get_paginated_response(
            AgentRunSummarySerializer(self.paginate_queryset(runs) or [], many=True).data
        )

    def retrieve(self, request: Request, id: str) -> Response:  # noqa: A002 (the name in the address)
        """Return a run with its conversation, and with what it waits for."""
        return self.answer_with(services.get_run(id, request.user), status=200)

    def events(self, request: Request, id: str) -> HttpResponseBase:  # noqa: A002 (as above)
        """Tell what has happened in a run.

        With `Accept: text/event-stream` it is told as it happens, until the run is over.
        """
        query = self.query(EventQuerySerializer)
        after, limit = _after(request, query["after"]), query["limit"]
        run = services.get_run(id, request.user)
        if wants_stream(request):
            stream = request._request, feed.watch(run.pk, listens=False)  # noqa: SLF001 (documented by REST framework)
            return run_stream_response(*stream, number=after)
        found = services.events_after(run.pk, after, limit=limit + 1)
        shown = found[:limit]
        return Response(
            RunEventListSerializer(
                {
                    "status": run.status,
                    "last": shown[-1].number if shown else after,
                    "more": len(found) > limit,
                    "results": shown,
                }
            ).data
        )

    def cancel(self, request: Request, id: str) -> Response:  # noqa: A002 (as above)
        """Cancel a run: at once if nobody works on it, else as soon as its worker hears of it.

        A call that has been sent may still take effect. Cancelling twice does no harm.
        """
        return self.answer_with(agents.cancel_agent_run(id, user=request.user))

    def answer(self, request: Request, id: str) -> Response:  # noqa: A002 (as above)
        """Answer what a server has asked; the run goes on once nothing is open any more."""
        body = self.body()
        run = services.get_run(id, request.user)
        question = _question(run, body.get("approval"), request.user)
        services.answer_input(question, user=request.user, responses=body["responses"])
        return self.answer_with(services.get_run(run.pk, request.user))


def _whole(run: AgentRun) -> dict[str, Any]:
    waits = services.approval_state(run).pending if run.state.is_paused else ()
    return dict(AgentRunSerializer(run, context={"approvals": waits}).data)


def _question(run: AgentRun, named: Any, user: Any) -> Any:
    """Return the question that is meant: the one that is named, or the only one."""
    if named is not None:
        if services.get_approval(named, user).run_id != run.pk:
            raise UnknownRunError(f"The run asks no question {str(named)!r}.")
        return named
    asked = [each.pk for each in services.approval_state(run).pending if each.kind == Approval.Kind.INPUT]
    if not asked:
        raise RunStateError(
            "The run asks for no input.", run=str(run.pk), status=run.status, allowed=["awaiting_input"]
        )
    if len(asked) > 1:
        raise serializers.ValidationError(
            {"approval": f"The run asks several questions; name one of {', '.join(map(str, asked))}."}
        )
    return asked[0]


def _after(request: Request, given: int) -> int:
    """Return the event to go on after: what the client has seen last, else what the address says."""
    header = request.headers.get(LAST_EVENT_HEADER, "").strip()
    if not header:
        return given
    if not header.isascii() or not header.isdecimal() or len(header) > 18:
        raise serializers.ValidationError({LAST_EVENT_HEADER: "Give the number of an event."})
    return int(header)
