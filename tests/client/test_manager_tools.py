"""Tools as servers really offer them, through both links and in both eras: schemas, names, results.

Most of the cases T; those about single repairs are in the tests of leniency.
"""

from __future__ import annotations

import json
import re
import socket
from typing import Any

import pytest

from mcp_client_app.datatypes import Progress
from mcp_client_app.exceptions import InvalidArgumentsError, ToolError
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import LINKS
from tests.servers import payloads

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
KINDS = pytest.mark.parametrize("kind", LINKS)


def instead(**results: Any) -> str:
    """Return the scenario of a peer that answers these methods so; ``_`` stands for the slash."""
    return "instead=" + json.dumps({name.replace("_", "/"): result for name, result in results.items()})


def a_tool(name: str = "t", **fields: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


# Schemas -------------------------------------------------------------------------------

ODD_SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$id": "x",
    "type": "object",
    "properties": {
        "tree": {"$ref": "#/$defs/N"},
        "count": {"type": "integer", "enum": [0, 1]},
        "kind": {"enum": [0, 1, None], "default": None},
        "nothing": {"type": "null", "const": None},
        "anything": True,
        "never": False,
        "either": {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {}}]},
        "x-mine": {"type": "string", "x-order": None},
    },
    "required": [],
    "additionalProperties": False,
    "$defs": {"N": {"type": "object", "properties": {"child": {"$ref": "#/$defs/N"}}}},
    "examples": [None, {"tree": None}],
}


@ERAS
@KINDS
def test_schemas_come_out_as_the_server_wrote_them(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool
):
    # T12, T13: what a provider cannot bear is changed for that provider, never here.
    tool = a_tool(inputSchema=ODD_SCHEMA, outputSchema=ODD_SCHEMA)
    manager = manage(peer("srv", instead(tools_list={"tools": [tool]}), modern=modern), default_link=kind)
    (found,) = manager.list_tools("srv")
    assert found.input_schema == ODD_SCHEMA
    assert found.output_schema == ODD_SCHEMA
    assert (found.warnings, manager.status("srv").warnings) == ((), ())


@ERAS
@KINDS
def test_a_mistake_in_a_schema_is_told_and_the_tool_can_be_called(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool
):
    # T14
    schema = {"type": "object", "properties": {"text": {"type": "strng"}}}
    tools = [a_tool("echo", inputSchema=schema), a_tool("add", title=["no title"])]
    manager = manage(peer("srv", instead(tools_list={"tools": tools}), modern=modern), default_link=kind)
    echo, add = manager.list_tools("srv")
    assert echo.input_schema == schema
    (warning,) = echo.warnings
    assert warning.startswith("its inputSchema is no valid JSON Schema: properties/text/type: ")
    assert add.warnings == ("its title is no string and was left out",)
    assert set(manager.status("srv").warnings) == {
        f"tool 'echo': {warning}",
        f"tool 'add': {add.warnings[0]}",
    }
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"


@KINDS
def test_no_schema_makes_the_client_fetch_anything(manage: MakeManager, peer: MakePeer, kind: str):
    # T14, and a neighbour of D16: "$schema" and "$ref" are addresses that a server may choose.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema"
        schema = {"$schema": url, "type": "object", "properties": {"text": {"$ref": url}}}
        tool = a_tool("add", inputSchema=schema, outputSchema=schema)
        manager = manage(peer("srv", instead(tools_list={"tools": [tool]})), default_link=kind)
        result = manager.call_tool("srv__add", {"a": 1, "b": 2})
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert result.text == "3"
    assert "the tool's output schema is unusable" in result.warnings[0]
    assert manager.list_tools("srv")[0].warnings == (
        f"its inputSchema is no valid JSON Schema: its $schema {url!r} is not known",
    )


@ERAS
@KINDS
def test_what_php_writes_for_an_empty_object_is_one(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool
):
    # T09: {} is written as [] there.
    tool = a_tool(inputSchema={"type": "object", "properties": [], "required": []})
    manager = manage(peer("srv", instead(tools_list={"tools": [tool]}), modern=modern), default_link=kind)
    (found,) = manager.list_tools("srv")
    assert found.input_schema["properties"] == {}


# Names ---------------------------------------------------------------------------------


@KINDS
def test_long_names_that_begin_alike_stay_apart_and_lead_to_their_tools(
    manage: MakeManager, peer: MakePeer, kind: str
):
    # T05, T06, T08: the longest name that a server may have, and tools far over what providers allow.
    names = ["get_user", "get_users", *(f"{'tool_' * 40}{number}" for number in range(3)), "a.b/c", "検索"]
    server = peer("s" * 40, instead(tools_list={"tools": [a_tool(name) for name in names]}))
    manager = manage(server, default_link=kind)
    tools = manager.list_tools(server.name)
    public = [tool.public_name for tool in tools]
    assert [tool.name for tool in tools] == names
    assert len(set(public)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in public)
    for name in public:
        with pytest.raises(InvalidArgumentsError, match="Unknown tool"):
            manager.call_tool(name)
    assert server.calls() == names


# Results -------------------------------------------------------------------------------


