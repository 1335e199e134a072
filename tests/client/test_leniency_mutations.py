"""One wrong value, wherever it stands, costs itself at most: never the whole listing, never the whole result.

Complete results of every kind are taken, and each value in them is replaced by many wrong ones, or left
out. What the repairs make of it must pass the SDK's typed layer in each era. The cases are T09, T11 and T21
and all their neighbours.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import mcp_types as types
import pytest
from mcp_types import methods

from mcp_client_app.client.leniency import Repairer

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
MODERN = "2026-07-28"

WRONG: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    10**30,
    "",
    "x",
    "a\nb",
    [],
    [None],
    [1],
    ["x"],
    [[]],
    {},
    {"a": None},
    {"a": 1},
    {"a": "x"},
    {"type": "text"},
    {"type": "object"},
    [{"type": "text", "text": "t"}],
    {"$ref": "#"},
]
MISSING = object()

ICONS = [{"src": "data:,", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"}]
HINTS = {"audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2025-01-01T00:00:00Z"}
ABOUT = {"title": "T", "description": "d", "icons": ICONS, "_meta": {"k": 1}}
RESOURCE = {"name": "n", "mimeType": "text/plain", "size": 3, "annotations": HINTS, **ABOUT}
BLOB = {"uri": "a://b", "mimeType": "x/y", "blob": "aGk=", "_meta": {}}
ARGUMENT = {"name": "a", "title": "x", "description": "d", "required": True}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"n": {"type": "integer"}, "any": True},
    "required": ["n"],
}

RESULTS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {
            "completions": {},
            "experimental": {"x": {"y": 1}},
            "logging": {},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "tools": {"listChanged": True},
            "tasks": {"cancel": {}, "list": {}, "requests": {"tools": {"call": {}}}},
        },
        "serverInfo": {"name": "n", "version": "1", "websiteUrl": "x", **ABOUT},
        "instructions": "i",
    },
    "server/discover": {
        "supportedVersions": [MODERN],
        "capabilities": {
            "completions": {},
            "experimental": {"x": {"y": 1}},
            "extensions": {"x": {"y": 1}},
            "logging": {},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "tools": {"listChanged": True},
        },
        "instructions": "i",
    },
    "tools/list": {
        "tools": [
            {
                "name": "a",
                "inputSchema": SCHEMA,
                "outputSchema": SCHEMA,
                "annotations": {
                    "title": "t",
                    "readOnlyHint": True,
                    "destructiveHint": False,
                    "idempotentHint": True,
                    "openWorldHint": False,
                },
                "execution": {"taskSupport": "optional"},
                **ABOUT,
            },
            {"name": "b", "inputSchema": {"type": "object"}},
        ],
        "nextCursor": "next",
    },
    "resources/list": {"resources": [{"uri": "a://b", **RESOURCE}, {"uri": "c://d", "name": "m"}]},
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": "a://{b}", **RESOURCE}, {"uriTemplate": "c://{d}", "name": "m"}]
    },
    "prompts/list": {
        "prompts": [
            {
                "name": "p",
                "arguments": [{"name": "a", "title": "x", "description": "d", "required": True}],
                **ABOUT,
            },
            {"name": "q"},
        ]
    },
    "tools/call": {
        "content": [
            {"type": "text", "text": "t", "annotations": HINTS, "_meta": {"a": 1}},
            {"type": "image", "data": "aGk=", "mimeType": "image/png", "annotations": HINTS, "_meta": {}},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav", "annotations": HINTS, "_meta": {}},
            {"type": "resource_link", "uri": "a://b", **RESOURCE},
            {
                "type": "resource",
                "resource": {"uri": "a://b", "mimeType": "text/plain", "text": "t", "_meta": {}},
                "annotations": HINTS,
                "_meta": {},
            },
            {
                "type": "resource",
                "resource": {"uri": "a://b", "mimeType": "x/y", "blob": "aGk=", "_meta": {}},
            },
        ],
        "structuredContent": {"n": 1},
        "isError": False,
    },
    "resources/read": {
        "contents": [
            {"uri": "a://b", "mimeType": "text/plain", "text": "t", "_meta": {}},
            {"uri": "a://c", "mimeType": "x/y", "blob": "aGk=", "_meta": {}},
        ]
    },
    "prompts/get": {
        "description": "d",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "t", "annotations": HINTS}},
            {"role": "assistant", "content": {"type": "resource_link", "uri": "a://b", **RESOURCE}},
        ],
    },
    "completion/complete": {"completion": {"values": ["a", "b"], "total": 2, "hasMore": False}},
}
"""Every field that the protocol knows, in results of every kind."""

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}

PARSED: dict[str, Any] = {
    "initialize": types.InitializeResult,
    "server/discover": types.DiscoverResult,
    "tools/list": types.ListToolsResult,
}
"""What the SDK's session reads with its own types as well."""

ENVELOPE = {"resultType": "complete", "ttlMs": 5, "cacheScope": "private", "_meta": {"z": 1}}


def complete(method: str, version: str) -> dict[str, Any]:
    """Return a result in which nothing is wrong."""
    envelope = ENVELOPE if version == MODERN else {"_meta": {"z": 1}}
    return {**copy.deepcopy(RESULTS[method]), **envelope}


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value within ``value``."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*place, key)
        yield from places(item, (*place, key))


def mutated(result: dict[str, Any], place: tuple[Any, ...], wrong: Any) -> dict[str, Any]:
    """Return a copy with another value at one place."""
    copied: dict[str, Any] = copy.deepcopy(result)
    inner: Any = copied
    for key in place[:-1]:
        inner = inner[key]
    if wrong is MISSING:
        del inner[place[-1]]
    else:
        inner[place[-1]] = copy.deepcopy(wrong)
    return copied


def spoken(method: str) -> list[str]:
    return [version for version in VERSIONS if (method, version) in methods.SERVER_RESULTS]


@pytest.mark.parametrize(
    ("method", "version"), [(method, version) for method in RESULTS for version in spoken(method)]
)
def test_no_single_wrong_value_costs_more_than_itself(method: str, version: str):
    repairer = Repairer("srv")
    repairer.modern = version == MODERN
    good = complete(method, version)
    assert repairer.repair(method, good) == (good, [])
    for place in places(good):
        if place == ("supportedVersions",):
            continue  # without it nobody can say that the server knows the new era
        for wrong in (*WRONG, MISSING):
            mended, _ = repairer.repair(method, mutated(good, place, wrong))
            told = f"{place} = {'(missing)' if wrong is MISSING else wrong!r}"
            try:
                methods.validate_server_result(method, version, mended)
                if method in PARSED:
                    PARSED[method].model_validate(mended, by_name=False)
            except ValueError as error:
                pytest.fail(f"{told}: {error}")
            if method in LISTS and place[0] == LISTS[method] and len(place) > 1:
                kept = len(mended[LISTS[method]])
                assert kept >= len(good[LISTS[method]]) - 1, told
            if method == "tools/call" and place[0] == "content" and len(place) > 1:
                assert len(mended["content"]) >= len(good["content"]) - 1, told
