"""Whoever has to decide can be told: signals, once what they are about is committed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from mcp_client_app import services, signals
from mcp_client_app.exceptions import ApprovalError
from mcp_client_app.models import Approval
from tests.approvals.cases import ask, ask_input, user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def told() -> Iterator[list[tuple[str, Any]]]:
    """What the receivers were told; another one fails each time."""
    heard: list[tuple[str, Any]] = []
    known = {"requested": signals.approval_requested, "decided": signals.approval_decided}

    def listener(name: str) -> Any:
        def listen(approval: Approval, **_: Any) -> None:
            heard.append((name, (approval.pk, approval.status)))

        return listen

    def failing(**_: Any) -> None:
        raise RuntimeError("A receiver of the project fails.")

    receivers = [(signal, listener(name)) for name, signal in known.items()]
    receivers += [(signal, failing) for signal in known.values()]
    for signal, receiver in receivers:
        signal.connect(receiver, weak=False)
    yield heard
    for signal, receiver in receivers:
        signal.disconnect(receiver)


def test_receivers_are_told_once_of_each_question_and_of_each_decision(told):
    ann = user("ann")
    row = ask(ann)
    ask(ann)
    asked = ask_input(ann)
    services.deny(row.pk)
    with pytest.raises(ApprovalError):
        services.approve(row.pk)
    services.answer_input(asked.pk, responses={"colour": {"action": "cancel"}})
    assert told == [
        ("requested", (row.pk, "pending")),
        ("requested", (asked.pk, "pending")),
        ("decided", (row.pk, "denied")),
        ("decided", (asked.pk, "answered")),
    ]


def test_nobody_is_told_of_what_is_rolled_back(told):
    ann = user("ann")
    with transaction.atomic():
        row = ask(ann)
        services.approve(row.pk)
        assert told == []
        transaction.set_rollback(True)
    assert told == []
