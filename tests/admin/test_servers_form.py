"""The form of a server: what it takes, what it shows, and whose changes it refuses to overwrite."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from mcp_client_app.models import ServerConfig
from tests.admin import pages

pytestmark = pytest.mark.django_db

PLANTED = "planted-5e2c"


def stored(**fields) -> ServerConfig:
    return ServerConfig.objects.create(
        **{"name": "one", "command": "npx", "env": {"TOKEN": PLANTED, "PLAIN": "${HOME}"}, **fields}
    )


# Saving


def test_a_stdio_server_is_added_with_all_that_belongs_to_it(admin_client):
    page = pages.form(pages.text(admin_client.get(pages.url("add"))))
    env = pages.secret(page, "env", "TOKEN", action="set", value=PLANTED)

    response = pages.add(
        admin_client, name="files", transport="stdio", command="npx", args="-y\nserver files", **env
    )

    assert response.status_code == 302
    row = ServerConfig.objects.get(name="files")
    assert (row.command, row.args, dict(row.env)) == ("npx", ["-y", "server files"], {"TOKEN": PLANTED})
    assert row.allowed_tools is None


def test_an_http_server_is_added_with_headers(admin_client):
    page = pages.form(pages.text(admin_client.get(pages.url("add"))))
    headers = pages.secret(page, "headers", "Authorization", action="set", value="Bearer x")

    pages.add(
        admin_client,
        name="remote",
        transport="streamable_http",
        url="https://example.com/mcp",
        allowed_tools="read_*\nlist",
        **headers,
    )

    row = ServerConfig.objects.get(name="remote")
    assert (row.url, dict(row.headers)) == ("https://example.com/mcp", {"Authorization": "Bearer x"})
    assert row.allowed_tools == ["read_*", "list"]


def test_saving_an_untouched_form_changes_nothing_that_is_stored(admin_client):
    row = stored(
        args=["a b", "", "[x]"],
        allowed_tools=[],
        blocked_tools=["x"],
        inherited_names=["LANG"],
        call_timeout=3,
    )
    before = ServerConfig.objects.values().get()

    assert pages.change(admin_client, row).status_code == 302

    after = ServerConfig.objects.values().get()
    touched = ("revision", "updated_at", "may_reference_environment")
    assert {k: v for k, v in after.items() if k not in touched} == {
        k: v for k, v in before.items() if k not in touched
    }


def test_the_log_names_the_changed_fields_and_no_value(admin_client):
    row = stored()
    data = pages.form(pages.text(admin_client.get(pages.url("change", row))))

    pages.change(admin_client, row, **pages.secret(data, "env", "TOKEN", action="set", value="other-9f"))

    message = LogEntry.objects.latest("pk").get_change_message()
    assert message == "Changed Environment."
    assert "other-9f" not in str(list(LogEntry.objects.values()))


# Secrets


def test_stored_secrets_are_in_no_page_and_references_are_shown(admin_client):
    row = stored(extra={"vendorKey": f"{PLANTED}-extra"})
    for page in ("change", "history", "offers", "delete"):
        assert PLANTED not in pages.text(admin_client.get(pages.url(page, row)))
    change = pages.text(admin_client.get(pages.url("change", row)))
    assert "${HOME}" in change
    assert "TOKEN" in change


@pytest.mark.parametrize(
    ("action", "value", "expected"),
    [
        ("keep", "", {"TOKEN": PLANTED, "PLAIN": "${HOME}"}),
        ("set", "new", {"TOKEN": "new", "PLAIN": "${HOME}"}),
        ("set", "", {"TOKEN": "", "PLAIN": "${HOME}"}),
        ("remove", "", {"PLAIN": "${HOME}"}),
        # Typed, and the choice beside it forgotten: without JavaScript nothing moves it.
        ("keep", "typed", {"TOKEN": "typed", "PLAIN": "${HOME}"}),
    ],
)
def test_each_secret_is_kept_replaced_or_removed(admin_client, action, value, expected):
    row = stored()
    data = pages.form(pages.text(admin_client.get(pages.url("change", row))))
    names = data["env-name"]
    place = names.index("TOKEN")
    data["env-action"][place], data["env-value"][place] = action, value

    assert admin_client.post(pages.url("change", row), data).status_code == 302

    row.refresh_from_db()
    assert dict(row.env) == expected


def test_a_secret_typed_into_a_form_that_fails_is_not_sent_back_and_has_to_be_typed_again(admin_client):
    row = stored()
    data = pages.form(pages.text(admin_client.get(pages.url("change", row))))
    new = pages.secret(data, "env", "NEW", action="set", value="typed-77")
    failed = admin_client.post(pages.url("change", row), data | new | {"command": [""]})
    page = pages.text(failed)

    assert "typed-77" not in page
    again = pages.form(page) | {"command": ["npx"]}
    assert "NEW" in again["env-name"]
    refused = admin_client.post(pages.url("change", row), again)
    assert "Type the value of &#x27;NEW&#x27; again" in pages.text(refused)
    place = again["env-name"].index("NEW")
    again["env-value"][place] = "typed-78"
    assert admin_client.post(pages.url("change", row), again).status_code == 302
    row.refresh_from_db()
    assert row.env["NEW"] == "typed-78"


def test_a_name_given_twice_is_refused(admin_client):
    row = stored()
    data = pages.form(pages.text(admin_client.get(pages.url("change", row))))

    twice = pages.secret(data, "env", "TOKEN", action="set", value="x", as_new=True)
    response = pages.change(admin_client, row, **twice)

    assert pages.errors(response)["env"] == ["'TOKEN' is given twice."]


# Transports


def test_changing_the_transport_empties_what_the_new_one_has_no_use_for(admin_client):
    row = stored(args=["x"], cwd="/tmp", inherit_environment=False)

    response = pages.change(admin_client, row, transport="streamable_http", url="https://example.com/mcp")

    assert response.status_code == 302, pages.errors(response)
    row.refresh_from_db()
    assert (row.command, row.args, dict(row.env), row.cwd) == ("", [], {}, "")
    assert row.inherit_environment is False


def test_hidden_fields_that_a_browser_does_not_send_are_emptied(admin_client):
    row = stored(args=["x"])
    data = pages.form(pages.text(admin_client.get(pages.url("change", row))))
    sent = {
        name: value
        for name, value in data.items()
        if name.partition("-")[0]
        not in ("command", "args", "env", "cwd", "inherit_environment", "inherited_names")
    }

    response = admin_client.post(
        pages.url("change", row),
        sent | {"transport": ["streamable_http"], "url": ["https://example.com/mcp"]},
    )

    assert response.status_code == 302, pages.errors(response)
    row.refresh_from_db()
    assert (row.command, row.args, dict(row.env)) == ("", [], {})
    assert row.inherit_environment is True


def test_a_value_typed_for_another_transport_is_an_error_and_is_not_dropped(admin_client):
    response = pages.add(
        admin_client, name="x", transport="stdio", command="npx", url="https://example.com/mcp"
    )
    assert pages.errors(response) == {
        "url": ["This transport has no use for a value here; empty it."],
    }


# Errors that name the place


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ('["a",\n "b" "c"]', "line 2, column 6"),
        ('["a", 5]', "Item 2 of the list is no string; put it in quotation marks."),
    ],
)
def test_an_error_in_a_list_names_the_place(admin_client, typed, message):
    response = pages.add(admin_client, name="x", transport="stdio", command="npx", args=typed)
    assert message in pages.errors(response)["args"][0]
    assert "x" in pages.text(response)


def test_what_the_model_refuses_stands_at_its_field(admin_client):
    response = pages.add(admin_client, name="x", transport="streamable_http", url="ftp://example.com")
    assert list(pages.errors(response)) == ["url"]


def test_a_name_that_differs_by_case_alone_is_refused_at_the_name(admin_client):
    stored()
    response = pages.add(admin_client, name="ONE", transport="stdio", command="npx")
    assert list(pages.errors(response)) == ["name"]


# Nobody's change is overwritten unseen


def opened_and_then_changed_by_other(client: Client, row: ServerConfig) -> pages.Data:
    data = pages.form(pages.text(client.get(pages.url("change", row))))
    other = Client()
    other.force_login(User.objects.create_superuser("alice"))
    pages.change(
        other, row, command="uvx", **pages.secret(data, "env", "TOKEN", action="set", value="alices")
    )
    return data


def test_an_outdated_form_is_told_who_changed_what_and_loses_nothing(admin_client):
    row = stored()
    data = opened_and_then_changed_by_other(admin_client, row)

    response = admin_client.post(pages.url("change", row), data | {"description": ["typed by me"]})

    told = " ".join(pages.errors(response)["__all__"])
    assert "alice has changed this server" in told
    assert "Command: now 'uvx'." in told
    assert "Environment: changed." in told
    assert "alices" not in pages.text(response)
    assert pages.form(pages.text(response))["description"] == ["typed by me"]
    row.refresh_from_db()
    assert (row.command, row.description) == ("uvx", "")


def test_saving_again_after_being_told_replaces(admin_client):
    row = stored()
    data = opened_and_then_changed_by_other(admin_client, row)
    told = admin_client.post(pages.url("change", row), data)

    assert admin_client.post(pages.url("change", row), pages.form(pages.text(told))).status_code == 302

    row.refresh_from_db()
    assert row.command == "npx"
    assert row.env["TOKEN"] == "alices"


def test_a_form_without_a_version_is_not_saved(admin_client):
    row = stored()
    response = pages.change(admin_client, row, version="", description="forged")
    assert "__all__" in pages.errors(response)
    row.refresh_from_db()
    assert row.description == ""


# The rest


def test_a_server_from_the_settings_is_shown_and_not_edited(admin_client, settings):
    settings.MCP_CLIENT_SERVERS = {"fixed": {"command": "npx", "env": {"TOKEN": PLANTED}}}
    pages.text(admin_client.get(pages.url("changelist")))
    row = ServerConfig.objects.get(name="fixed")

    page = pages.text(admin_client.get(pages.url("change", row)))

    assert PLANTED not in page
    assert 'name="command"' not in page
    assert admin_client.post(pages.url("change", row), {"command": "evil"}).status_code == 403
    assert admin_client.post(pages.url("delete", row), {"post": "yes"}).status_code == 403


def test_a_server_is_deleted_with_the_states_that_processes_reported(admin_client):
    from mcp_client_app.models import ServerState, WorkerProcess

    row = stored()
    ServerState.objects.create(worker=WorkerProcess.objects.create(host="h", pid=1), server=row)

    assert admin_client.post(pages.url("delete", row), {"post": "yes"}).status_code == 302

    assert not ServerConfig.objects.exists()
    assert not ServerState.objects.exists()
