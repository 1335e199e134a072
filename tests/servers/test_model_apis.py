"""The fakes of the providers' APIs, driven by the providers' own packages."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.servers.model_apis import Asked, Call, Failure, ModelApi, Turn

SCRIPT = (
    Turn("I look.", (Call("files__read", {"path": "a b c"}), Call("web__search", {"q": "ü", "n": [1, 2]}))),
    Turn("", (Call("files__read", {}),)),
    Turn("All of it is done.\nReally."),
)
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
NAMES = ("files__read", "web__search")
ANSWERS = [
    ("I look.", [("files__read", {"path": "a b c"}), ("web__search", {"q": "ü", "n": [1, 2]})]),
    ("", [("files__read", {})]),
    ("All of it is done.\nReally.", []),
]


@pytest.fixture(scope="module")
def served() -> Iterator[ModelApi]:
    with ModelApi(SCRIPT) as served:
        yield served


@pytest.fixture
def api(served: ModelApi) -> ModelApi:
    for noted in (served.requests, served.asked, served.refusals):
        noted.clear()
    return served


@pytest.fixture(scope="module")
def chat_client(served: ModelApi) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.openai_url, api_key=served.key, max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def claude(served: ModelApi) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=served.url, api_key=served.key, max_retries=0) as client:
        yield client


def chat_tool(name: str, schema: Any = SCHEMA, **more: Any) -> Any:
    return {"type": "function", "function": {"name": name, "parameters": schema, **more}}


# Conversations right to the last message -----------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_chat(chat_client: openai.OpenAI, api: ModelApi, streamed: bool):
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "go"}]
    tools = [chat_tool(name) for name in NAMES]
    said = []
    while True:
        if streamed:
            with chat_client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
                deltas = "".join(event.delta for event in stream if event.type == "content.delta")
                message: Any = stream.get_final_completion().choices[0].message
            assert deltas == (message.content or "")
        else:
            completion = chat_client.chat.completions.create(model="m", messages=messages, tools=tools)
            assert completion.usage
            assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (11, 5)
            message = completion.choices[0].message
        calls: list[Any] = message.tool_calls or []
        said.append(
            (message.content or "", [(c.function.name, json.loads(c.function.arguments)) for c in calls])
        )
        if not calls:
            break
        asked_for: list[Any] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in calls
        ]
        messages.append({"role": "assistant", "content": message.content, "tool_calls": asked_for})
        messages += [{"role": "tool", "tool_call_id": c.id, "content": f"of {c.id}"} for c in calls]
    assert said == ANSWERS
    assert [asked.turns for asked in api.asked] == [0, 1, 2]
    assert api.asked[-1] == Asked(
        2, 2, "go", "Be brief.", NAMES, {"call_1_0": "of call_1_0"}, streamed=streamed
    )
    assert api.asked[1].results == {"call_0_0": "of call_0_0", "call_0_1": "of call_0_1"}


@pytest.mark.parametrize("streamed", [False, True])
def test_responses(chat_client: openai.OpenAI, api: ModelApi, streamed: bool):
    items: list[Any] = [{"role": "user", "content": "go"}]
    tools: list[Any] = [
        {"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in NAMES
    ]
    said = []
    while True:
        if streamed:
            with chat_client.responses.stream(model="m", input=items, tools=tools) as stream:
                deltas = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
                response: Any = stream.get_final_response()
            assert deltas == response.output_text
        else:
            response = chat_client.responses.create(model="m", input=items, tools=tools)
        assert response.usage.total_tokens == 16
        calls = [item for item in response.output if item.type == "function_call"]
        said.append((response.output_text, [(call.name, json.loads(call.arguments)) for call in calls]))
        items += [item.to_dict() for item in response.output]
        if not calls:
            break
        items += [
            {"type": "function_call_output", "call_id": call.call_id, "output": call.name} for call in calls
        ]
    assert said == ANSWERS
    assert [asked.turns for asked in api.asked] == [0, 1, 2]
    assert api.asked[-1].results == {"call_1_0": "files__read"}
    assert api.asked[1].results == {"call_0_0": "files__read", "call_0_1": "web__search"}


@pytest.mark.parametrize("streamed", [False, True])
def test_messages(claude: anthropic.Anthropic, api: ModelApi, streamed: bool):
    messages: list[Any] = [{"role": "user", "content": "go"}]
    tools: list[Any] = [{"name": name, "input_schema": SCHEMA} for name in NAMES]
    given: Any = {"model": "m", "max_tokens": 99, "tools": tools, "system": "Be brief."}
    said = []
    while True:
        if streamed:
            with claude.messages.stream(messages=messages, **given) as stream:
                deltas = "".join(stream.text_stream)
                answer: Any = stream.get_final_message()
        else:
            answer = claude.messages.create(messages=messages, **given)
            deltas = "".join(block.text for block in answer.content if block.type == "text")
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (11, 5)
        calls = [block for block in answer.content if block.type == "tool_use"]
        said.append((deltas, [(call.name, call.input) for call in calls]))
        messages.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
        if not calls:
            break
        results = [{"type": "tool_result", "tool_use_id": c.id, "content": f"of {c.id}"} for c in calls]
        results[-1]["is_error"] = True
        messages.append({"role": "user", "content": results})
    assert said == ANSWERS
    assert api.asked[-1] == Asked(
        2, 2, "go", "Be brief.", NAMES, {"toolu_1_0": "of toolu_1_0"}, ("toolu_1_0",), streamed=streamed
    )


# Refusals ------------------------------------------------------------------------------


def calls_of(*ids: str, name: str = "f", arguments: Any = "{}") -> dict[str, Any]:
    calls = [{"id": i, "type": "function", "function": {"name": name, "arguments": arguments}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result_of(call: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": content}


USER: Any = {"role": "user", "content": "go"}
DEEP = {"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}, {"type": "null"}]}}}

OPENAI_SCHEMAS: list[tuple[Any, str]] = [
    ({"type": "object"}, "object schema missing properties"),
    ({"properties": {}}, "got 'type: None'"),
    ({"type": "array", "items": {}}, "got 'type: 'array''"),
    ({"type": "object", "properties": {}, "anyOf": [SCHEMA]}, "at the top level"),
    (DEEP, "In context=('properties', 'a', 'anyOf', '0'), array schema missing items"),
    ({"type": "object", "properties": {"a": {"type": "object"}}}, "object schema missing properties"),
    ({"type": "object", "properties": []}, "[] is not of type"),
    ({"type": "object", "properties": {}, "required": True}, "true is not of type"),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}, "none"),
    ({"type": "object", "properties": {"a": {"$ref": "https://example.org/a"}}}, "can only point to"),
]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"messages": []}, "too short - 'messages'"),
        ({"messages": [USER], "tools": []}, "too short - 'tools'"),
        ({"messages": [USER], "tool_choice": "auto"}, "only allowed when 'tools'"),
        ({"messages": [USER], "parallel_tool_calls": True}, "only allowed when 'tools'"),
        ({"messages": [USER], "stream_options": {}}, "needs 'stream'"),
        ({"messages": [USER], "tools": [chat_tool("files.read")]}, "does not match pattern"),
        ({"messages": [USER], "tools": [chat_tool("f" * 65)]}, "does not match pattern"),
        ({"messages": [USER], "tools": [chat_tool("f"), chat_tool("f")]}, "must be unique"),
        ({"messages": [USER], "tools": [chat_tool(f"f{n}") for n in range(129)]}, "at most 128"),
        ({"messages": [USER], "tools": [chat_tool("f", description="d" * 1025)]}, "maximum length 1024"),
        ({"messages": [USER], "tools": [chat_tool("f", strict=True)]}, "'additionalProperties' is required"),
        ({"messages": [USER, calls_of("a")]}, "did not have response messages: a"),
        ({"messages": [USER, calls_of("a", "b"), result_of("a"), USER]}, "response messages: b"),
        ({"messages": [USER, calls_of("a"), result_of("b")]}, "must be a response"),
        ({"messages": [USER, calls_of("a"), result_of("a"), result_of("a")]}, "must be a response"),
        ({"messages": [USER, result_of("a")]}, "must be a response"),
        ({"messages": [USER, calls_of("a", "a"), result_of("a")]}, "Duplicate value"),
        ({"messages": [USER, calls_of("a" * 41), result_of("a" * 41)]}, "maximum length 40"),
        ({"messages": [USER, calls_of("a", arguments={}), result_of("a")]}, "Invalid type for 'arguments'"),
        ({"messages": [USER, calls_of("a", name="f.g"), result_of("a")]}, "'function.name' does not match"),
        ({"messages": [USER, calls_of("a"), result_of("a", None)]}, "expected a string, got None"),
        ({"messages": [USER, calls_of("a"), result_of("a", [{"type": "image_url"}])]}, "Only text."),
        ({"messages": [USER, {"role": "assistant", "content": None}]}, "expected a string, got null"),
        ({"messages": [USER, {**calls_of(), "content": "x"}]}, "too short - 'messages.tool_calls'"),
        ({"messages": [{"role": "function", "content": "x"}]}, "Invalid value: 'function'"),
        *(({"messages": [USER], "tools": [chat_tool("f", schema)]}, why) for schema, why in OPENAI_SCHEMAS),
    ],
)
def test_chat_refuses(chat_client: openai.OpenAI, api: ModelApi, body: dict[str, Any], why: str):
    with pytest.raises(openai.BadRequestError) as caught:
        chat_client.chat.completions.create(model="m", **copy.deepcopy(body))
    assert why in str(caught.value)
    assert caught.value.type == "invalid_request_error"
    assert len(api.refusals) == 1
    assert api.requests == []


def call_item(call: str, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call, "name": "f", "arguments": "{}", **more}


def output_item(call: str, output: Any = "ok") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call, "output": output}


def tool_item(**more: Any) -> dict[str, Any]:
    return {"type": "function", "name": "f", "parameters": SCHEMA, "strict": False, **more}


def added(*tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "additional_tools", "role": "developer", "tools": list(tools)}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"input": []}, "must be provided"),
        ({"input": "go", "tools": []}, "too short - 'tools'"),
        ({"input": "go", "tool_choice": "auto"}, "only allowed when 'tools'"),
        ({"input": "go", "tools": [tool_item(name="a b")]}, "does not match pattern"),
        ({"input": "go", "tools": [tool_item(parameters={"type": "object"})]}, "missing properties"),
        (
            {"input": "go", "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]},
            "'additionalProperties' is required",
        ),
        ({"input": [USER, call_item("a")]}, "No tool output found for function call a"),
        ({"input": [USER, output_item("a")]}, "No tool call found for function call output with call_id a"),
        ({"input": [USER, call_item("a"), output_item("a"), output_item("a")]}, "No tool call found"),
        ({"input": [USER, call_item("a"), call_item("a"), output_item("a")]}, "Duplicate item"),
        ({"input": [USER, call_item("a" * 65), output_item("a" * 65)]}, "call_id"),
        ({"input": [USER, call_item("a", id="call_a"), output_item("a")]}, "begins with 'fc'"),
        ({"input": [USER, call_item("a", arguments={}), output_item("a")]}, "arguments"),
        ({"input": [USER, call_item("a"), output_item("a", None)]}, "Invalid type"),
        ({"input": [USER, {"type": "other"}]}, "Invalid value: 'other'"),
        ({"input": [USER, added(tool_item()), added(tool_item())]}, "must be unique"),
        ({"input": [USER, added()]}, "Invalid 'input[1]'"),
        ({"input": [USER, added(tool_item(name="a b"))]}, "does not match pattern"),
    ],
)
def test_responses_refuses(chat_client: openai.OpenAI, api: ModelApi, body: dict[str, Any], why: str):
    with pytest.raises(openai.BadRequestError) as caught:
        chat_client.responses.create(model="m", **copy.deepcopy(body))
    assert why in str(caught.value)
    assert api.requests == []


def use(*ids: str, **more: Any) -> dict[str, Any]:
    blocks = [{"type": "tool_use", "id": i, "name": "f", "input": {}, **more} for i in ids]
    return {"role": "assistant", "content": blocks}


def results(*ids: str, **more: Any) -> dict[str, Any]:
    blocks = [{"type": "tool_result", "tool_use_id": i, "content": "ok", **more} for i in ids]
    return {"role": "user", "content": blocks}


IMAGE: dict[str, Any] = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"},
}
WORDS = {"type": "text", "text": "and"}


BETA: dict[str, Any] = {"extra_headers": {"anthropic-beta": "mid-conversation-tool-changes-2026-07-01"}}


def told(name: str) -> dict[str, Any]:
    """The system tells of a tool in the course of the conversation."""
    block = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}}
    return {"role": "system", "content": [block]}


def claude_tool(schema: Any = SCHEMA, name: str = "f") -> dict[str, Any]:
    return {"name": name, "input_schema": schema}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "assistant", "content": "hi"}, USER]}, "first message must use"),
        ({"messages": [USER, {"role": "assistant", "content": "hi"}]}, "prefill"),
        ({"messages": [USER], "tools": []}, "too short - 'tools'"),
        ({"messages": [USER], "tool_choice": {"type": "auto"}}, "only allowed when 'tools'"),
        ({"messages": [USER], "tools": [claude_tool(name="a.b")]}, "should match pattern"),
        ({"messages": [USER], "tools": [claude_tool(), claude_tool()]}, "must be unique"),
        ({"messages": [USER], "tools": [claude_tool({"properties": {}})]}, "Input should be 'object'"),
        ({"messages": [USER], "tools": [claude_tool({**SCHEMA, "oneOf": [{}]})]}, "does not support oneOf"),
        (
            {"messages": [USER], "tools": [claude_tool({"type": "object", "properties": {"$top": {}}})]},
            "Property keys should match",
        ),
        (
            {
                "messages": [USER],
                "tools": [claude_tool({"type": "object", "properties": {"a": {"type": "any"}}})],
            },
            "JSON schema is invalid",
        ),
        ({"messages": [USER, use("a"), USER]}, "without `tool_result` blocks immediately after: a"),
        ({"messages": [USER, use("a", "b"), results("a")]}, "immediately after: b"),
        ({"messages": [USER, use("a"), results("a", "b")]}, "unexpected `tool_use_id`"),
        ({"messages": [USER, use("a"), results("a", "a")]}, "must have a corresponding"),
        ({"messages": [USER, results("a")]}, "unexpected `tool_use_id`"),
        ({"messages": [USER, use("a"), results("a"), use("a"), results("a")]}, "ids must be unique"),
        ({"messages": [USER, use("a.b"), results("a.b")]}, "should match pattern"),
        ({"messages": [USER, use("a", input="{}"), results("a")]}, "valid dictionary"),
        (
            {"messages": [USER, use("a"), {"role": "user", "content": [WORDS, *results("a")["content"]]}]},
            "must come first",
        ),
        ({"messages": [USER, use("a"), results("a", content=" ")]}, "non-whitespace"),
        (
            {"messages": [USER, use("a"), results("a", content=[IMAGE], is_error=True)]},
            'all content must be type "text"',
        ),
        ({"messages": [{"role": "user", "content": " "}]}, "non-whitespace"),
        ({"messages": [{"role": "user", "content": []}]}, "must be non-empty"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{**IMAGE, "source": {**IMAGE["source"], "data": "?"}}]}
                ]
            },
            "Invalid base64",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{**IMAGE, "source": {**IMAGE["source"], "media_type": "a/b"}}],
                    }
                ]
            },
            "media_type",
        ),
        ({"messages": [USER], "system": " "}, "must be non-empty"),
        ({"messages": [USER, told("f")]}, "without its beta header"),
        ({"messages": [told("f"), USER], "tools": [claude_tool()], **BETA}, "first message must use"),
        ({"messages": [USER, told("f")], **BETA}, "references unknown tool 'f'"),
        (
            {"messages": [USER], "tools": [{**claude_tool(), "defer_loading": True}]},
            "At least one tool must have defer_loading=false",
        ),
    ],
)
def test_messages_refuses(claude: anthropic.Anthropic, api: ModelApi, body: dict[str, Any], why: str):
    with pytest.raises(anthropic.BadRequestError) as caught:
        claude.messages.create(model="m", max_tokens=9, **copy.deepcopy(body))
    assert why in str(caught.value)
    body_of_error: Any = caught.value.body
    assert body_of_error["error"]["type"] == "invalid_request_error"
    assert api.requests == []


def test_the_reports_of_refusals_also_allow_what_is_sound(
    chat_client: openai.OpenAI, claude: anthropic.Anthropic
):
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": ["array", "null"], "items": {"$ref": "#/$defs/b"}},
            "c": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "object", "properties": {}}]},
        },
        "$defs": {"b": {"type": "object", "properties": {"again": {"$ref": "#/$defs/b"}}}},
    }
    exact = {**SCHEMA, "additionalProperties": False}
    chat: Any = {"messages": [USER], "tools": [chat_tool("f", schema), chat_tool("g", exact, strict=True)]}
    assert chat_client.chat.completions.create(model="m", **chat).choices
    messages: Any = [USER, use("a"), results("a", content=[WORDS, IMAGE])]
    tools: Any = [claude_tool(schema)]
    assert claude.messages.create(model="m", max_tokens=9, messages=messages, tools=tools).content


def test_tools_may_come_in_the_course_of_a_conversation(
    chat_client: openai.OpenAI, claude: anthropic.Anthropic, api: ModelApi
):
    items: Any = [USER, added(tool_item(name="g"))]
    tools: Any = [tool_item()]
    assert chat_client.responses.create(model="m", input=items, tools=tools).output
    late: Any = [claude_tool(), {**claude_tool(name="g"), "defer_loading": True}]
    messages: Any = [USER, told("g")]
    assert claude.messages.create(model="m", max_tokens=9, messages=messages, tools=late, **BETA).content
    assert [asked.tools for asked in api.asked] == [("f", "g"), ("f", "g")]
    assert claude.messages.create(model="m", max_tokens=9, messages=[USER], tools=late).content
    assert api.asked[-1].tools == ("f",)


# Other ways to fail --------------------------------------------------------------------


def test_a_wrong_key_is_refused(api: ModelApi):
    with (
        openai.OpenAI(base_url=api.openai_url, api_key="other") as other,
        pytest.raises(openai.AuthenticationError),
    ):
        other.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}])
    with (
        anthropic.Anthropic(base_url=api.url, api_key="other") as claude,
        pytest.raises(anthropic.AuthenticationError),
    ):
        claude.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}])
    assert api.requests == []


def test_a_script_can_fail_and_can_depend_on_what_was_asked():
    def say(asked: Asked) -> Turn | Failure:
        return Turn(asked.prompt.upper()) if asked.prompt == "a" else Failure(503, "overloaded")

    with (
        ModelApi(say) as api,
        openai.OpenAI(base_url=api.openai_url, api_key=api.key, max_retries=0) as client,
    ):
        create: Callable[..., Any] = client.chat.completions.create
        answer = create(model="m", messages=[{"role": "user", "content": "a"}])
        assert answer.choices[0].message.content == "A"
        with pytest.raises(openai.InternalServerError, match="overloaded"):
            create(model="m", messages=[{"role": "user", "content": "b"}])


def test_more_turns_than_the_script_has_are_refused():
    with (
        ModelApi([]) as api,
        openai.OpenAI(base_url=api.openai_url, api_key=api.key, max_retries=0) as client,
        pytest.raises(openai.BadRequestError, match="has 0 turns"),
    ):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "a"}])
    assert api.refusals == ["The script has 0 turns, this would be another one."]


def test_a_held_stream_goes_on_when_it_is_resumed():
    with (
        ModelApi([Turn("one two", hold=True)]) as api,
        anthropic.Anthropic(base_url=api.url, api_key=api.key, max_retries=0) as claude,
        claude.messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}]
        ) as stream,
    ):
        texts = iter(stream.text_stream)
        assert next(texts) == "one "
        assert api.held.wait(10)
        api.resume.set()
        assert list(texts) == ["two"]
        assert not api.hung_up.is_set()


def test_a_client_that_hangs_up_is_noticed():
    with ModelApi([Turn("one two", hold=True)]) as api:
        with (
            openai.OpenAI(base_url=api.openai_url, api_key=api.key, max_retries=0) as client,
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "go"}], stream=True
            ) as stream,
        ):
            next(stream)
            assert api.held.wait(10)
        assert api.hung_up.wait(10)


def test_it_runs_as_a_process_of_its_own(tmp_path: Path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "hi", "calls": [{"name": "f", "arguments": {"a": 1}}]}]))
    command = [sys.executable, "-m", "tests.servers.model_apis", str(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        with anthropic.Anthropic(base_url=url, api_key="key-of-the-fake", max_retries=0) as claude:
            answer = claude.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}]
            )
        assert [block.type for block in answer.content] == ["text", "tool_use"]
        assert process.stdin
        process.stdin.close()
        assert process.wait(20) == 0
