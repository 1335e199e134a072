"""A replica that lags behind: agents and approvals are read where they are written, parts and all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connections

from mcp_client_app import services
from mcp_client_app.api.serializers.agents import AgentConfigSerializer
from mcp_client_app.exceptions import ToolBlockedError
from mcp_client_app.models import AgentConfig, AgentServer, Approval
from mcp_client_app.runtime import row_source
from tests.approvals.cases import ask
from tests.stored import stored

pytestmark = pytest.mark.django_db


class Router:
    """Sends readers to a database that has not even the tables."""

    is_on = True

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "replica" if self.is_on and model._meta.app_label == "mcp_client_app" else None

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "default"


@pytest.fixture(autouse=True)
def replica(db: Any, settings: Any) -> Iterator[Router]:
    """The agent ``support`` with the server ``shop``, of which the replica knows nothing."""
    row_source.forget()
    stored("shop")
    Group.objects.create(name="helpers")
    services.add_agent("support", servers=["shop"], groups=["helpers"])
    ours = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:", "OPTIONS": {}}
    connections.settings["replica"] = {**connections.settings["default"], **ours}
    router = Router()
    settings.DATABASE_ROUTERS = [router]
    yield router
    settings.DATABASE_ROUTERS = []
    connections["replica"].close()
    del connections["replica"]
    del connections.settings["replica"]
    row_source.forget()


def told(row: AgentConfig) -> dict[str, Any]:
    return dict(AgentConfigSerializer(row).data)


def test_the_rules_of_an_agent():
    assert [server.name for server in services.agent_spec("support").servers] == ["shop"]


def test_agents_as_they_are_shown():
    shown = [told(row) for row in (services.get_agent("support"), *services.list_agents())]

    assert [row["servers"][0]["server"] for row in shown] == ["shop"] * 2
    assert [row["groups"] for row in shown] == [["helpers"]] * 2


def test_an_agent_as_it_is_shown_after_a_change(replica: Router):
    replica.is_on = False  # that a name is free is Django's to look for
    changed = services.update_agent("support", servers=[{"server": "shop", "approval": "deny"}])
    replica.is_on = True

    assert told(changed)["servers"][0]["approval"] == "deny"


def test_a_change_of_many_servers_of_agents():
    before = services.agent_spec("support").revision

    AgentServer.objects.update(approval="deny")

    assert services.agent_spec("support").revision > before


def test_the_agent_of_an_approval_and_what_it_refuses():
    row = ask(None)
    AgentServer.objects.update(approval="deny")

    assert row.agent_id is not None
    with pytest.raises(ToolBlockedError):
        services.approve(row.pk)


def test_an_approval_whose_time_is_over():
    row = ask(None)
    Approval.objects.using("default").filter(pk=row.pk).update(expires_at=row.created_at)

    assert services.get_approval(row.pk).status == Approval.Status.EXPIRED
