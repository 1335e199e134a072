"""The bundled server `workshop`: the tools that the docs and the demo promise."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from mcp import Client, MCPError
from mcp.types import PromptReference

from example_project.servers.workshop import server


async def test_the_swatch_is_a_real_png_of_the_colour_asked_for():
    async with Client(server) as client:
        result = await client.call_tool("draw_swatch", {"red": 200, "green": 100, "blue": 50})
    image = base64.b64decode(getattr(result.content[0], "data", ""))
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", image[16:24]) == (32, 16)
    length = struct.unpack(">I", image[33:37])[0]
    assert image[37:41] == b"IDAT"
    pixels = zlib.decompress(image[41 : 41 + length])
    assert pixels[1:4] == bytes((200, 100, 50))


async def test_sanding_reports_progress_after_each_pass():
    reports: list[tuple[float, float | None]] = []

    async def remember(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total))

    async with Client(server) as client:
        await client.call_tool("sand", {"passes": 3, "seconds": 0}, progress_callback=remember)
    assert reports == [(1, 3), (2, 3), (3, 3)]


async def test_the_measuring_tool_refuses_arguments_outside_its_schema():
    async with Client(server) as client:
        result = await client.call_tool("measure", {"length": 0, "width": 5})
    assert result.is_error


async def test_a_tool_that_breaks_down_says_why():
    async with Client(server) as client:
        result = await client.call_tool("break_down", {"reason": "out of oil"})
    assert result.is_error
    assert "out of oil" in getattr(result.content[0], "text", "")


async def test_an_unknown_hand_tool_is_a_missing_resource():
    async with Client(server) as client:
        with pytest.raises(MCPError, match="no hand tool 'axe'"):
            await client.read_resource("workshop://tools/axe")


async def test_completion_suggests_what_begins_with_the_value():
    async with Client(server) as client:
        result = await client.complete(
            PromptReference(type="ref/prompt", name="explain"), argument={"name": "tool", "value": "C"}
        )
    assert result.completion.values == ["chisel", "clamp"]
