"""The mixin and the fixtures: servers in the test's rows, in all kinds of tests."""

from __future__ import annotations

import pytest
from django.test import TestCase, TransactionTestCase

from mcp_client_app import services
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.models import ServerConfig, ServerState, ToolCall
from mcp_client_app.runtime import get_mcp_manager, started_manager
from mcp_client_app.testing import MCPClientTestMixin, fake_server
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager

__all__ = ["add_mcp_server", "mcp_manager"]


def price(article: str) -> int:
    return 3


SHOP = fake_server(tools=[price])


class InATransactionTests(MCPClientTestMixin, TestCase):
    mcp_servers = {"shop": SHOP}  # noqa: RUF012

    def test_the_servers_of_the_class_are_stored(self):
        assert get_mcp_manager() is self.mcp_manager
        assert services.call_tool("shop__price", {"article": "oak"}).text == "3"
        assert ToolCall.objects.get().server == ServerConfig.objects.get()

    def test_each_test_starts_as_new(self):
        assert services.server_status("shop").state is ConnectionState.IDLE
        assert not ToolCall.objects.exists()

    def test_further_servers_can_be_added(self):
        row = self.add_mcp_server("other", SHOP, blocked_tools=["price"], label="Other")

        assert row.label == "Other"
        assert services.list_tools("other").items == ()
        assert {server.name for server in services.list_servers()} == {"shop", "other"}

    def test_what_a_test_saves_counts_at_once(self):
        ServerConfig.objects.filter(name="shop").update(enabled=False)

        with pytest.raises(LookupError):
            services.call_tool("price", {"article": "oak"}, server="shop")

    def test_no_states_are_written(self):
        services.connect("shop")

        assert not ServerState.objects.exists()

    async def test_coroutines_see_the_tests_transaction(self):
        result = await services.acall_tool("shop__price", {"article": "oak"})

        assert result.text == "3"
        assert (await ToolCall.objects.aget()).code == "ok"


class WithCommitsTests(MCPClientTestMixin, TransactionTestCase):
    mcp_servers = {"shop": SHOP}  # noqa: RUF012

    def test_the_servers_of_the_class_are_stored(self):
        assert services.call_tool("shop__price", {"article": "oak"}).text == "3"

    async def test_coroutines_work_as_well(self):
        assert (await services.acall_tool("shop__price", {"article": "oak"})).text == "3"


@pytest.mark.django_db(transaction=True)
def test_a_test_that_fails_leaves_nothing_either():
    case = WithCommitsTests("test_the_servers_of_the_class_are_stored")
    case.setUp()
    manager = case.mcp_manager
    try:
        services.connect("shop")
        assert started_manager() is manager
    finally:
        case.doCleanups()

    assert manager.is_closed
    assert started_manager() is None
    assert not ServerConfig.objects.exists()


# pytest ------------------------------------------------------------------------------------


def test_fixtures_work_in_a_transaction(add_mcp_server, mcp_manager):
    row = add_mcp_server("shop", SHOP, label="Shop")

    assert services.call_tool("shop__price", {"article": "oak"}).text == "3"
    assert mcp_manager.connected_servers() == ["shop"]
    assert ToolCall.objects.get().server == row


@pytest.mark.django_db(transaction=True)
def test_fixtures_work_with_commits(add_mcp_server):
    add_mcp_server("shop", SHOP)

    assert services.call_tool("shop__price", {"article": "oak"}).text == "3"


@pytest.mark.django_db(transaction=True)
def test_nothing_of_the_others_is_left():
    assert not ServerConfig.objects.exists()
    assert not ToolCall.objects.exists()
