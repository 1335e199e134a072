"""``agents/{name}/run/``, ``agents/{name}/runs/`` and ``runs/``: agents at work.

Every run is stored and goes on whoever waits for it: a request that has to be answered before the
run is over, or a client that goes away, does not end it. What somebody waits for begins in this
process, the rest where ``MCP_CLIENT_RUN_BACKEND`` says.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, ClassVar, Final

from django.http.response import HttpResponseBase
from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import services
from mcp_client_app.agents import api as agents
from mcp_client_app.api.orders import CORRELATION_HEADER, correlation_id
from mcp_client_app.api.run_streams import run_stream_response
from mcp_client_app.api.serializers.runs import (
    AgentRunQuerySerializer,
    AgentRunSerializer,
    AgentRunSummarySerializer,
    EventQuerySerializer,
    RunEventListSerializer,
    RunInputSerializer,
    RunQuerySerializer,
    RunRequestSerializer,
    StreamableRunRequestSerializer,
)
from mcp_client_app.api.streaming import StreamingViewSet, encoded, wants_stream
from mcp_client_app.exceptions import RunStateError, UnknownRunError
from mcp_client_app.models import AgentRun, Approval
from mcp_client_app.services.permissions import CHANGE_RUN, DECIDE, RUN_AGENT, VIEW_RUN
from mcp_client_app.services.run_feed import Watch, feed

__all__ = ["AgentRunViewSet", "RunViewSet"]

LAST_EVENT_HEADER: Final = "Last-Event-ID"


class RunAnswers(StreamingViewSet):
    """How runs are answered."""

    def _run(self, run: AgentRun, status: int | None = None) -> Response:
        """Answer with a run: 202 if something is still to come."""
        if status is None:
            status = 200 if run.state.is_final else 202
        return Response(_whole(run), status=status, headers=self._headers(run))

    def _headers(self, run: AgentRun) -> dict[str, str]:
        namespace = self.request.resolver_match.namespace if self.request.resolver_match else "mcp_client"
        place = reverse(f"{namespace}:run-detail", kwargs={"id": str(run.pk)}) + "/"
        return {"Location": self.request.build_absolute_uri(place), CORRELATION_HEADER: run.correlation_id}


class AgentRunViewSet(RunAnswers):
    """Runs of one agent."""

    required: ClassVar = {"run": (RUN_AGENT,), "start": (RUN_AGENT,), "list": (RUN_AGENT, VIEW_RUN)}
    serializers: ClassVar = {"run": StreamableRunRequestSerializer, "start": RunRequestSerializer}
    streams = frozenset({"run"})

    def run(self, request: Request, name: str) -> HttpResponseBase:
        """Run the agent and wait for its answer.

        Answers 202 with the run as it stands if it waits for people, or if the request has to be answered
        before it is over: it goes on. With `Accept: text/event-stream` its events are told as they happen.
        """
        body = self.body()
        cancel = body.pop("cancel_on_disconnect")
        run = self._new(name, body)
        # Before it is handed over: nothing is missed.
        watch = feed.watch(run.pk, listens=wants_stream(request))
        try:
            # Here, whatever the backend: text that is told as it comes does not cross processes.
            services.submit(run, backend="thread")
        except BaseException:
            watch.close()
            raise
        if wants_stream(request):
            return self._stream(run, watch, cancel_when_left=cancel)
        with watch:
            return self._run(self._at_rest(run, watch))

    def start(self, request: Request, name: str) -> Response:
        """Start a run in the background, and answer at once."""
        run = self._new(name, self.body())
        services.submit(run)
        return self._run(run, status=202)

    def list(self, request: Request, name: str) -> Response:
        """List your runs of the agent, and those of others if you may see them; latest first."""
        runs = services.list_runs(request.user, agent=name, **self.query(AgentRunQuerySerializer))
        return self.get_paginated_response(
            AgentRunSummarySerializer(self.paginate_queryset(runs) or [], many=True).data
        )

    def _new(self, name: str, body: dict[str, Any]) -> AgentRun:
        ours = correlation_id(self.request)
        return agents.new_run(name, **body, user=self.request.user, correlation_id=ours)

    def _stream(self, run: AgentRun, watch: Watch, *, cancel_when_left: bool) -> HttpResponseBase:
        response = run_stream_response(
            self.request._request,  # noqa: SLF001 (documented by REST framework)
            watch,
            opening=encoded("run", AgentRunSummarySerializer(run).data),
            is_live=True,
            when_left=_cancelling(run) if cancel_when_left else None,
        )
        for header, value in self._headers(run).items():
            response[header] = value
        return response

    def _at_rest(self, run: AgentRun, watch: Watch) -> AgentRun:
        """Wait until a run is over or waits for people; return it as it stands when there is no time left."""
        while True:
            run = services.get_run(run.pk, self.request.user)
            left = None if self.ends_at is None else self.ends_at - time.monotonic()
            if run.state.is_final or run.state.is_paused or (left is not None and left <= 0):
                return run
            watch.get(left)


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
        return self._run(services.get_run(id, request.user), status=200)

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
        return self._run(agents.cancel_agent_run(id, user=request.user))

    def answer(self, request: Request, id: str) -> Response:  # noqa: A002 (as above)
        """Answer what a server has asked; the run goes on once nothing is open any more."""
        body = self.body()
        run = services.get_run(id, request.user)
        question = _question(run, body.get("approval"), request.user)
        services.answer_input(question, user=request.user, responses=body["responses"])
        return self._run(services.get_run(run.pk, request.user))


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


def _cancelling(run: AgentRun) -> Callable[[], None]:
    def cancel() -> None:
        with contextlib.suppress(RunStateError):  # it was over a moment before
            agents.cancel_agent_run(run.pk)

    return cancel


def _after(request: Request, given: int) -> int:
    """Return the event to go on after: what the client has seen last, else what the address says."""
    header = request.headers.get(LAST_EVENT_HEADER, "").strip()
    if not header:
        return given
    if not header.isascii() or not header.isdecimal() or len(header) > 18:
        raise serializers.ValidationError({LAST_EVENT_HEADER: "Give the number of an event."})
    return int(header)
