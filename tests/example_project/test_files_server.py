"""The bundled server `files`: what it does below its directory, and that nothing else can be reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError

from example_project.servers.files import MAX_FILE_SIZE, Directory, build


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside.txt").write_text("secret")
    root = tmp_path / "root"
    (root / "notes").mkdir(parents=True)
    (root / "a.txt").write_text("Hello\nworld\n")
    (root / "notes" / "b.txt").write_text("hello again")
    (root / "way-out").symlink_to(tmp_path)
    (root / "link.txt").symlink_to(root / "a.txt")
    return root


async def call(root: Path, tool: str, **arguments: Any) -> Any:
    async with Client(build(Directory(root))) as client:
        return await client.call_tool(tool, arguments)


async def test_folders_are_listed_without_their_links(root):
    result = await call(root, "list_files")
    assert [entry["path"] for entry in result.structured_content["entries"]] == ["a.txt", "notes"]


async def test_a_written_file_is_read_back_unchanged(root):
    text = "één\r\ntwo\n"
    written = await call(root, "write_file", path="new/folder/c.txt", text=text)
    assert not written.is_error
    assert (await call(root, "read_file", path="new/folder/c.txt")).content[0].text == text


async def test_search_finds_lines_without_regard_to_case(root):
    result = await call(root, "search_files", text="HELLO")
    found = [(match["path"], match["line"]) for match in result.structured_content["matches"]]
    assert found == [("a.txt", 1), ("notes/b.txt", 1)]


@pytest.mark.parametrize("tool", ["read_file", "write_file"])
@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt",
        "notes/../../outside.txt",
        "way-out/outside.txt",
        "link.txt",
        "/etc/passwd",
        "..\\x",
        "a\0b",
    ],
)
async def test_nothing_outside_the_directory_and_no_link_can_be_used(root, tool, path):
    arguments = {"path": path} | ({"text": "overwritten"} if tool == "write_file" else {})
    result = await call(root, tool, **arguments)
    assert result.is_error
    assert (root.parent / "outside.txt").read_text() == "secret"
    assert (root / "a.txt").read_text() == "Hello\nworld\n"


async def test_a_link_cannot_be_read_as_a_resource_either(root):
    async with Client(build(Directory(root))) as client:
        inside = await client.read_resource("file:///notes/b.txt")
        assert [getattr(item, "text", None) for item in inside.contents] == ["hello again"]
        with pytest.raises(MCPError, match="symbolic link"):
            await client.read_resource("file:///way-out/outside.txt")


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("read_file", {"path": "missing.txt"}, "no file"),
        ("read_file", {"path": "notes"}, "no file"),
        ("list_files", {"path": "a.txt"}, "no folder"),
        ("write_file", {"path": "notes", "text": ""}, "is a folder"),
        ("write_file", {"path": "a.txt/x", "text": ""}, "not a folder"),
        ("write_file", {"path": "big.txt", "text": "x" * (MAX_FILE_SIZE + 1)}, "larger than"),
        ("search_files", {"text": ""}, "Give a text"),
    ],
)
async def test_mistakes_are_the_tools_own_failures_and_say_why(root, tool, arguments, message):
    result = await call(root, tool, **arguments)
    assert result.is_error
    assert message in result.content[0].text


async def test_binary_and_too_large_files_are_refused(root):
    (root / "binary.bin").write_bytes(b"\xff\xfe\x00")
    (root / "large.txt").write_bytes(b"x" * (MAX_FILE_SIZE + 1))
    assert "not UTF-8" in (await call(root, "read_file", path="binary.bin")).content[0].text
    assert "larger than" in (await call(root, "read_file", path="large.txt")).content[0].text
