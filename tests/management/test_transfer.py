"""The verbs import, export and sync."""

from __future__ import annotations

import json
import stat

import pytest

from mcp_client_app.models import ServerConfig

DOCUMENT = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "s3cret"}},
        "my tracker": {"type": "http", "url": "https://tracker.example.com/mcp"},
        "broken": {"url": 5},
    }
}


@pytest.fixture
def file(tmp_path) -> str:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(DOCUMENT))
    return str(path)


def actions(result) -> dict[str, str]:
    return {entry["name"]: entry["action"] for entry in result.document["entries"]}


def test_an_import_tells_what_became_of_each_entry(run, file):
    result = run("import", file)
    assert result.code == 3
    rows = {line.split()[0]: line.split()[1] for line in result.lines[1:] if not line.startswith(" ")}
    assert rows == {"files": "create", "my-tracker": "create", "broken": "error"}
    assert "Could not be imported: broken." in result.err
    assert "my-tracker" in result.out
    assert set(ServerConfig.objects.values_list("name", flat=True)) == {"files", "my-tracker"}


def test_a_dry_run_shows_the_differences_and_changes_nothing(run, file):
    run("import", file)
    different = {"files": {"command": "uvx", "env": {"TOKEN": "another s3cret"}}, "new": {"command": "x"}}
    result = run("import", "-", "--dry-run", stdin=json.dumps({"mcpServers": different}))
    assert result.code == 0
    assert "command: 'npx' → 'uvx'" in result.out
    assert "s3cret" not in result.out
    assert "dry run" in result.out
    assert ServerConfig.objects.get(name="files").command == "npx"
    assert not ServerConfig.objects.filter(name="new").exists()


def test_importing_again_changes_nothing(run, file):
    run("import", file)
    assert actions(run("import", file, "--json")) == {
        "files": "unchanged",
        "my-tracker": "unchanged",
        "broken": "error",
    }


@pytest.mark.parametrize(("option", "enabled"), [("--enable", True), ("--disable", False)])
def test_imported_servers_can_be_forced_on_or_off(run, file, option, enabled):
    run("import", file, option)
    assert {row.enabled for row in ServerConfig.objects.all()} == {enabled}


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"mcpServers": {"a": {"url": 5}}}'])
def test_an_import_of_nothing_that_can_be_used_is_something_to_change(run, text):
    result = run("import", "-", "--json", stdin=text)
    assert result.code == 2
    assert result.document
    assert not ServerConfig.objects.exists()


def test_a_missing_file_is_something_to_change(run):
    assert run("import", "/no/such/file.json").code == 2


def test_an_export_goes_back_in_unchanged_with_its_secrets_kept(run, file, tmp_path):
    run("import", file)
    target = tmp_path / "out.json"
    assert run("export", str(target)).out == f"Wrote 2 servers to {target}.\n"
    assert "s3cret" not in target.read_text()
    assert set(actions(run("import", str(target), "--json")).values()) == {"unchanged"}
    assert ServerConfig.objects.get(name="files").env == {"TOKEN": "s3cret"}


def test_an_export_to_standard_output_is_json_in_any_case(run, file):
    run("import", file)
    document = run("export").document
    assert list(document["mcpServers"]) == ["files", "my-tracker"]
    assert run("export", "-", "--json").document == document
    assert list(run("export", "-", "FILES").document["mcpServers"]) == ["files"]


def test_an_exported_file_is_its_owners_alone_and_is_not_replaced_by_accident(run, file, tmp_path):
    run("import", file)
    target = tmp_path / "out.json"
    target.write_text("mine")
    refused = run("export", str(target))
    assert refused.code == 2
    assert "--force" in refused.err
    assert target.read_text() == "mine"
    assert run("export", str(target), "files", "--force", "--json").document == {
        "file": str(target),
        "servers": ["files"],
    }
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_export_into_nowhere_or_of_nobody_is_something_to_change(run, file, tmp_path):
    run("import", file)
    assert run("export", str(tmp_path / "missing" / "out.json")).code == 2
    assert run("export", "-", "nobody").code == 2


def test_sync_makes_rows_for_settings_and_file_and_takes_them_away(run, settings, tmp_path):
    path = tmp_path / "mcp_servers.json"
    path.write_text(json.dumps({"from-file": {"command": "npx"}}))
    settings.MCP_CLIENT_CONFIG_FILE = str(path)
    settings.MCP_CLIENT_SERVERS = {"from-settings": {"url": "https://mcp.example.com/"}}
    result = run("sync", "--json")
    assert (result.code, result.document["created"]) == (0, ["from-settings", "from-file"])
    assert run("sync").out == "Nothing to do.\n"
    settings.MCP_CLIENT_SERVERS = {}
    result = run("sync")
    assert (result.code, result.lines[1].split()) == (0, ["from-settings", "removed"])
    assert [row.source for row in ServerConfig.objects.all()] == ["file"]


def test_sync_tells_which_entries_cannot_be_used(run, settings):
    settings.MCP_CLIENT_SERVERS = {"good": {"url": "https://mcp.example.com/"}, "bad": {"url": 5}}
    result = run("sync", "--json")
    assert result.code == 3
    assert list(result.document["errors"]) == ["bad"]
    again = run("sync")
    assert again.code == 2
    assert "Not usable: bad." in again.err
