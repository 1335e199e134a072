"""One call of a toolset, step by step.

Permission, the agent's rules, the arguments, the approval policy, the journal: whatever refuses
the call does so before anything is sent. Then the server is called, and its result made fit
for a model. Each call leaves an audit row, refused ones too.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from django.db import router, transaction

from mcp_client_app import json_codec
from mcp_client_app.conf import app_settings
from mcp_client_app.configuration.output_filters import OutputFilter
from mcp_client_app.datatypes import AgentSpec, ApprovalPolicy, InputHandler, Progress, ToolInfo, ToolResult
from mcp_client_app.exceptions import (
    ApprovalRequiredError,
    InputRequiredError,
    InvalidArgumentsError,
    MCPClientError,
    RequestTimeoutError,
    ToolBlockedError,
    UnknownToolError,
)
from mcp_client_app.models import Approval
from mcp_client_app.naming import normalise_tool_name, split_public_name
from mcp_client_app.services import approvals
from mcp_client_app.services.audit import CallRecord
from mcp_client_app.services.calls import InputResponses
from mcp_client_app.services.fixed_secrets import FixedSecrets
from mcp_client_app.services.output_filters import code_filter, stored_filter
from mcp_client_app.services.recording import new_record
from mcp_client_app.services.result_store import result_store
from mcp_client_app.services.steps import Step, Steps, at_once, in_thread
from mcp_client_app.services.toolset_core import PATIENCE, ToolsetCore
from mcp_client_app.services.toolset_results import ToolsetResult
from mcp_client_app.services.toolset_view import View, called
from mcp_client_app.toolsets import PreparedCall, Store, invalid_arguments, render_result
from mcp_client_app.toolsets.output import apply_filters, output_filters_for
from mcp_client_app.toolsets.policies import is_harmless, needs_approval, policy_for, result_limit_for

if TYPE_CHECKING:
    from mcp_client_app.client.manager import MCPClientManager

__all__ = ["Attempt", "CallJournal", "Order"]


class CallJournal(Protocol):
    """What a run writes down around a call. Called in a thread, never on an event loop."""

    def begin(self, call: PreparedCall, *, is_safe: bool) -> None:
        """Write down that the call is about to be sent, in the transaction in which its approval is used.

        Raising stops the call before anything is sent.
        """

    def end(self, call: PreparedCall, result: ToolsetResult | None, error: BaseException | None) -> None:
        """Write down what became of it."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is asked of a toolset."""

    name: object
    arguments: object = field(default=None, repr=False)
    call_id: str = ""
    run: Any = None
    approval: Any = None
    journal: CallJournal | None = None
    timeout: float | None = None
    on_progress: Callable[[Progress], Any] | None = None
    on_input: Mapping[str, InputHandler] | None = None
    input_responses: InputResponses | None = field(default=None, repr=False)
    request_state: str | None = field(default=None, repr=False)
    correlation_id: str | None = None