@ERAS
@KINDS
def test_a_call_is_one_request_whatever_is_wrong_with_the_other_tools(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool
):
    # T18: the SDK would list the tools anew for one that it has not validated.
    server = peer("srv", "bad_tools", "output_schema_mismatch=missing", modern=modern)
    result = manage(server, default_link=kind).call_tool("srv__echo", {"text": "hi"})
    assert result.text == "four"
    methods = [method for method in server.methods() if method != "subscriptions/listen"]
    assert methods[methods.index("tools/call") :] == ["tools/call"]
    assert methods.count("tools/list") == 1


OUTPUT = payloads.integer_output("n") | {"additionalProperties": False}


@ERAS
@KINDS
@pytest.mark.parametrize(
    ("result", "warnings"),
    [
        ({"content": [], "structuredContent": {"n": 1}, "isError": False, "more": {"n": "x"}}, 0),
        ({"content": [], "structuredContent": {"n": 1, "content": []}}, 1),
        ({"content": [{"type": "text", "text": '{"n": 1}'}]}, 1),
        ({"content": [], "structuredContent": {"content": [], "structuredContent": {"n": 1}}}, 2),
    ],
)
def test_only_the_structured_content_is_held_to_the_output_schema(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool, result: dict[str, Any], warnings: int
):
    # T16, T29
    tools = {"tools": [a_tool(outputSchema=OUTPUT)]}
    server = peer("srv", instead(tools_list=tools, tools_call=result), modern=modern)
    found = manage(server, default_link=kind).call_tool("srv__t")
    assert len(found.warnings) == warnings
    assert found.structured == result.get("structuredContent")
    assert not found.is_error


@ERAS
@KINDS
def test_the_real_reason_of_a_failure_reaches_the_caller(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool
):
    # T17
    failed = {**payloads.text_result("disk full"), "isError": True, "structuredContent": {"code": 9}}
    tools = {"tools": [a_tool(outputSchema=OUTPUT)]}
    server = peer("srv", instead(tools_list=tools, tools_call=failed), modern=modern)
    manager = manage(server, default_link=kind)
    result = manager.call_tool("srv__t")
    assert (result.is_error, result.text, result.structured, result.warnings) == (
        True,
        "disk full",
        {"code": 9},
        (),
    )
    with pytest.raises(ToolError, match="disk full"):
        manager.call_tool("srv__t", raise_on_error=True)


@ERAS
@KINDS
def test_a_rate_limit_that_is_told_as_a_result_is_passed_on_as_it_is(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool
):
    # T26: a tool's failure is the caller's to judge; nothing is tried again.
    limited = {**payloads.text_result("429: rate limit exceeded, retry after 1 s"), "isError": True}
    server = peer("srv", instead(tools_call=limited), modern=modern, trust_annotations=True)
    result = manage(server, default_link=kind).call_tool("srv__echo", {"text": "hi"})
    assert result.text == "429: rate limit exceeded, retry after 1 s"
    assert result.raw["content"] == limited["content"]
    assert server.calls() == ["echo"]


@ERAS
@KINDS
def test_what_a_server_asks_during_a_call_is_refused_and_the_call_goes_on(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool
):
    # T24
    server = peer("srv", "server_request", modern=modern)
    replies = json.loads(manage(server, default_link=kind).call_tool("srv__echo", {"text": "hi"}).text)
    assert set(replies) == {request["method"] for request in payloads.SERVER_REQUESTS}
    for method in ("elicitation/create", "sampling/createMessage", "roots/list", "nothing/known"):
        assert replies[method]["code"] in (-32600, -32601, -32602), method


@ERAS
@KINDS
def test_only_good_progress_reaches_the_callback(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool
):
    # T23
    manager = manage(peer("srv", "bad_progress", modern=modern), default_link=kind)
    seen: list[Progress] = []
    assert manager.call_tool("srv__echo", {"text": "hi"}, on_progress=seen.append).text == "hi"
    assert seen == [Progress(0.5, None, None), Progress(1, 2, "good")]
    assert manager.call_tool("srv__echo", {"text": "without"}).text == "without"


@ERAS
@KINDS
def test_empty_results_are_successes_and_structure_alone_is_text(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool
):
    # T19, T22
    empty = manage(peer("empty", "empty_content", modern=modern), default_link=kind)
    assert empty.call_tool("empty__echo", {"text": "hi"}).is_error is False
    structured = manage(peer("only", "structured_only", modern=modern), default_link=kind)
    result = structured.call_tool("only__echo", {"text": "hi"})
    assert (json.loads(result.text), result.structured) == ({"answer": 42}, {"answer": 42})


@ERAS
@KINDS
def test_bad_base64_is_passed_on_and_never_decoded(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool
):
    # T28, T21
    result = manage(peer("srv", "unknown_blocks", modern=modern), default_link=kind).call_tool(
        "srv__echo", {"text": "hi"}
    )
    assert result.content[3] == {"type": "image", "mimeType": "image/png", "data": "!!"}
    assert [block["type"] for block in result.content].count("image") == 1
    assert len(result.content) == len(payloads.UNKNOWN_BLOCKS["content"])
