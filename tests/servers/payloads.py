"""What the raw peers offer and answer, well-formed and malformed; no transport, no state.

Shared by every peer that builds its messages by hand. Standard library only, nothing heavy.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in ``typing``, which costs start-up time
if TYPE_CHECKING:
    from typing import Any

MODERN = "2026-07-28"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
SERVER_INFO = {"name": "faulty", "title": "Faulty peer", "version": "1.0"}
INSTRUCTIONS = "Expect the worst."

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
UNSUPPORTED_VERSION = -32022

META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_SERVER = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

READS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
WRITES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}


def tool(
    name: str, description: str, annotations: dict[str, Any] = READS, **properties: str
) -> dict[str, Any]:
    """Return a tool's entry; ``properties`` are the names and JSON types of its arguments, all required."""
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties),
        },
        "annotations": annotations,
    }


def integer_output(field: str) -> dict[str, Any]:
    """Return the output schema of an object with one integer."""
    return {"type": "object", "properties": {field: {"type": "integer"}}, "required": [field]}


TOOLS: list[dict[str, Any]] = [
    tool("echo", "Returns the text.", text="string"),
    {
        **tool("add", "Adds two numbers.", a="number", b="number"),
        "outputSchema": {
            "type": "object",
            "properties": {"result": {"type": "number"}},
            "required": ["result"],
        },
    },
    tool("sleep", "Answers after some seconds.", seconds="number"),
    tool("hang", "Never answers."),
    tool("wait", "Answers once a file exists.", path="string"),
    tool("meet", "Answers once `count` calls of it are in flight.", count="integer"),
    tool("fail", "Fails with a message.", message="string"),
    tool("big", "Returns a text of so many bytes.", bytes="integer"),
    tool("env", "Returns the environment as JSON."),
    tool("cwd", "Returns the working directory."),
    tool("pid", "Returns the process id."),
    tool("read", "Returns a file's text.", path="string"),
    tool("write", "Appends a line to a file.", WRITES, path="string", text="string"),
]

GOOD_TOOL = TOOLS[0]
_ECHO = {"description": "", "inputSchema": {"type": "object"}}

BAD_TOOLS: dict[str, Any] = {
    # Schemas that a typed layer refuses.
    "schema_missing": {"name": "schema_missing", "description": "No input schema."},
    "schema_null": {"name": "schema_null", "inputSchema": None},
    "schema_empty": {"name": "schema_empty", "inputSchema": {}},
    "schema_type_null": {"name": "schema_type_null", "inputSchema": {"type": None}},
    "schema_list": {"name": "schema_list", "inputSchema": []},
    "schema_string": {"name": "schema_string", "inputSchema": "object"},
    "schema_array": {"name": "schema_array", "inputSchema": {"type": "array"}},
    # Output schemas that are no reason to lose the tool.
    "output_id_only": {"name": "output_id_only", **_ECHO, "outputSchema": {"$id": "x"}},
    "output_array": {"name": "output_array", **_ECHO, "outputSchema": {"type": "array"}},
    "output_string": {"name": "output_string", **_ECHO, "outputSchema": "object"},
    # Schemas that are odd but pass on unchanged.
    "type_typo": {
        "name": "type_typo",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "strng"}}},
    },
    "recursive": {
        "name": "recursive",
        "inputSchema": {
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/N"}},
            "$defs": {
                "N": {
                    "type": "object",
                    "properties": {"child": {"$ref": "#/$defs/N"}, "kind": {"enum": [0, 1, None]}},
                }
            },
        },
    },
    # Names.
    "duplicate": {**GOOD_TOOL, "description": "The second tool of that name."},
    "name_dots": {"name": "a.b/c", **_ECHO},
    "name_accent": {"name": "naïve", **_ECHO},
    "name_kanji": {"name": "検索", **_ECHO},
    "name_long": {"name": "t" * 200, **_ECHO},
    "name_newline": {"name": "two\nlines", **_ECHO},
    "name_empty": {"name": "", **_ECHO},
    "name_missing": dict(_ECHO),
    "name_number": {"name": 7, **_ECHO},
    # Not tools at all, or with fields of the wrong kind.
    "null": None,
    "number": 5,
    "description_number": {"name": "description_number", "description": 5, "inputSchema": {"type": "object"}},
    "annotations_list": {"name": "annotations_list", **_ECHO, "annotations": ["readOnlyHint"]},
}
"""One entry of a listing for each way in which real servers get it wrong."""


def text_result(text: str, **more: Any) -> dict[str, Any]:
    """Return a tool result with one text block."""
    return {"content": [{"type": "text", "text": text}], "isError": False, **more}


UNKNOWN_BLOCKS: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "known"},
        {"type": "video", "url": "demo://film", "seconds": 3},
        {"type": "text", "text": 5},
        {"type": "image", "mimeType": "image/png", "data": "!!"},
        {"type": "image"},
        {"text": "a block without a type"},
        "bare string",
        None,
    ],
    "isError": False,
}

STRANGE_VALUES: dict[str, Any] = {
    "content": [{"type": "text", "text": "lone \ud800 surrogate, \x00 NUL, \x1b escape"}],
    "structuredContent": {
        "big": 12345678901234567890123,
        "exact": 9007199254740993,
        "nan": float("nan"),
        "infinity": float("-inf"),
        "key \udfff": "\ud83d",
    },
    "isError": False,
}
"""JSON as a careless serialiser writes it: Python's own ``json`` does."""

OUTPUT_MISMATCHES: dict[str, dict[str, Any]] = {
    "wrong": text_result("four", structuredContent={"n": "four"}),
    "missing": text_result("four"),
    "error": {**text_result("the real reason"), "isError": True, "structuredContent": {"code": 9}},
}
"""Results of a tool whose output schema asks for an integer ``n``."""

JUNK_NOTIFICATIONS: list[dict[str, Any]] = [
    {"method": "notifications/message", "params": {"level": "shouting", "data": "?"}},
    {"method": "notifications/message", "params": {"data": "no level"}},
    {"method": "$/x", "params": {"a": 1}},
    {"method": "notifications/progress", "params": {"progress": 1}},
    {"method": "notifications/message", "params": None},
    {"method": "notifications/resources/updated", "params": ["not", "an", "object"]},
    {"method": "notifications/cancelled", "params": {"requestId": 987654}},
]
"""Notifications that a client must survive, whatever it thinks of them."""

SERVER_REQUESTS: list[dict[str, Any]] = [
    {
        "method": "elicitation/create",
        "params": {
            "message": "Who are you?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    },
    {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
            "maxTokens": 5,
        },
    },
    {"method": "roots/list"},
    {"method": "ping"},
    {"method": "nothing/known", "params": {}},
]
"""What a server may ask of its client before it answers a call."""