class Attempt:
    """The way of one order; ``record`` is its audit row."""

    def __init__(self, toolset: ToolsetCore, manager: MCPClientManager, order: Order) -> None:
        self._toolset = toolset
        self._manager = manager
        self._order = order
        self._view: View | None = None
        self._call: PreparedCall | None = None
        self._begun = False
        self._end = time.monotonic() + order.timeout if order.timeout else None
        self._secrets = FixedSecrets({})
        self._filters: tuple[OutputFilter, ...] = ()
        self._store: Store | None = None
        self.record: CallRecord = new_record(
            "tool", str(order.name), None, toolset.user, toolset.name, None, order.correlation_id
        )
        # What the toolset calls its own may be the name of a stored server as well.
        self.record.recorded_as = lambda name: toolset.servers.target(name)[0]
        self.record.server = self.record.recorded_as(self.record.server)

    # Before anything is sent -----------------------------------------------------------

    def steps(self) -> Steps[ToolResult]:
        """Make the call; whatever becomes of it, ``finished`` or ``failed`` has to be told."""
        spec = yield self._toolset.admitting()
        view = yield from self._found(spec)
        call = self._prepared(view, self._order.arguments)
        asks = self._asks(view, call.tool)
        if asks or self._order.approval is not None or self._order.journal is not None:
            call = yield in_thread(partial(self._begin, view, call, asks=asks))
        self._call, self._begun = call, True
        result: ToolResult = yield self._send(call)
        return result

    def _found(self, spec: AgentSpec) -> Steps[View]:
        """Look for the tool; a server is waited for only if those that are up do not offer it."""
        name = self._order.name
        view = yield from self._toolset.look(self._manager, spec, wait=0)
        try:
            found = view.selection.find(name).tool
            if normalise_tool_name(str(name)) == normalise_tool_name(found.public_name):
                return view
        except LookupError:  # unknown, or not clear
            pass
        view = yield from self._toolset.look(self._manager, spec, wait=self._patience())
        try:
            view.selection.find(name)
        except UnknownToolError as error:
            if self._end is not None and time.monotonic() >= self._end and view.errors:
                raise self._too_late(name) from error
            server = _server_of(name, view)
            if server is None:
                raise
            if server in view.errors:
                raise view.errors[server].copy() from error
            # It may have learnt the tool since.
            with contextlib.suppress(MCPClientError):
                yield self._toolset.reread(self._manager, server, wait=self._patience())
            view = yield from self._toolset.look(self._manager, spec, wait=0)
        return view

    def _prepared(self, view: View, arguments: object) -> PreparedCall:
        """Fill in what the rules say, and note how the call is to be written down."""
        selected = view.selection.find(self._order.name)
        tool = selected.tool
        target, _ = self._toolset.servers.target(tool.server)
        self.record.server, self.record.tool = target, tool.name
        self._view, self._secrets = view, FixedSecrets(selected.fixed)
        self.record.conceal = self._secrets.conceal
        call = view.selection.prepare(self._order.name, arguments, validation=view.spec.validation)
        self.record.arguments = self._secrets.arguments(call.given)
        # Now, not when the call has been made: what cannot be read stops it.
        own = view.spec.server(tool.server)
        levels = ([own.output_filters] if own is not None else []) + [view.spec.output_filters]
        self._filters, self._store = output_filters_for(tool, *levels), result_store()
        return call

    def _asks(self, view: View, tool: ToolInfo) -> bool:
        """Say whether a person has to be asked.

        Raises:
            ToolBlockedError: It is no use asking.
        """
        policy = policy_for(tool, view.spec)
        if policy is ApprovalPolicy.DENY:
            raise ToolBlockedError(
                f"Calls of {tool.name!r} of {tool.server!r} are refused by the agent's approval policy.",
                server=tool.server,
                tool=tool.name,
            )
        return self._order.approval is None and needs_approval(
            tool, policy, trusted=self._trusts(tool.server)
        )

    def _begin(self, view: View, call: PreparedCall, *, asks: bool) -> PreparedCall:
        """Use the approval, or ask for one, and write into the journal; with the database."""
        order = self._order
        if asks:
            raise self._approval_required(view, call)
        if order.approval is None:
            self._note(call)
            return call
        with transaction.atomic(using=router.db_for_write(Approval)):
            call = self._approved(view, call)
            self._note(call)
        return call

    def _note(self, call: PreparedCall) -> None:
        """Write into the journal that the call is about to be sent."""
        if self._order.journal is not None:
            trusted = self._trusts(call.tool.server)
            self._order.journal.begin(call, is_safe=is_harmless(call.tool, trusted=trusted))
            self._call, self._begun = call, True

    def _approval_required(self, view: View, call: PreparedCall) -> ApprovalRequiredError:
        order, tool = self._order, call.tool
        asked = approvals.request_approval(
            self._toolset.name,
            tool,
            call.given,
            user=self._toolset.user,
            run=order.run,
            call_id=order.call_id,
            lifetime=view.spec.approval_lifetime,
            fixed_names=self._secrets.names,
        )
        return ApprovalRequiredError(
            f"A person has to approve this call of {tool.name!r} of {tool.server!r}.",
            server=tool.server,
            tool=tool.name,
            approval=str(asked.pk),
            expires_at=asked.expires_at.isoformat(),
        )

    def _approved(self, view: View, call: PreparedCall) -> PreparedCall:
        """Use the approval; a person may have edited the arguments."""
        order = self._order
        arguments = approvals.use_approval(
            order.approval,
            toolset_name=self._toolset.name,
            tool=call.tool,
            given=call.given,
            user=self._toolset.user,
            run=order.run,
            call_id=order.call_id,
        )
        # To Python True is 1, to a tool it is not.
        is_same = json_codec.canonical(arguments) == json_codec.canonical(call.given)
        return call if is_same else self._prepared(view, arguments)

    def _trusts(self, server: str) -> bool:
        """Say whether the annotations of a server's tools count."""
        entry = self._manager.entry(self._toolset.servers.target(server)[0])
        return entry is not None and entry.spec is not None and entry.spec.trust_annotations

    def _send(self, call: PreparedCall) -> Step:
        order = self._order
        server, principal = self._toolset.servers.target(call.tool.server)
        options: dict[str, Any] = {
            "server": server,
            "principal": principal,
            "timeout": order.timeout if self._end is None else self._left(self._end),
            "on_progress": self._secrets.progress(order.on_progress),
            "on_input": order.on_input,
            "input_responses": order.input_responses,
            "request_state": order.request_state,
        }
        name, arguments = call.tool.name, call.arguments
        return Step(
            lambda: self._manager.call_tool(name, arguments, **options),
            lambda: self._manager.acall_tool(name, arguments, **options),
        )

    def _too_late(self, name: object) -> RequestTimeoutError:
        seconds = self._order.timeout or 0.0
        return RequestTimeoutError(
            f"The tool {name!r} was not found within {seconds:.3g} s: servers are still connecting.",
            seconds=seconds,
        )

    def _patience(self) -> float:
        return PATIENCE if self._end is None else min(PATIENCE, self._left(self._end))

    def _left(self, end: float) -> float:
        return max(0.001, end - time.monotonic())  # 0 would be no limit

    # Afterwards ------------------------------------------------------------------------

    def finishing(self, result: ToolResult) -> Step:
        """Return the step of ``finished``; coroutines leave their thread only if that may block."""
        is_plain = self._order.journal is None and self._store is None and not self._filters
        return (at_once if is_plain else in_thread)(partial(self.finished, result))

    def finished(self, result: ToolResult) -> ToolsetResult:
        """Make the result fit for a model, and tell the journal; with the database."""
        assert self._call is not None
        assert self._view is not None
        call, spec = self._call, self._view.spec
        result = self._secrets.result(replace(result, server=call.tool.server))
        resolve = stored_filter if self._toolset.is_stored else code_filter
        result = apply_filters(self._filters, result, tool=call.tool, resolve=resolve)
        rendered = render_result(
            result,
            name=call.tool.public_name,
            limit=result_limit_for(call.tool, spec),
            reason_limit=app_settings.MODEL_ERROR_LENGTH,
            store=self._store,
        )
        outcome = ToolsetResult(
            name=call.tool.public_name,
            rendered=rendered,
            result=result,
            warnings=(*call.warnings, *result.warnings),
        )
        if self._order.journal is not None:
            self._order.journal.end(call, outcome, None)
        return outcome

    def failed(self, error: BaseException) -> BaseException:
        """Return the error as the caller may see it, and tell the journal; with the database."""
        if isinstance(error, MCPClientError):
            error = self._told(error)
        if self._begun and self._call is not None and self._order.journal is not None:
            self._order.journal.end(self._call, None, error)
        return error

    def _told(self, error: MCPClientError) -> MCPClientError:
        """Return the error without fixed arguments, in the names that the toolset uses."""
        own = self._toolset.servers.own()
        error = called(error, own)
        call = self._call
        if isinstance(error, InvalidArgumentsError) and self._begun and call is not None:
            return self._refused_by_server(error, call)
        if isinstance(error, InputRequiredError):
            requests = [
                replace(
                    request,
                    server=own.get(request.server, request.server),
                    params=self._secrets.conceal(request.params),
                )
                for request in error.requests
            ]
            error.requests = tuple(requests)
        return self._secrets.error(error)

    def _refused_by_server(self, error: InvalidArgumentsError, call: PreparedCall) -> InvalidArgumentsError:
        """Say what a model needs to do better: the schema that it knows, and its own arguments."""
        assert self._view is not None
        selected = self._view.selection.find(call.tool.public_name)
        return invalid_arguments(
            [self._secrets.conceal(error.message)],
            tool=selected.name,
            given=call.given,
            schema=selected.schema,
            server=call.tool.server,
        )


def _server_of(name: object, view: View) -> str | None:
    """Return the server of the toolset that a public name names."""
    parts = split_public_name(name.strip()) if isinstance(name, str) else None
    if parts is None:
        return None
    folded = parts[0].casefold()
    known = [*view.errors, *view.selection.rules.servers]
    return next((server for server in known if server.casefold() == folded), None)
