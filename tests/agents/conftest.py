"""Fixtures of the tests of the loop: agents with real servers in process, and scripted models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from mcp_client_app.agents.loop import close_agents_loop
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentConfig, AgentRun, AgentServer
from mcp_client_app.services.run_feed import feed
from mcp_client_app.testing import fake_server
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager

__all__ = ["add_mcp_server", "mcp_manager"]


def at_rest(run_id: Any, *statuses: RunStatus) -> AgentRun:
    """Wait until a run has one of these statuses (any final one by default); return its row."""
    wanted = statuses or tuple(status for status in RunStatus if status.is_final)
    with feed.watch(AgentRun.objects.only("pk").get(pk=run_id).pk) as watch:
        while True:
            run = AgentRun.objects.get(pk=run_id)
            if run.state in wanted:
                return run
            assert watch.get(60) is not None, f"the run stays {run.status}"


@pytest.fixture(autouse=True)
def _loop_closed() -> Iterator[None]:
    yield
    close_agents_loop()


@pytest.fixture
def calls() -> list[tuple[str, Any]]:
    """What reached the servers."""
    return []


@pytest.fixture
def shop(transactional_db: None, add_mcp_server: Callable[..., Any], calls: list[tuple[str, Any]]) -> Any:
    """The row of a server named ``shop``, which writes down its calls."""
    lock = threading.Lock()

    def note(tool: str, value: Any) -> None:
        with lock:
            calls.append((tool, value))

    def price(article: str) -> str:
        note("price", article)
        return f"{article} costs 3"

    def order(article: str, count: int = 1) -> str:
        note("order", (article, count))
        return f"{count} {article} ordered"

    def fail(why: str) -> str:
        note("fail", why)
        raise ValueError(why)

    def nothing() -> None:
        note("nothing", None)

    def long() -> str:
        return "x" * 200_000

    tools: dict[str, Callable[..., Any]] = {
        "price": price,
        "order": order,
        "fail": fail,
        "nothing": nothing,
        "long": long,
    }
    return add_mcp_server("shop", fake_server("shop", tools=tools))


@pytest.fixture
def agent(shop: Any) -> Callable[..., AgentConfig]:
    """Store agents: ``agent("clerk", max_rounds=2)``."""

    def make(name: str = "clerk", **fields: Any) -> AgentConfig:
        row = AgentConfig.objects.create(**{"name": name, "model": "scripted:test", **fields})
        AgentServer.objects.create(agent=row, server=shop)
        return row

    return make


@pytest.fixture
def make_user(db: None) -> Callable[..., User]:
    def make(*permissions: str, **fields: Any) -> User:
        user = User.objects.create(username=f"user{User.objects.count()}", **fields)
        found = Permission.objects.filter(content_type__app_label="mcp_client_app", codename__in=permissions)
        assert len(found) == len(permissions)
        user.user_permissions.set(found)
        return user

    return make
