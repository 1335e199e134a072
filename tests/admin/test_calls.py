"""The audit in the admin."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcp_client_app.models import ServerConfig, ToolCall
from tests.admin import pages
from tests.admin.conftest import MakeStaff

pytestmark = pytest.mark.django_db

LIST = "/admin/mcp_client_app/toolcall/"


def call(tool: str = "add", **fields) -> ToolCall:
    return ToolCall.objects.create(**{"server_name": "one", "tool": tool, **fields})


def shown(client, **query) -> set[str]:
    return {row.tool for row in client.get(LIST, query).context["cl"].result_list}


def test_calls_are_filtered_and_searched(admin_client):
    call("a")
    call("b", code="timeout", is_error=True, username="alice", correlation_id="c-77")
    call("c", server_name="two", kind="prompt")
    call("d", started_at=timezone.now() - timedelta(days=400))
    assert shown(admin_client, is_error__exact="1") == {"b"}
    assert shown(admin_client, code="timeout") == {"b"}
    assert shown(admin_client, server_name="two") == {"c"}
    assert shown(admin_client, kind__exact="prompt") == {"c"}
    assert shown(admin_client, started_at__year=str(timezone.now().year)) == {"a", "b", "c"}
    for words in ("alice", "c-77", "timeout"):
        assert shown(admin_client, q=words) == {"b"}


def test_a_call_shows_what_was_kept_of_it(admin_client):
    bare, kept = (
        call(),
        call(arguments={"path": "<b>"}, result={"text": "fine"}, code="tool_failed", is_error=True),
    )
    page = pages.text(admin_client.get(f"{LIST}{kept.pk}/change/"))
    assert "{\n  &quot;path&quot;: &quot;&lt;b&gt;&quot;\n}" in page
    assert '<span class="mcp-state mcp-bad">tool_failed</span>' in page
    assert "Kept payloads" not in pages.text(admin_client.get(f"{LIST}{bare.pk}/change/"))


def test_calls_are_never_changed_nor_deleted(admin_client):
    row = call()
    assert admin_client.get(f"{LIST}add/").status_code == 403
    assert admin_client.post(f"{LIST}{row.pk}/change/", {"tool": "other"}).status_code == 403
    assert admin_client.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    admin_client.post(LIST, {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    assert ToolCall.objects.get().tool == "add"


def test_calls_need_their_own_permission(staff: MakeStaff):
    assert staff("view_serverconfig").get(LIST).status_code == 403
    assert staff("view_toolcall", name="auditor").get(LIST).status_code == 200


def test_the_number_of_queries_does_not_grow_with_the_calls(admin_client, admin_user):
    def calls(count: int) -> None:
        for number in range(count):
            row = ServerConfig.objects.create(name=f"s{ServerConfig.objects.count()}", command="x")
            call(f"t{number}", server=row, user=admin_user)

    calls(1)
    admin_client.get(LIST)
    with CaptureQueriesContext(connection) as few:
        pages.text(admin_client.get(LIST))
    calls(20)
    with CaptureQueriesContext(connection) as many:
        pages.text(admin_client.get(LIST))
    assert len(many) == len(few)
