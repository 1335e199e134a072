"""Who may what. The full matrix of endpoints, methods and permissions has a test of its own."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from tests.api.conftest import Api, user_with
from tests.stored import stored

CALL = {"name": "peer__echo", "arguments": {"text": "x"}}


@pytest.mark.parametrize(
    "place",
    [
        "",
        "servers/",
        "servers/peer/",
        "tools/",
        "resources",
        "calls/",
        "export/",
        "health/",
        "schema/",
        "nowhere",
    ],
)
def test_nobody_sees_anything(anonymous, place):
    stored("peer")
    assert anonymous.get(place).status_code in (401, 403)


@pytest.mark.parametrize(
    "place", ["servers/", "tools/call/", "resources/read/", "connect/", "import/", "servers/peer/test/"]
)
def test_nobody_does_anything(anonymous, place):
    assert anonymous.post(place, {}).status_code in (401, 403)


@pytest.mark.parametrize(
    ("method", "place", "codename"),
    [
        ("get", "servers/", "view_serverconfig"),
        ("get", "servers/peer/", "view_serverconfig"),
        ("get", "servers/peer/logs/", "view_serverconfig"),
        ("get", "export/", "view_serverconfig"),
        ("get", "calls/", "view_toolcall"),
        ("get", "tools/", "view_serverconfig"),
        ("get", "tools/", "call_tool"),
        ("get", "servers/peer/tools/", "call_tool"),
        ("post", "tools/call/", "call_tool"),
        ("post", "servers/peer/connect/", "connect_serverconfig"),
        ("post", "servers/peer/disconnect/", "connect_serverconfig"),
        ("post", "servers/peer/refresh/", "connect_serverconfig"),
        ("post", "servers/peer/test/", "connect_serverconfig"),
    ],
)
def test_one_permission_is_enough_and_without_it_the_answer_names_it(api_as, method, place, codename):
    stored("peer")
    body = [CALL] if method == "post" else []

    refused = getattr(api_as(name="plain"), method)(place, *body)
    allowed = getattr(api_as(codename), method)(place, *body)

    assert (refused.status_code, refused.data["code"]) == (403, "permission_denied")
    assert refused.data["permission"].startswith("mcp_client_app.")
    assert allowed.status_code == 200, allowed.data


def test_refusals_come_before_the_body_is_read(api_as):
    plain = api_as()
    answer = plain.client.generic("POST", "/api/mcp/servers/", b"{", "application/json")
    assert answer.status_code == 403


def test_an_inactive_user_is_nobody(api_as):
    client = api_as("view_serverconfig")
    User.objects.update(is_active=False)
    assert client.get("servers/").status_code in (401, 403)


def test_an_import_needs_adding_and_changing(api_as):
    body = {"config": {"mcpServers": {"a": {"url": "https://example.com"}}}}
    assert api_as("add_serverconfig", name="adds").post("import/", body).status_code == 403
    assert (
        api_as("add_serverconfig", "change_serverconfig", name="both").post("import/", body).status_code
        == 200
    )


class Everybody:
    """A permission class of a project that is careless."""

    def has_permission(self, request, view):
        return True


def test_a_class_of_the_project_takes_the_place_of_ours_but_the_services_ask_all_the_same(
    anonymous, api_as, settings
):
    settings.MCP_CLIENT_API_PERMISSIONS = [f"{__name__}.Everybody"]

    assert anonymous.get("health/").status_code == 200
    refused = anonymous.get("servers/")
    assert (refused.status_code, refused.data["permission"]) == (403, "mcp_client_app.view_serverconfig")
    assert anonymous.post("tools/call/", CALL).status_code == 403
    assert anonymous.get("calls/").status_code == 403
    assert anonymous.get("tools/").status_code == 403
    assert anonymous.post("servers/peer/connect/").status_code == 403


@pytest.mark.usefixtures("_site")
def test_a_form_of_another_site_is_refused():
    client = Api(user_with("call_tool"))
    client.client.handler.enforce_csrf_checks = True
    answer = client.post("tools/call/", CALL)
    assert (answer.status_code, answer.data["code"]) == (403, "permission_denied")
    assert "CSRF" in answer.data["detail"]
