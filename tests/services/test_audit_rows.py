"""Audit rows and transactions: what happened is told, whatever becomes of the caller's work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import TestCase, override_settings

from mcp_client_app import services
from mcp_client_app.models import ServerConfig, ToolCall
from mcp_client_app.services.audit_rows import flush
from mcp_client_app.testing import MCPClientTestMixin
from tests.services.conftest import shop
from tests.services.test_audit_batches import refused

in_transactions = pytest.mark.django_db(transaction=True)


def call(text: str = "hi") -> None:
    services.call_tool("shop__echo", {"text": text}, correlation_id=text)


def told() -> list[str]:
    """Return the correlation ids of the rows, once all are written."""
    assert flush(20)
    return list(ToolCall.objects.order_by("pk").values_list("correlation_id", flat=True))


class _UndoError(Exception):
    """Ends a block that is to be rolled back."""


@contextlib.contextmanager
def undone() -> Iterator[None]:
    """Run a block in a transaction, or in a savepoint, that an exception ends."""
    with contextlib.suppress(_UndoError), transaction.atomic():
        yield
        raise _UndoError


@in_transactions
@pytest.mark.usefixtures("the_shop")
def test_a_row_is_there_when_the_call_returns():
    call()

    assert list(ToolCall.objects.values_list("correlation_id", flat=True)) == ["hi"]


@in_transactions
@pytest.mark.usefixtures("the_shop")
def test_a_row_is_there_after_a_commit():
    with transaction.atomic():
        call()

    assert list(ToolCall.objects.values_list("correlation_id", flat=True)) == ["hi"]


@in_transactions
@pytest.mark.usefixtures("the_shop")
@pytest.mark.parametrize("batch", [False, True], ids=["each", "in batches"])
class TestTransactions:
    @pytest.fixture(autouse=True)
    def _batch(self, settings: Any, batch: bool) -> None:
        settings.MCP_CLIENT_AUDIT_BATCH = batch

    def test_a_row_is_there_after_a_commit(self):
        with transaction.atomic():
            call()

        assert told() == ["hi"]

    def test_a_row_that_is_refused_after_a_commit_costs_the_caller_nothing(self, caplog):
        with refused("planted-bad"):
            with transaction.atomic():
                ServerConfig.objects.update(label="changed")
                call("planted-bad")
            assert told() == []

        assert ServerConfig.objects.get().label == "changed"
        assert "'shop' could not be written: IntegrityError: " in caplog.text
        assert "planted" not in caplog.text, "databases quote the row"

    def test_a_row_outlives_a_rollback(self):
        with undone():
            ServerConfig.objects.create(name="undone", command="x")
            call()

        assert told() == ["hi"]
        assert ToolCall.objects.get().server_name == "shop"
        assert not ServerConfig.objects.filter(name="undone").exists()

    def test_a_row_outlives_a_rollback_that_was_asked_for(self):
        with transaction.atomic():
            call()
            transaction.set_rollback(True)

        assert told() == ["hi"]

    def test_a_row_outlives_the_rollback_of_a_savepoint(self):
        with transaction.atomic():
            call("outer")
            with undone():
                call("inner")

        assert sorted(told()) == ["inner", "outer"]

    def test_a_row_outlives_the_rollback_of_a_savepoint_and_then_of_the_rest(self):
        with undone(), undone():
            call("inner")

        assert told() == ["inner"]

    def test_the_callers_own_writes_go_on_after_a_call(self):
        """Another writer in the midst of the caller's transaction would be the end of it on SQLite."""
        with transaction.atomic():
            assert ServerConfig.objects.count() == 1
            call()
            ServerConfig.objects.update(label="changed")

        assert told() == ["hi"]
        assert ServerConfig.objects.get().label == "changed"

    def test_a_row_of_a_lock_that_the_caller_holds_waits_for_nobody(self, make_user):
        user = make_user("call_tool")
        with transaction.atomic():
            locked = type(user).objects.select_for_update().get(pk=user.pk)
            services.call_tool("shop__echo", {"text": "hi"}, user=locked, correlation_id="hi")

        assert told() == ["hi"]
        assert ToolCall.objects.get().user == user

    def test_a_user_of_a_transaction_that_was_rolled_back_is_told_by_name(self, make_user):
        with undone():
            user = make_user("call_tool")
            services.call_tool("shop__echo", {"text": "hi"}, user=user, correlation_id="hi")

        assert told() == ["hi"]
        row = ToolCall.objects.get()
        assert (row.user, row.username) == (None, user.username)

    def test_a_call_in_a_transaction_that_is_broken_is_told(self):
        services.list_servers()
        with transaction.atomic():
            with pytest.raises(IntegrityError), transaction.atomic(savepoint=False):
                ServerConfig.objects.create(name="shop", command="x")
            call()

        assert told() == ["hi"]

    def test_a_project_that_manages_transactions_by_hand_gets_its_row(self):
        transaction.set_autocommit(False)
        try:
            call()
            transaction.rollback()
        finally:
            transaction.set_autocommit(True)

        assert told() == ["hi"]


@override_settings(MCP_CLIENT_AUDIT_BATCH=True)  # of no effect here
class InsideTestCaseTests(MCPClientTestMixin, TestCase):
    def test_the_row_is_part_of_the_tests_transaction(self):
        self.add_mcp_server("shop", shop())

        call()

        assert connection.in_atomic_block
        assert ToolCall.objects.get().correlation_id == "hi"

    def test_so_is_one_in_a_transaction_within(self):
        self.add_mcp_server("shop", shop())

        with transaction.atomic():
            call()
        assert ToolCall.objects.get().correlation_id == "hi"


@pytest.mark.django_db(transaction=True)
def test_nothing_of_a_test_case_is_left():
    assert not ToolCall.objects.exists()
