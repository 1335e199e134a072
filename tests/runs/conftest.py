"""Fixtures of the tests of runs: an agent, a backend that only keeps what it is given, calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.models import AgentConfig, AgentRun, Approval
from mcp_client_app.toolsets import PreparedCall
from tests.runs import backend
from tests.services.conftest import make_user, mcp_manager

__all__ = ["make_user", "mcp_manager"]

NewRun = Callable[..., AgentRun]


@pytest.fixture
def given(settings: Any) -> Iterator[list[str]]:
    """What the backend was given."""
    settings.MCP_CLIENT_RUN_BACKEND = "tests.runs.backend.take"
    backend.given.clear()
    yield backend.given
    backend.given.clear()


@pytest.fixture
def new_run(db: None, given: list[str]) -> NewRun:
    """Make runs: ``new_run()``; with ``owner``, claimed by it."""
    AgentConfig.objects.create(name="support")

    def make(prompt: str = "Help!", *, owner: str = "", **options: Any) -> AgentRun:
        run = services.create_run("support", prompt, **options)
        if owner:
            claimed = services.claim(run.pk, owner)
            assert claimed is not None
            return claimed
        return run

    return make


@contextlib.contextmanager
def undone() -> Iterator[None]:
    """Run a block in a transaction that is rolled back."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def kinds(run: AgentRun) -> list[str]:
    """Return what has happened in a run; its numbers are without gaps."""
    events = list(run.events.order_by("number"))
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    return [event.kind for event in events]


def fresh(run: AgentRun) -> AgentRun:
    """Return a run as it is now."""
    return AgentRun.objects.get(pk=run.pk)


def give_up(run: AgentRun) -> None:
    """Let the lease of a run be over: its worker is gone."""
    AgentRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def prepared(name: str = "refund", **arguments: Any) -> PreparedCall:
    """Return a call; its fixed argument is a secret."""
    return PreparedCall(
        ToolInfo(server="shop", name=name), {**arguments, "key": "planted-secret"}, dict(arguments)
    )


def asked(run: AgentRun, **fields: Any) -> Approval:
    """Store an approval that is waited for."""
    expires_at = timezone.now() + timedelta(hours=1)
    chosen = {"server_name": "shop", "tool": "refund", "fingerprint": "f", "expires_at": expires_at} | fields
    return Approval.objects.create(run=run, agent_name="support", **chosen)
