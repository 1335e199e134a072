"""What servers ask for, on the guarded path: handlers of the settings, the audit, going on elsewhere."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections

from mcp_client_app import services
from mcp_client_app.datatypes import InputAnswer, InputRequest, defer_input
from mcp_client_app.exceptions import InputRequiredError, InvalidInputError
from mcp_client_app.models import ToolCall
from mcp_client_app.runtime import get_mcp_manager
from mcp_client_app.runtime.options import input_handlers
from tests.stored import close_connections, peer_entry, run_process

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "an-answer-that-is-nobodys-business"
ASK = {
    "method": "elicitation/create",
    "params": {
        "message": "Which key?",
        "requestedSchema": {"type": "object", "properties": {"key": {"type": "string"}}},
    },
}
SCRIPT = {"": {"inputRequests": {"key": ASK}, "requestState": "opaque-state"}}
OPTIONS = (f"--scenario=asks={json.dumps(SCRIPT)}", "--era=2026-07-28")

seen: list[Any] = []


def ask(request: InputRequest) -> InputAnswer:
    """Answer from the database, as handlers of projects do."""
    user = User.objects.get()
    seen.append((threading.current_thread().name, connections["default"]))
    return request.accept({"key": user.username})


async def aask(request: InputRequest) -> InputAnswer:
    """Do the same in a coroutine."""
    return await sync_to_async(ask)(request)


@pytest.fixture
def asking(add_mcp_server) -> Any:
    """The row of a server that asks for a key in each call."""
    seen.clear()
    return add_mcp_server("safe", peer_entry(*OPTIONS))


def told(result: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(result.text)
    return answer


@pytest.mark.parametrize("handler", ["ask", "aask"])
def test_a_handler_of_the_settings_may_use_the_database(asking, make_user, settings, mcp_manager, handler):
    user = make_user("call_tool")
    settings.MCP_CLIENT_INPUT_HANDLERS = {"elicitation": f"{__name__}.{handler}"}
    mcp_manager.input_handlers.update(input_handlers())

    result = services.call_tool("safe__echo", user=user)

    assert told(result)["inputResponses"] == {"key": {"action": "accept", "content": {"key": user.username}}}
    ((thread, used),) = seen
    assert thread == "mcp-input"
    assert used.connection is None  # closed when the handler was done


def test_a_call_that_asks_is_written_down_and_the_answers_are_not(asking, settings, caplog):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True

    with caplog.at_level(logging.DEBUG), pytest.raises(InputRequiredError) as caught:
        services.call_tool("safe__echo", {"text": "x"})
    response = {"key": {"action": "accept", "content": {"key": SECRET}}}
    with caplog.at_level(logging.DEBUG):
        services.call_tool(
            "safe__fail",
            {"message": "x"},
            input_responses=response,
            request_state=caught.value.request_state,
        )

    first, second = ToolCall.objects.order_by("pk")
    assert (first.code, first.server_name, first.tool) == ("input_required", "safe", "echo")
    assert second.code == "ok"
    assert second.arguments == {"message": "x"}
    assert SECRET not in caplog.text.replace(json.dumps(second.result), "")
    assert "opaque-state" not in caplog.text


def test_another_process_goes_on_with_what_was_stored(asking):
    with pytest.raises(InputRequiredError) as caught:
        services.call_tool("safe__echo", {"text": "x"})
    stored = json.dumps(caught.value.details())

    code = f"""
import json
from mcp_client_app import services
from mcp_client_app.runtime import close_mcp_manager
pending = json.loads({stored!r})
(key,) = pending["input_requests"]
result = services.call_tool(
    "safe__" + pending["tool"], {{"text": "x"}},
    input_responses={{key: {{"action": "accept", "content": {{"key": "k"}}}}}},
    request_state=pending["request_state"],
)
print(result.text)
close_mcp_manager()
"""
    reply = json.loads(run_process(code))

    assert reply["requestState"] == "opaque-state"
    assert reply["inputResponses"]["key"]["content"] == {"key": "k"}


def test_the_async_twin_takes_handlers_and_answers_too(asking):
    async def answer(request: InputRequest) -> InputAnswer:
        return request.accept({"key": "k"})

    async def use() -> None:
        with_handler = await services.acall_tool("safe__echo", on_input={"elicitation": answer})
        assert told(with_handler)["inputResponses"]["key"]["content"] == {"key": "k"}
        with pytest.raises(InputRequiredError) as caught:
            await services.acall_tool("safe__echo", on_input={"elicitation": defer_input})
        (request,) = caught.value.requests
        result = await services.acall_tool(
            "safe__echo",
            input_responses={"key": request.decline()},
            request_state=caught.value.request_state,
        )
        assert told(result)["inputResponses"] == {"key": {"action": "decline"}}
        await close_connections()

    asyncio.run(use())


def test_what_is_no_answer_is_written_down_as_such(asking):
    with pytest.raises(InvalidInputError):
        services.call_tool("safe__echo", input_responses={"key": {}})

    assert ToolCall.objects.get().code == "invalid_input"
    assert get_mcp_manager().connected_servers() == []
