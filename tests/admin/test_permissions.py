"""Who may do what in the admin, also by forged requests."""

from __future__ import annotations

import pytest

from mcp_client_app.models import ServerConfig
from tests.admin import pages
from tests.admin.conftest import MakeStaff

pytestmark = pytest.mark.django_db

PLANTED = "planted-5e2c"
EDITOR = ("view_serverconfig", "add_serverconfig", "change_serverconfig", "delete_serverconfig")
STDIO_FILE = '{"mcpServers": {"evil": {"command": "sh", "args": ["-c", "id"]}}}'


def local(**fields) -> ServerConfig:
    return ServerConfig.objects.create(**{"name": "local", "command": "npx", **fields})


def remote(**fields) -> ServerConfig:
    return ServerConfig.objects.create(
        **{
            "name": "remote",
            "transport": "streamable_http",
            "url": f"https://h.example/{PLANTED}/?k={PLANTED}",
        }
        | fields
    )


# Without the permission to run code


@pytest.mark.parametrize(
    "fields",
    [
        {"transport": "stdio", "command": "sh"},
        {"transport": "in_process", "in_process": "key"},
        {"transport": "", "command": "sh"},
    ],
)
def test_an_editor_cannot_add_a_server_that_runs_code(staff: MakeStaff, settings, fields):
    """D16."""
    settings.MCP_CLIENT_IN_PROCESS_SERVERS = {"key": "a.b"}
    response = pages.add(staff(*EDITOR), name="evil", **fields)
    assert "transport" in pages.errors(response)
    assert not ServerConfig.objects.exists()


def test_an_editor_can_add_a_server_that_runs_none(staff: MakeStaff):
    response = pages.add(staff(*EDITOR), name="fine", url="https://example.com/mcp")
    assert response.status_code == 302, pages.errors(response)
    assert ServerConfig.objects.get().transport == "streamable_http"


@pytest.mark.parametrize(
    "changes",
    [
        {"command": ["sh"], "transport": ["stdio"]},
        {"transport": ["streamable_http"], "url": ["https://example.com"], "command": [""]},
        {"enabled": ["on"]},
    ],
)
def test_an_editor_cannot_change_a_server_that_runs_code(staff: MakeStaff, admin_client, changes):
    row = local(enabled=False)
    forged = pages.form(pages.text(admin_client.get(pages.url("change", row)))) | changes

    assert staff(*EDITOR).post(pages.url("change", row), forged).status_code == 403

    row.refresh_from_db()
    assert (row.command, row.transport, row.enabled) == ("npx", "stdio", False)


def test_an_editor_cannot_turn_a_server_into_one_that_runs_code(staff: MakeStaff):
    row = remote()
    response = pages.change(staff(*EDITOR), row, transport="stdio", url="", command="sh")
    assert "transport" in pages.errors(response)
    row.refresh_from_db()
    assert row.transport == "streamable_http"


def test_an_editor_cannot_enable_a_server_that_runs_code_by_an_action(staff: MakeStaff):
    row = local(enabled=False)
    client = staff(*EDITOR)

    response = client.post(
        pages.url("changelist"), {"action": "enable_servers", "_selected_action": [row.pk]}
    )

    assert "run_code_serverconfig" in pages.messages(response)[0]
    row.refresh_from_db()
    assert row.enabled is False


@pytest.mark.parametrize("name", ["evil", "local"])
def test_an_editor_cannot_bring_a_server_that_runs_code_into_use_by_an_import(staff: MakeStaff, name):
    local(enabled=False)
    client = staff(*EDITOR)
    preview = pages.text(client.post(pages.url("import"), {"text": STDIO_FILE.replace("evil", name)}))
    ticket = preview.partition('name="ticket" value="')[2].partition('"')[0]

    client.post(pages.url("import"), {"chosen": "1", "ticket": ticket, "only": [name]})

    assert not ServerConfig.objects.filter(enabled=True).exists()
    assert ServerConfig.objects.get(name="local").command == "npx"


def test_who_may_run_code_can_do_all_that(staff: MakeStaff):
    client = staff(*EDITOR, "run_code_serverconfig")
    assert pages.add(client, name="mine", transport="stdio", command="npx").status_code == 302
    row = ServerConfig.objects.get()
    assert pages.change(client, row, command="uvx").status_code == 302
    row.refresh_from_db()
    assert row.command == "uvx"


def test_referring_to_the_environment_needs_its_permission(staff: MakeStaff):
    response = pages.add(staff(*EDITOR), name="x", url="https://example.com/${SECRET}")
    assert "permission" in pages.errors(response)["url"][0]
    allowed = staff(*EDITOR, "reference_environment", name="other")
    assert pages.add(allowed, name="x", url="https://example.com/${SECRET}").status_code == 302


# Who may only look


def test_viewers_see_servers_without_secrets_and_without_the_path_of_the_url(staff: MakeStaff):
    rows = [
        local(env={"TOKEN": PLANTED}, extra={"apiKey": PLANTED}),
        remote(headers={"Authorization": PLANTED}),
    ]
    client = staff("view_serverconfig")
    for row in rows:
        for page in ("change", "history", "offers"):
            assert PLANTED not in pages.text(client.get(pages.url(page, row)))
    page = pages.text(client.get(pages.url("change", rows[1])))
    assert "https://h.example" in page
    assert "Authorization" in page
    assert PLANTED not in pages.text(client.get(pages.url("changelist")))
    assert PLANTED not in client.get(pages.url("export")).content.decode()


def test_viewers_change_nothing(staff: MakeStaff):
    row = remote()
    client = staff("view_serverconfig")
    assert client.post(pages.url("change", row), {"url": "https://evil.example"}).status_code == 403
    for page in ("connect", "disconnect", "refresh", "test"):
        assert client.post(pages.url(page, row)).status_code == 403
    assert client.get(pages.url("import")).status_code == 403
    assert client.post(pages.url("delete", row), {"post": "yes"}).status_code == 403
    listing = pages.text(client.get(pages.url("changelist")))
    assert "connect_servers" not in listing
    assert "enable_servers" not in listing


@pytest.mark.parametrize(
    "field", ["url__startswith", "env__TOKEN__startswith", "headers__icontains", "args__0"]
)
def test_secrets_cannot_be_found_out_by_filters_in_the_address(staff: MakeStaff, field):
    remote()
    response = staff("view_serverconfig").get(pages.url("changelist"), {field: "h"})
    assert response.status_code in (302, 400)


def test_secrets_cannot_be_found_out_by_searching(staff: MakeStaff):
    remote(headers={"Authorization": PLANTED})
    page = pages.text(staff("view_serverconfig").get(pages.url("changelist"), {"q": PLANTED}))
    assert "0 MCP servers" in page


# Everybody else


@pytest.mark.parametrize("page", ["changelist", "add", "import", "export"])
def test_others_see_nothing(client, staff: MakeStaff, page):
    assert staff().get(pages.url(page)).status_code == 403
    assert "/login/" in client.get(pages.url(page)).url


@pytest.mark.parametrize("page", ["change", "offers", "connect", "disconnect", "refresh", "test"])
def test_others_reach_no_page_of_a_server(client, staff: MakeStaff, page):
    row = remote()
    assert staff().post(pages.url(page, row)).status_code == 403
    assert "/login/" in client.post(pages.url(page, row)).url


def test_the_buttons_need_a_post(admin_client):
    row = remote()
    assert admin_client.get(pages.url("connect", row)).status_code == 405
    assert admin_client.post(pages.url("connect", ServerConfig(pk=row.pk + 1))).status_code == 404
