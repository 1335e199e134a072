"""The page of one server: its tools, and why it is down."""

from __future__ import annotations

import pytest

from mcp_client_app import services
from mcp_client_app.exceptions import MCPClientError
from tests.admin import pages
from tests.stored import stored

pytestmark = pytest.mark.django_db(transaction=True)


def page_of(client, row, **query) -> str:
    return pages.text(client.get(pages.url("offers", row), query))


def test_tools_are_shown_with_schemas_and_the_names_that_models_see(admin_client):
    row = stored()
    services.connect("peer")
    page = page_of(admin_client, row)
    assert "<strong>add</strong>" in page
    assert "<code>peer__add</code>" in page
    assert "&quot;type&quot;: &quot;object&quot;" in page


def test_the_filter_keeps_what_fits(admin_client):
    row = stored()
    services.connect("peer")
    page = page_of(admin_client, row, q="ADD")
    assert "<strong>add</strong>" in page
    assert "<strong>echo</strong>" not in page
    assert 'value="ADD"' in page
    assert "Show all" in page


def test_what_was_left_out_is_shown_with_the_reason(admin_client):
    row = stored("peer", "--scenario", "bad_tools=all")
    status = services.connect("peer")
    page = page_of(admin_client, row)
    assert status.warnings
    assert page.count("<li>") >= len(status.warnings)
    assert "Warnings" in page


def test_a_broken_server_says_why(admin_client):
    row = stored("peer", "--scenario", "exit_at_start=3")
    with pytest.raises(MCPClientError):
        services.connect("peer")
    page = page_of(admin_client, row)
    assert "Last error" in page
    assert "<code>server_crashed</code>" in page
    assert "Standard error" in page
    assert "Next try" in page
    for line in services.server_stderr("peer"):
        assert line in page


def test_noise_and_log_messages_are_shown(admin_client):
    row = stored("peer", "--scenario", "banner", "--scenario", "log_messages")
    services.call_tool("peer__add", {"a": 1, "b": 2})
    page = page_of(admin_client, row)
    assert "lines that were no messages" in page
    assert "Log messages" in page


def test_what_is_searched_for_is_never_taken_for_html(admin_client):
    row = stored("peer")
    services.connect("peer")
    page = page_of(admin_client, row, q="<script>alert(1)</script>")
    assert "<script>alert" not in page


def test_an_unconnected_server_shows_no_tools_and_says_what_to_do(admin_client):
    page = page_of(admin_client, stored())
    assert "Connect the server to see what it offers." in page
