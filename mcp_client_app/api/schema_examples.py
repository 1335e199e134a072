"""Examples in the OpenAPI document."""

from __future__ import annotations

from typing import Final

from drf_spectacular.utils import OpenApiExample

__all__ = ["AGENT_CHANGES", "CHANGES", "CONNECT", "IMPORT", "NEW_AGENT", "NEW_SERVER", "TOOL_CALL"]

NEW_SERVER: Final = [
    OpenApiExample(
        "A local process",
        value={
            "name": "notes",
            "transport": "stdio",
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-memory"],
            "env": {"MEMORY_FILE_PATH": "/srv/notes.json"},
        },
        request_only=True,
    ),
    OpenApiExample(
        "A server on the network",
        value={
            "name": "tracker",
            "transport": "streamable_http",
            "url": "https://tracker.example.com/mcp",
            "headers": {"Authorization": "Bearer ${TRACKER_TOKEN}"},
        },
        request_only=True,
    ),
]
CHANGES: Final = [
    OpenApiExample(
        "Set one secret, remove another, leave the rest",
        value={"env": {"API_KEY": "new value", "OLD_KEY": None}, "revision": 1790000000},
        request_only=True,
    )
]
NEW_AGENT: Final = [
    OpenApiExample(
        "An agent with two servers",
        value={
            "name": "support",
            "model": "anthropic:claude-sonnet-5-5",
            "instructions": "Answer questions about tickets.",
            "approval": "writes",
            "servers": [
                {
                    "server": "tracker",
                    "allowed_tools": ["search_*", "get_*", "add_comment"],
                    "fixed_arguments": {"search_tickets": {"project": "HELP"}},
                },
                {"server": "notes", "tool_approvals": {"delete_*": "deny"}},
            ],
        },
        request_only=True,
    )
]
AGENT_CHANGES: Final = [
    OpenApiExample(
        "One server alone from now on, what is fixed for it stays",
        value={
            "servers": [
                {"server": "tracker", "fixed_arguments": {"search_tickets": {"project": {"set": True}}}}
            ],
            "revision": 1790000000,
        },
        request_only=True,
    )
]
CONNECT: Final = [
    OpenApiExample("One", value={"server": "notes"}, request_only=True),
    OpenApiExample("Some", value={"servers": ["notes", "tracker"]}, request_only=True),
    OpenApiExample("All that are enabled", value={"all": True}, request_only=True),
]
TOOL_CALL: Final = [
    OpenApiExample(
        "By its public name",
        value={"name": "weather__forecast", "arguments": {"city": "Lisbon"}},
        request_only=True,
    ),
    OpenApiExample(
        "A result",
        value={
            "server": "weather",
            "tool": "forecast",
            "is_error": False,
            "text": "Sunny.",
            "content": [{"type": "text", "text": "Sunny."}],
            "structured": None,
            "meta": None,
            "warnings": [],
            "truncated": False,
            "replayed": False,
            "correlation_id": "2f1c0f5c9a0b4a1f9f0d6c7b8a9e0d1c",
        },
        response_only=True,
        status_codes=["200"],
        media_type="application/json",
    ),
]
IMPORT: Final = [
    OpenApiExample(
        "What would happen",
        value={"config": {"mcpServers": {"notes": {"command": "notes-server"}}}, "dry_run": True},
        request_only=True,
    )
]
