"""Scripted models: agents that are tested as the docs say, without a provider."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import TransactionTestCase, override_settings
from pydantic_ai.models import Model

from mcp_client_app import services
from mcp_client_app.agents.api import arun_agent, run_agent, stream_agent
from mcp_client_app.agents.loop import close_agents_loop
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.testing import MCPClientTestMixin, fake_server
from mcp_client_app.testing.models import scripted_model


def price(article: str) -> int:
    return {"oak": 3, "ash": 2}[article]


def clerk() -> Model:
    return scripted_model(
        [("shop__price", {"article": "oak"}), ("shop__price", {"article": "ash"})],
        [("shop__price", {"article": "ivy"})],
        lambda heard: " / ".join(heard),
    )


HEARD = "3 / 2 / Error calling mcp tool shop__price: Error executing tool price: 'ivy'"


@pytest.fixture(autouse=True)
def _loop_closed() -> Iterator[None]:
    yield
    close_agents_loop()


class AgentTests(MCPClientTestMixin, TransactionTestCase):
    mcp_servers = {"shop": fake_server("shop", tools=[price])}  # noqa: RUF012

    def setUp(self) -> None:
        super().setUp()
        services.add_agent("clerk", model="scripted:clerk", servers=["shop"])

    def test_its_calls_are_made_and_it_hears_what_came_of_them(self):
        result = run_agent("clerk", "How much?", model=clerk())

        assert (result.status, result.text, result.tool_rounds) == (RunStatus.COMPLETED, HEARD, 2)

    def test_it_begins_anew_when_the_user_has_spoken_again(self):
        model = clerk()
        first = run_agent("clerk", "How much?", model=model)

        assert run_agent("clerk", "And now?", model=model, history=first.messages).text == HEARD

    def test_it_can_be_the_model_of_an_agent_and_streams(self):
        with override_settings(MCP_CLIENT_MODELS={"scripted:clerk": f"{__name__}.clerk"}):
            events = list(stream_agent("clerk", "How much?"))

        assert [event.data["name"] for event in events if event.kind == "tool.call"] == ["shop__price"] * 3
        assert events[-1].data["text"] == HEARD

    def test_a_run_that_goes_beyond_the_script_fails(self):
        result = run_agent("clerk", "How much?", model=scripted_model([("shop__price", {"article": "oak"})]))

        assert (result.status, result.code) == (RunStatus.FAILED, "error")
        assert "AssertionError" in result.detail

    async def test_it_serves_coroutines(self):
        result = await arun_agent("clerk", "Hello?", model=scripted_model("Hello."))

        assert result.text == "Hello."
