"""The stock link treats the probe of the era in a way of its own; later it is a request like any other."""

from __future__ import annotations

import gc

import pytest

from mcp_client_app.client.stock_transport import OpenRequest
from mcp_client_app.exceptions import ServerUnavailableError
from tests.client.conftest import MakeHttpPeer
from tests.client.linking import call, linked

pytestmark = pytest.mark.anyio

PING = "server/discover"
"""The smallest request of the new era; before, it is the probe."""


async def test_a_ping_that_fails_says_nothing_of_later_requests(http_peer: MakeHttpPeer):
    peer = http_peer().start(modern=True)
    async with linked("stock", peer.spec) as link:
        before = await call(link)
        peer.stop()
        with pytest.raises(ServerUnavailableError):
            await link.request(PING, {})
        peer.start(modern=True)

        assert (await call(link))["result"] == before["result"]


async def test_nothing_is_kept_of_pings(http_peer: MakeHttpPeer):
    peer = http_peer().start(modern=True)
    async with linked("stock", peer.spec) as link:
        for _ in range(3):
            await link.request(PING, {})
        gc.collect()

        assert [each for each in gc.get_objects() if type(each) is OpenRequest] == []
