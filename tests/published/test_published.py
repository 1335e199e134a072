"""The other published servers: connect, list everything, use several tools of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import ServerSpec

# Installing the servers for the first time may take a while.
pytestmark = [pytest.mark.published, pytest.mark.timeout(600)]

ManagerWith = Callable[..., MCPClientManager]


def test_filesystem(filesystem: tuple[ServerSpec, Path], manager_with: ManagerWith) -> None:
    spec, folder = filesystem
    manager = manager_with(spec)
    manager.connect("files")
    tools = {tool.name: tool for tool in manager.list_tools("files")}
    assert len(tools) == 14
    assert {"read_text_file", "write_file", "edit_file", "search_files", "directory_tree"} <= set(tools)
    assert tools["read_text_file"].annotations.read_only is True
    assert tools["write_file"].annotations.destructive is True
    assert not manager.list_resources("files")
    assert not manager.list_prompts("files")

    note = str(folder / "note.txt")
    written = manager.call_tool("write_file", {"path": note, "content": "one\ntwo\n"}, server="files")
    assert not written.is_error
    assert (folder / "note.txt").read_text() == "one\ntwo\n"
    read = manager.call_tool("read_text_file", {"path": note, "tail": 2}, server="files")
    assert "two" in read.text
    assert read.structured == {"content": read.text}
    edits = [{"oldText": "two", "newText": "zwei"}]
    assert "+zwei" in manager.call_tool("edit_file", {"path": note, "edits": edits}).text
    assert manager.call_tool("list_directory", {"path": str(folder)}).text == "[FILE] note.txt"
    found = manager.call_tool("search_files", {"path": str(folder), "pattern": "*.txt"})
    assert found.text == note

    outside = manager.call_tool("read_text_file", {"path": "/etc/hostname"}, server="files")
    assert outside.is_error
    assert "Access denied" in outside.text


def test_memory(memory: ServerSpec, manager_with: ManagerWith) -> None:
    manager = manager_with(memory)
    manager.connect("memory")
    assert {tool.name for tool in manager.list_tools("memory")} == {
        "add_observations",
        "create_entities",
        "create_relations",
        "delete_entities",
        "delete_observations",
        "delete_relations",
        "open_nodes",
        "read_graph",
        "search_nodes",
    }
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote the notes"]}
    engine = {"name": "Engine", "entityType": "machine", "observations": []}
    uses = {"from": "Ada", "to": "Engine", "relationType": "explains"}
    assert manager.call_tool("create_entities", {"entities": [ada, engine]}).structured == {
        "entities": [ada, engine]
    }
    assert manager.call_tool("create_relations", {"relations": [uses]}).structured == {"relations": [uses]}
    assert manager.call_tool("search_nodes", {"query": "notes"}).structured["entities"] == [ada]
    assert not manager.call_tool("delete_entities", {"entityNames": ["Engine"]}).is_error
    graph = {"entities": [ada], "relations": []}
    assert manager.call_tool("read_graph", {}).structured == graph

    (resource,) = manager.list_resources("memory")
    assert resource.uri == "memory://knowledge-graph"
    assert json.loads(manager.read_resource("memory", resource.uri).text) == graph


def test_time(clock: ServerSpec, manager_with: ManagerWith) -> None:
    manager = manager_with(clock)
    manager.connect("time")
    tools = {tool.name: tool for tool in manager.list_tools("time")}
    assert set(tools) == {"get_current_time", "convert_time"}
    assert all(tool.output_schema for tool in tools.values())

    now = manager.call_tool("get_current_time", {"timezone": "Asia/Tokyo"})
    assert now.structured["timezone"] == "Asia/Tokyo"
    assert now.structured["datetime"].endswith("+09:00")
    arguments = {"source_timezone": "Asia/Kolkata", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    converted = manager.call_tool("convert_time", arguments, server="time")
    assert converted.structured["time_difference"] == "+3.5h"
    assert converted.structured["target"]["datetime"].endswith("T15:30:00+09:00")
    nowhere = manager.call_tool("convert_time", {**arguments, "target_timezone": "No/Where"})
    assert nowhere.is_error
    assert "Invalid timezone" in nowhere.text


def test_git(git: tuple[ServerSpec, Path], manager_with: ManagerWith) -> None:
    spec, repository = git
    manager = manager_with(spec)
    manager.connect("git")
    tools = {tool.name: tool for tool in manager.list_tools("git")}
    assert {"git_status", "git_diff_unstaged", "git_add", "git_commit", "git_log", "git_branch"} <= set(tools)
    assert tools["git_status"].annotations.read_only is True
    assert tools["git_reset"].annotations.destructive is True

    path = {"repo_path": str(repository)}
    assert "On branch main" in manager.call_tool("git_status", path).text
    assert "+two" in manager.call_tool("git_diff_unstaged", path).text
    assert "The first note" in manager.call_tool("git_log", path).text
    assert "main" in manager.call_tool("git_branch", {**path, "branch_type": "local"}).text
    assert not manager.call_tool("git_add", {**path, "files": ["notes.txt"]}).is_error
    assert "+two" in manager.call_tool("git_diff_staged", path).text
    outside = manager.call_tool("git_status", {"repo_path": str(repository.parent)})
    assert outside.is_error
    assert "outside the allowed repository" in outside.text
