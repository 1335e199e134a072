"""What a server over HTTP refuses, as clients of the REST API see it: never as a refusal of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcp_client_app.runtime import close_mcp_manager
from tests.client.http_peers import HttpPeer
from tests.stored import stored

REFUSALS = [
    (401, 502, "auth_required"),
    (403, 502, "auth_required"),
    (404, 503, "connection_lost"),
    (418, 502, "transport_error"),
    (429, 429, "throttled"),
    (500, 503, "server_unavailable"),
    (503, 503, "server_unavailable"),
]


@pytest.fixture
def peer(api) -> Iterator[HttpPeer]:
    """A server whose scenario the test names; closed after the connection to it."""
    peer = HttpPeer()
    yield peer
    close_mcp_manager()
    peer.close()


@pytest.mark.parametrize(("status", "ours", "code"), REFUSALS)
def test_a_refused_call_has_a_status_of_its_own_and_keeps_the_time_to_wait(
    api, peer: HttpPeer, status: int, ours: int, code: str
):
    """H07, H08: a 401 of the server's would send the client to our login; ``Retry-After`` is passed on."""
    peer.start("status", status=status, headers={"retry-after": "7", "www-authenticate": "Bearer"})
    stored("srv", transport="streamable_http", url=peer.server.url, command="", args=[])

    answer = api.call("srv__echo")

    assert (answer.status_code, answer.data["code"]) == (ours, code)
    assert "WWW-Authenticate" not in answer
    if status in (429, 503):
        assert answer["Retry-After"] == "7"


def test_a_server_that_is_away_says_so(api, peer: HttpPeer):
    """H28: with host and port, and nothing of the network's own words."""
    peer.start()
    stored("srv", transport="streamable_http", url=peer.server.url, command="", args=[])
    peer.stop()

    answer = api.call("srv__echo")

    assert (answer.status_code, answer.data["code"]) == (503, "server_unavailable")
    assert "refused the connection" in answer.data["detail"]
    assert "Traceback" not in answer.content.decode()
    assert "Errno" not in answer.content.decode()
