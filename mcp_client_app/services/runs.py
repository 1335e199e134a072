"""Runs of agents: ordering them, looking at them, cancelling them.

Everybody sees and cancels the runs that are his own; others' need ``view_agentrun`` and
``change_agentrun``. Who looks at a run that nobody works on any more settles it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from mcp_client_app import json_codec
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import (
    ConfigurationError,
    PermissionDeniedError,
    RunStateError,
    UnknownRunError,
)
from mcp_client_app.models import AgentConfig, AgentRun
from mcp_client_app.models.calls import new_correlation_id
from mcp_client_app.models.runs import AgentRunQuerySet
from mcp_client_app.services.agents import agent_spec
from mcp_client_app.services.permissions import CHANGE_RUN, RUN_AGENT, require
from mcp_client_app.services.run_rows import (
    close_approvals,
    database,
    end,
    locked,
    parsed_id,
    rows,
    storable,
    write,
)
from mcp_client_app.services.run_settling import look_after, settle, settle_abandoned
from mcp_client_app.services.run_submission import begun_by, requeue, submit

__all__ = ["cancel_run", "conversation", "create_run", "get_run", "list_runs", "requeue", "submit"]


OF_THE_AGENT: Final = frozenset({"instructions", "provider_url"})


def conversation(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages as people see them: without what the agent was told, and where its model is.

    To see these is another permission; a history has no use for them.
    """
    return [
        {name: value for name, value in message.items() if name not in OF_THE_AGENT} for message in messages
    ]


def create_run(
    agent: str,
    prompt: str,
    *,
    user: Any = None,
    history: Sequence[Any] | None = None,
    deps: Any = None,
    correlation_id: str | None = None,
) -> AgentRun:
    """Store a run that is to be executed: by the caller, who claims it, or in the background by ``submit``.

    Args:
        agent: The agent's name.
        prompt: What the user says.
        user: On whose behalf; None for trusted code.
        history: Messages of an earlier run that this one continues.
        deps: Any JSON value that the agent's code may want.
        correlation_id: What joins it with the caller's own log; made up by default. At most 64
            characters.

    Raises:
        UnknownAgentError: There is no such agent, it is disabled, or it is not for this user.
        PermissionDeniedError: The user may not use agents, or is nobody whose run it could be.
        ConfigurationError: ``history`` or ``deps`` has no JSON form, or ``prompt`` is no text.
    """
    spec = agent_spec(agent, user=user)
    if user is not None and user.pk is None:
        # Without a user it would be one of trusted code.
        raise PermissionDeniedError("A run belongs to a user: sign in.", permission=RUN_AGENT)
    if not isinstance(prompt, str):
        raise ConfigurationError("prompt: give a text.", field="prompt")
    name = user.get_username() if user is not None else ""
    return rows().create(
        agent_id=AgentConfig.objects.using(database()).named(spec.name).values_list("pk", flat=True).first(),
        agent_name=spec.name,
        user=user,
        username=name[:255],
        prompt=json_codec.scrub(prompt),
        messages=_json("history", list(history or ())),
        deps=_json("deps", deps),
        correlation_id=json_codec.scrub(str(correlation_id or new_correlation_id()))[:64],
        lease_until=begun_by(),
    )


def get_run(run_id: object, user: Any = None) -> AgentRun:
    """Return a run.

    Raises:
        UnknownRunError: There is none, or it is somebody else's.
    """
    run = _find(run_id, user)
    return _find(run_id, user) if look_after(run) else run


def list_runs(
    user: Any = None,
    *,
    agent: str | None = None,
    status: RunStatus | str | None = None,
    limit: int | None = None,
) -> AgentRunQuerySet:
    """Return the runs that a user may see, latest first; read when iterated over, without their messages.

    Args:
        user: Who looks; None for trusted code.
        agent: Those of this agent only.
        status: Those with this status only.
        limit: The latest ones only, so many; None = all.
    """
    found = rows().for_user(user)
    if agent is not None:
        found = found.filter(agent_name__iexact=agent)
    settle_abandoned(found)
    if status is not None:
        found = found.filter(status=str(status))
    return found.order_by("-created_at", "-pk").defer("messages")[:limit]


def cancel_run(run_id: object, *, user: Any = None) -> AgentRun:
    """End a run: at once if nobody works on it, else its worker is told to.

    A call that has been sent may still take effect. To cancel twice does no harm.

    Raises:
        UnknownRunError: There is none, or it is somebody else's.
        PermissionDeniedError: It is somebody else's, and the user may only look.
        RunStateError: It is over already.
    """
    seen = _find(run_id, user)
    if user is None or seen.user_id is None or seen.user_id != user.pk:
        require(user, CHANGE_RUN)
    with transaction.atomic(using=database()):
        close_approvals(seen.pk)
        run = locked(seen.pk)
        if run is None:
            raise UnknownRunError
        if run.state is RunStatus.RUNNING:
            write(run, cancel_requested_at=run.cancel_requested_at or timezone.now())
        elif not run.state.is_final:
            end(run, RunStatus.CANCELLED, cancel_requested_at=timezone.now())
    if run.state.is_final and run.state is not RunStatus.CANCELLED:
        allowed = [status.value for status in RunStatus if not status.is_final]
        raise RunStateError(
            f"The run is over ({run.status}).", run=str(run.pk), status=run.status, allowed=allowed
        )
    settle(run.pk)
    return _find(run_id, user)


def _find(run_id: object, user: Any) -> AgentRun:
    row = rows().for_user(user).filter(pk=parsed_id(run_id)).first()
    if row is None:
        raise UnknownRunError(f"There is no run {str(run_id)[:40]!r}.")
    return row


def _json(field: str, value: Any) -> Any:
    try:
        return storable(value)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{field}: give what has a JSON form: {error}", field=field) from error
