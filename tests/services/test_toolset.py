"""The callable toolset: what it shows, what a call comes to."""

from __future__ import annotations

import pytest

from mcp_client_app.exceptions import ToolBlockedError, UnknownToolError
from mcp_client_app.services.toolset import Toolset

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("the_shop")]


def test_a_call_gives_what_a_model_reads_and_what_the_server_sent():
    toolset = Toolset(["shop"], blocked_tools=["fail"])

    assert toolset.selection().names == ("shop__price", "shop__echo")
    outcome = toolset.call_tool("SHOP__price ", '{"article": "oak"}')

    assert (outcome.name, outcome.is_error, outcome.error) == ("shop__price", False, None)
    assert outcome.result is not None
    assert outcome.result.structured == {"article": "oak", "price": 3}
    with pytest.raises(ToolBlockedError):
        toolset.call_tool("fail", {"message": "x"})
    with pytest.raises(UnknownToolError):
        toolset.call_tool("nope")
    print(toolset.answer("shop__pric").text, toolset.answer("price", {}).text)
    print(toolset.answer("price", "{a").text)
