"""Synchronous and asynchronous views in one ASGI process: one manager, right replies, no deadlock."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.deployment.sites import KINDS, Answer, Ground, Site, deployed
from tests.deployment.watching import in_use, text

CALLS = 100
PLACES = ("/agents/services/", "/agents/services/async/")


@pytest.fixture(scope="module")
def site(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with deployed(KINDS["uvicorn-1"], ground, tmp_path_factory.mktemp("views")) as running:
        yield running


def agent(site: Site, place: str, wanted: str, **arguments: object) -> Answer:
    """Have a view of the example project call the tool whose name holds ``wanted``."""
    return site.ask("POST", place, {"wanted": wanted, "arguments": arguments})


def test_sync_and_async_views_share_one_connection_and_mix_no_replies(site: Site):
    site.add("mixed")
    wanted = [f"call {number}" for number in range(CALLS)]
    answers = site.at_once(
        [
            partial(agent, site, PLACES[number % 2], "mixed__echo", text=each)
            for number, each in enumerate(wanted)
        ]
    )
    assert [text(answer) for answer in answers] == wanted

    [pid] = in_use(site, "mixed")
    for place in PLACES:
        assert text(agent(site, place, "mixed__pid")) == pid


def test_a_sync_view_that_waits_for_its_server_lets_an_async_one_go_on(site: Site):
    """The peer answers these calls only together: none, should one block another."""
    site.add("meeting")
    answers = site.at_once([partial(agent, site, place, "meeting__meet", count=4) for place in PLACES * 2])
    assert [text(answer) for answer in answers] == ["met 4"] * 4
