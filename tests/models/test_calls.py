from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from mcp_client_app.models import ServerConfig, ToolCall

pytestmark = pytest.mark.django_db


def test_an_audit_row_outlives_user_and_server():
    user = get_user_model().objects.create_user("ada")
    server = ServerConfig.objects.create(name="files", command="x")
    call = ToolCall.objects.create(
        user=user, username="ada", server=server, server_name="files", tool="read", agent="helper"
    )

    user.delete()
    server.delete()

    call.refresh_from_db()
    assert (call.user, call.server) == (None, None)
    assert (call.username, call.server_name, call.tool, call.agent) == ("ada", "files", "read", "helper")
    assert str(call) == "files: read"


def test_calls_are_told_apart_by_their_outcome_newest_first():
    first = ToolCall.objects.create(server_name="a", tool="x")
    second = ToolCall.objects.create(server_name="a", tool="x", code="timeout", is_error=True)

    assert list(ToolCall.objects.succeeded()) == [first]
    assert list(ToolCall.objects.failed()) == [second]
    assert list(ToolCall.objects.all()) == [second, first]
    assert ToolCall.objects.latest() == second


def test_each_call_has_a_correlation_id_and_keeps_no_payload_by_itself():
    first, second = (ToolCall.objects.create(server_name="a", tool="x") for _ in range(2))

    assert first.correlation_id != second.correlation_id
    assert (first.arguments, first.result) == (None, None)


def test_the_permissions_exist_after_migrating():
    names = Permission.objects.filter(content_type__app_label="mcp_client_app").values_list(
        "codename", flat=True
    )

    assert {
        "connect_serverconfig",
        "run_code_serverconfig",
        "reference_environment",
        "call_tool",
    } <= set(names)
