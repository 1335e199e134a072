"""Import with preview and choice, and export."""

from __future__ import annotations

import json
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile

from mcp_client_app.admin import importing
from mcp_client_app.models import ServerConfig
from tests.admin import pages

pytestmark = pytest.mark.django_db

PLANTED = "planted-5e2c"
THREE = json.dumps(
    {
        "mcpServers": {
            "files": {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": PLANTED}},
            "remote": {"url": f"https://h.example/{PLANTED}", "headers": {"X-Key": PLANTED}},
            "broken": {"command": 5},
        }
    }
)


def preview(client, text: str = THREE) -> str:
    return pages.text(client.post(pages.url("import"), {"text": text}))


def ticket(page: str) -> str:
    found = re.search(r'name="ticket" value="([^"]*)"', page)
    assert found is not None
    return found[1]


def choose(client, page: str, *names: str, **more) -> str:
    data = {"chosen": "1", "ticket": ticket(page), "only": list(names), **more}
    return pages.text(client.post(pages.url("import"), data, follow=True))


def test_the_preview_stores_nothing_and_tells_of_each_entry(admin_client):
    page = preview(admin_client)
    assert not ServerConfig.objects.exists()
    assert re.search(r'value="files"[^>]* checked', page)
    assert re.search(r'value="broken"[^>]* disabled', page)
    assert "cannot be imported" in page


def test_only_what_was_chosen_is_imported(admin_client):
    page = choose(admin_client, preview(admin_client), "files")
    assert "created" in page
    row = ServerConfig.objects.get()
    assert (row.name, row.env["TOKEN"]) == ("files", PLANTED)
    assert LogEntry.objects.get().is_addition()


def test_the_secrets_of_the_text_are_in_no_page(admin_client):
    page = preview(admin_client)
    assert PLANTED not in page
    assert PLANTED not in choose(admin_client, page, "files", "remote")
    assert PLANTED not in preview(admin_client)


def test_an_update_is_shown_as_a_difference(admin_client):
    ServerConfig.objects.create(name="files", command="uvx", env={"TOKEN": "old"})
    page = preview(admin_client)
    assert "command: &#x27;uvx&#x27; → &#x27;npx&#x27;" in page
    assert "env changes" in page
    choose(admin_client, page, "files")
    assert ServerConfig.objects.get().command == "npx"
    assert LogEntry.objects.get().is_change()


def test_a_file_is_imported_as_a_pasted_text_is(admin_client):
    upload = SimpleUploadedFile("mcp.json", b"\xef\xbb\xbf// mine\n" + THREE.encode())
    page = pages.text(admin_client.post(pages.url("import"), {"file": upload}))
    choose(admin_client, page, "remote")
    assert ServerConfig.objects.get().url == f"https://h.example/{PLANTED}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "Paste a text or choose a file."),
        ({"text": '{"mcpServers": {'}, "line 1, column"),
        ({"text": "[]"}, "mcpServers"),
        ({"file": SimpleUploadedFile("mcp.json", b"\xff\xfe{")}, "UTF-8"),
    ],
)
def test_what_cannot_be_read_is_told(admin_client, data, message):
    page = pages.text(admin_client.post(pages.url("import"), data))
    assert message in page
    assert 'name="text"' in page


@pytest.mark.parametrize("as_file", [True, False])
def test_what_is_too_large_is_refused(admin_client, monkeypatch, as_file):
    monkeypatch.setattr(importing, "MAX_IMPORT_SIZE", 100)
    given = {"file": SimpleUploadedFile("mcp.json", THREE.encode())} if as_file else {"text": THREE}
    page = pages.text(admin_client.post(pages.url("import"), given))
    assert "This is larger than 100\xa0bytes." in page


def test_a_text_is_imported_once(admin_client):
    page = preview(admin_client)
    choose(admin_client, page, "files")
    assert "not at hand any more" in choose(admin_client, page, "remote")
    assert ServerConfig.objects.count() == 1


def test_halves_of_characters_break_no_page(admin_client):
    page = preview(
        admin_client, r'{"mcpServers": {"half \ud800": {"command": "x", "note \ud801": "\ud802"}}}'
    )
    assert "half \ufffd" in page
    assert "half a character, which cannot be stored" in page


def test_choosing_nothing_imports_nothing(admin_client):
    assert "No server was chosen" in choose(admin_client, preview(admin_client))
    assert not ServerConfig.objects.exists()


def test_where_sessions_live_in_the_browser_the_text_is_asked_for_again(admin_client, settings, admin_user):
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    admin_client.force_login(admin_user)
    page = preview(admin_client)
    assert ticket(page) == ""
    assert PLANTED not in str(admin_client.cookies)
    assert 'name="text"' in page
    choose(admin_client, page, "files", text=THREE)
    assert ServerConfig.objects.get().name == "files"


def test_all_or_selected_servers_are_exported_without_secrets(admin_client):
    choose(admin_client, preview(admin_client), "files", "remote")
    response = admin_client.get(pages.url("export"))
    assert response["Content-Disposition"] == 'attachment; filename="mcp.json"'
    exported = json.loads(response.content)["mcpServers"]
    assert set(exported) == {"files", "remote"}
    assert exported["files"]["env"] == {"TOKEN": None}

    row = ServerConfig.objects.get(name="files")
    action = {"action": "export_servers", "_selected_action": [row.pk]}
    selected = json.loads(admin_client.post(pages.url("changelist"), action).content)
    assert set(selected["mcpServers"]) == {"files"}
