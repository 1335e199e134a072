"""Markup planted in what models, servers and people say: no page about approvals takes it for its own."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from mcp_client_app import services
from mcp_client_app.datatypes import InputKind, InputRequest, ToolInfo
from mcp_client_app.exceptions import InputRequiredError
from mcp_client_app.models import Approval
from tests.admin import pages
from tests.test_planted_markup import MARKUP, PLANTED, planted_in

pytestmark = pytest.mark.django_db

ADMIN = "/admin/mcp_client_app/approval/"
API = "/api/mcp/approvals/"


def asked_for() -> list[Approval]:
    """Return a call that waits, one that was denied, and a question with a form and one without."""
    tool = ToolInfo(server="evil", name=MARKUP, input_schema={"properties": {MARKUP: {"title": MARKUP}}})
    rows = [services.request_approval(MARKUP, tool, {MARKUP: number}, user=None) for number in range(2)]
    services.deny(rows[1].pk, reason=MARKUP)
    said = {"title": MARKUP, "description": MARKUP}
    forms: list[dict[str, Any]] = [
        {
            MARKUP: {"type": "string", "default": MARKUP, **said},
            "x": {"enum": [MARKUP], "enumNames": [MARKUP]},
        },
        {MARKUP: {"type": "object", "default": {MARKUP: MARKUP}}},
    ]
    for number, form in enumerate(forms):
        schema = {"type": "object", "properties": form, "required": [MARKUP, f"{MARKUP} again"]}
        params = {"message": MARKUP, "requestedSchema": schema}
        asked = InputRequest(server="evil", kind=InputKind.ELICITATION, key=MARKUP, params=params)
        error = InputRequiredError(requests=[asked])
        rows.append(services.request_input(MARKUP, error, {MARKUP: number}, tool=tool, user=None))
    return rows


def test_markup_is_shown_as_text(admin_client: Client):
    rows = asked_for()
    addresses = [ADMIN, f"{ADMIN}?q={MARKUP}", *(f"{ADMIN}{row.pk}/change/" for row in rows)]
    shown = {address: pages.text(admin_client.get(address)) for address in addresses}
    wrong = {"arguments": MARKUP, "reason": MARKUP * 99, "_approve": MARKUP}
    shown["wrong"] = pages.text(admin_client.post(f"{ADMIN}{rows[0].pk}/change/", wrong))
    for row in rows[2:]:
        answer = {"q0-action": "accept", "q0-field0": "", "q0-field1": MARKUP, "q0-json": '{"x": 1}'}
        shown[f"answer {row.pk}"] = pages.text(admin_client.post(f"{ADMIN}{row.pk}/change/", answer))
    accept = {"accept": "text/html"}
    for address in (API, *(f"{API}{row.pk}/" for row in rows)):
        shown[address] = admin_client.get(address, headers=accept).content.decode()

    assert {address: found for address, page in shown.items() if (found := planted_in(page))} == {}
    assert [address for address, page in shown.items() if PLANTED not in page] == []
