"""Code that calls a model itself, with a provider's own package, and leaves only the tools to a toolset."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest

from mcp_client_app.services.toolset import Toolset
from mcp_client_app.testing import fake_server
from tests.agents.providers import told
from tests.servers.model_apis import Call, ModelApi, Turn
from tests.servers.sdk_server import make_server

SCRIPT = (
    Turn(
        "I look.",
        (
            Call("shop__price", {"article": "tea"}),
            Call("peer__image", {}),
            Call("peer__add", {"a": 1, "b": "two"}),
            Call("peer__fail", {"message": "no stock"}),
            Call("shop__prize", {}),
        ),
    ),
    Turn("", (Call("peer__add", {"a": 1, "b": 2}), Call("peer__echo", {"text": ""}))),
    Turn("Done, all of it."),
)

streamed_or_not = pytest.mark.parametrize("streamed", [False, True])


@pytest.fixture
def api() -> Iterator[ModelApi]:
    with ModelApi(SCRIPT) as served:
        yield served


@pytest.fixture
def toolset(shop: Any, add_mcp_server: Callable[..., Any]) -> Iterator[Toolset]:
    add_mcp_server("peer", make_server())
    with Toolset(["shop", "peer"], blocked_tools=["crash", "hang"]) as made:
        yield made


def check(api: ModelApi, said: str) -> None:
    assert said == SCRIPT[-1].text
    assert api.refusals == []
    assert [asked.turns for asked in api.asked] == [0, 1, 2]
    assert "peer__crash" not in api.asked[0].tools
    price, image, bad, failed, unknown = told(api.asked[1])
    assert price == "tea costs 3"
    assert image
    assert bad.startswith("Error calling mcp tool peer__add:")
    assert '"two"' in bad
    assert failed.startswith("Error calling mcp tool peer__fail:")
    assert "shop__price" in unknown
    total, empty = told(api.asked[2])
    assert json.loads(total) == {"result": 3.0}
    assert empty == "(The tool returned nothing.)"


@streamed_or_not
def test_chat_completions(api: ModelApi, toolset: Toolset, streamed: bool):
    messages: list[Any] = [{"role": "user", "content": "go"}]
    with openai.OpenAI(base_url=api.openai_url, api_key=api.key, max_retries=0) as client:
        while True:
            request: Any = {"model": "m", "messages": messages, **toolset.for_openai().request()}
            message: Any
            if streamed:
                with client.chat.completions.stream(**request) as stream:
                    message = stream.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(**request).choices[0].message
            if not message.tool_calls:
                break
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in message.tool_calls
            ]
            messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
            for call in message.tool_calls:
                result = toolset.answer(call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result.for_openai()})
    check(api, message.content)


@streamed_or_not
def test_responses(api: ModelApi, toolset: Toolset, streamed: bool):
    items: list[Any] = [{"role": "user", "content": "go"}]
    with openai.OpenAI(base_url=api.openai_url, api_key=api.key, max_retries=0) as client:
        while True:
            request: Any = {"model": "m", "input": items, **toolset.for_openai(api="responses").request()}
            response: Any
            if streamed:
                with client.responses.stream(**request) as stream:
                    response = stream.get_final_response()
            else:
                response = client.responses.create(**request)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            items += [item.to_dict() for item in response.output]
            for call in calls:
                output = toolset.answer(call.name, call.arguments).for_openai()
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    check(api, response.output_text)


@streamed_or_not
def test_messages(api: ModelApi, toolset: Toolset, streamed: bool):
    messages: list[Any] = [{"role": "user", "content": "go"}]
    with anthropic.Anthropic(base_url=api.url, api_key=api.key, max_retries=0) as client:
        while True:
            listed = toolset.for_anthropic().request()
            request: Any = {"model": "m", "max_tokens": 99, "messages": messages, **listed}
            answer: Any
            if streamed:
                with client.messages.stream(**request) as stream:
                    answer = stream.get_final_message()
            else:
                answer = client.messages.create(**request)
            uses = [block for block in answer.content if block.type == "tool_use"]
            if not uses:
                break
            messages.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
            results = [(use.id, toolset.answer(use.name, use.input)) for use in uses]
            blocks = [
                {
                    "type": "tool_result",
                    "tool_use_id": given,
                    "content": result.for_anthropic(),
                    "is_error": result.is_error,
                }
                for given, result in results
            ]
            messages.append({"role": "user", "content": blocks})
    check(api, answer.content[0].text)
    assert api.asked[1].images == 1
    assert len(api.asked[1].failed) == 3


def test_without_tools_requests_have_no_list(shop: Any, add_mcp_server: Callable[..., Any]):
    add_mcp_server("bare", fake_server("bare"))
    with ModelApi([Turn("hello")]) as api, Toolset(["bare"]) as toolset:
        request: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        with openai.OpenAI(base_url=api.openai_url, api_key=api.key, max_retries=0) as client:
            answer: Any = client.chat.completions.create(**request, **toolset.for_openai().request())
    assert answer.choices[0].message.content == "hello"
    assert "tools" not in api.requests[0]
