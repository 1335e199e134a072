"""``agents/{name}/run/`` and ``agents/{name}/runs/``: agents are set to work.

Every run is stored and goes on whoever waits for it: a request that has to be answered before the
run is over, or a client that goes away, does not end it. What somebody waits for begins in this
process, the rest where ``MCP_CLIENT_RUN_BACKEND`` says. A run that is ordered twice with the same
idempotency key is begun once.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import json_codec, services
from mcp_client_app.agents import api as agents
from mcp_client_app.api.orders import REPLAYED_HEADER, correlation_id, idempotency_key
from mcp_client_app.api.run_streams import run_stream_response
from mcp_client_app.api.runs import RunAnswers
from mcp_client_app.api.serializers.runs import (
    AgentRunQuerySerializer,
    AgentRunSummarySerializer,
    RunRequestSerializer,
    StreamableRunRequestSerializer,
)
from mcp_client_app.api.streaming import encoded, wants_stream
from mcp_client_app.exceptions import RunStateError
from mcp_client_app.models import AgentRun
from mcp_client_app.services.permissions import RUN_AGENT, VIEW_RUN
from mcp_client_app.services.run_feed import Watch, feed

__all__ = ["AgentRunViewSet"]

T = TypeVar("T")


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
        run, begun = self._ordered(name, body, self._begin_here)
        watch = begun or feed.watch(run.pk, listens=False)
        if wants_stream(request):
            when_left = _cancelling(run) if cancel else None
            return self._streamed(run, watch, is_live=begun is not None, when_left=when_left)
        with watch:
            return self._answered(self._at_rest(run, watch), is_new=begun is not None)

    def start(self, request: Request, name: str) -> Response:
        """Start a run in the background, and answer at once."""
        run, begun = self._ordered(name, self.body(), _begin_somewhere)
        return self._answered(run, is_new=begun is not None, status=202)

    def list(self, request: Request, name: str) -> Response:
        """List your runs of the agent, and those of others if you may see them; latest first."""
        runs = services.list_runs(request.user, agent=name, **self.query(AgentRunQuerySerializer))
        return self.get_paginated_response(
            AgentRunSummarySerializer(self.paginate_queryset(runs) or [], many=True).data
        )

    # Beginning -------------------------------------------------------------------------

    def _ordered(
        self, name: str, body: dict[str, Any], begin: Callable[[AgentRun], T]
    ) -> tuple[AgentRun, T | None]:
        """Begin a run; None beside it says that it was begun before, with the same key."""
        request = self.request
        key = idempotency_key(request, body)
        receipt = None
        if key is not None:
            asked = {**body, "agent": name.casefold(), "action": self.action}
            receipt = services.claim_key(request.user, key, asked)
            if receipt.is_settled:
                return services.get_run(
                    json_codec.loads(bytes(receipt.answer or b"null")), request.user
                ), None
        try:
            run = agents.new_run(name, **body, user=request.user, correlation_id=correlation_id(request))
            begun = begin(run)
        except BaseException:
            if receipt is not None:
                receipt.delete()
            raise
        if receipt is not None:
            receipt.settle(202, json_codec.dumps(str(run.pk)))
        return run, begun

    def _begin_here(self, run: AgentRun) -> Watch:
        # Before it is handed over: nothing is missed.
        watch = feed.watch(run.pk, listens=wants_stream(self.request))
        try:
            # Here, whatever the backend: text that is told as it comes does not cross processes.
            services.submit(run, backend="thread")
        except BaseException:
            watch.close()
            raise
        return watch

    # Answering -------------------------------------------------------------------------

    def _answered(self, run: AgentRun, *, is_new: bool, status: int | None = None) -> Response:
        response = self.answer_with(run, status)
        if not is_new:
            response[REPLAYED_HEADER] = "true"
        return response

    def _streamed(self, run: AgentRun, watch: Watch, *, is_live: bool, **options: Any) -> HttpResponseBase:
        response = run_stream_response(
            self.request._request,  # noqa: SLF001 (documented by REST framework)
            watch,
            opening=encoded("run", AgentRunSummarySerializer(run).data),
            is_live=is_live,
            ends_at_pause=True,
            **options,
        )
        for header, value in self.headers_of(run).items():
            response[header] = value
        if not is_live:
            response[REPLAYED_HEADER] = "true"
        return response

    def _at_rest(self, run: AgentRun, watch: Watch) -> AgentRun:
        """Wait until a run is over or waits for people; return it as it stands when there is no time left."""
        while True:
            run = services.get_run(run.pk, self.request.user)
            left = None if self.ends_at is None else self.ends_at - time.monotonic()
            if run.state.is_final or run.state.is_paused or (left is not None and left <= 0):
                return run
            watch.get(left)


def _begin_somewhere(run: AgentRun) -> bool:
    services.submit(run)
    return True


def _cancelling(run: AgentRun) -> Callable[[], None]:
    def cancel() -> None:
        with contextlib.suppress(RunStateError):  # it was over a moment before
            agents.cancel_agent_run(run.pk)

    return cancel
