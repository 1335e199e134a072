"""Variables of the environment, from the row to the server: what is stored, and what the server gets."""

from __future__ import annotations

import json

import pytest

from mcp_client_app import services
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models import ServerConfig
from tests.client.http_peers import HttpPeer
from tests.stored import peer_entry

pytestmark = pytest.mark.django_db(transaction=True)

ODD = "pa$USERword$"
"""Dollars that are no references."""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASE_TOKEN", ODD)
    monkeypatch.setenv("CASE_EMPTY", "")
    monkeypatch.delenv("CASE_NOPE", raising=False)


def test_a_process_gets_the_value_and_the_row_keeps_the_reference(add_mcp_server):
    """C12, C13, C14: in braces and as a word; what is empty but set is empty; nothing is filled in twice."""
    env = {
        "A": "${CASE_TOKEN}",
        "B": "Bearer $CASE_TOKEN",
        "C": "${CASE_EMPTY}",
        "D": "${CASE_NOPE:-fallback}",
        "E": ODD,
        "F": "$${CASE_TOKEN}",
    }
    add_mcp_server("srv", {**peer_entry(), "env": env})

    seen = json.loads(services.call_tool("srv__env").text)

    expected = [ODD, f"Bearer {ODD}", "", "fallback", ODD, "${CASE_TOKEN}"]
    assert [seen[name] for name in env] == expected
    assert dict(ServerConfig.objects.get(name="srv").env) == env


def test_a_server_over_http_gets_the_value_in_url_and_headers(add_mcp_server, monkeypatch):
    """C12, C17, H23: the final newline of a token is dropped."""
    peer = HttpPeer().start()
    try:
        monkeypatch.setenv("CASE_PORT", str(peer.server.port))
        monkeypatch.setenv("CASE_TOKEN", "t0ken\n")
        url = "http://127.0.0.1:${CASE_PORT}/${CASE_PATH:-mcp}"
        add_mcp_server(
            "srv", {"type": "http", "url": url, "headers": {"Authorization": "Bearer ${CASE_TOKEN}"}}
        )

        services.call_tool("srv__echo", {})

        assert {item.headers["authorization"] for item in peer.server.requests} == {"Bearer t0ken"}
        assert {item.path for item in peer.server.requests} == {"/mcp"}
        assert ServerConfig.objects.get(name="srv").url == url
    finally:
        services.disconnect("srv")
        peer.close()


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"type": "http", "url": "http://${CASE_NOPE}/mcp"}, "url"),
        (
            {"type": "http", "url": "http://127.0.0.1:1/", "headers": {"X-Key": "${CASE_NOPE}"}},
            "headers.X-Key",
        ),
        ({**peer_entry(), "env": {"A": "${CASE_NOPE}"}}, "env.A"),
    ],
)
def test_a_missing_variable_fails_its_server_before_anything_is_started(add_mcp_server, entry, field):
    """C14, H24: the error names the field and the variable."""
    add_mcp_server("srv", entry)

    with pytest.raises(ConfigurationError, match="CASE_NOPE") as caught:
        services.call_tool("srv__env")

    assert caught.value.field == field
