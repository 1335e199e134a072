"""The file of servers: its forms, its rights, and several writers at once."""

from __future__ import annotations

import contextlib
import json
import stat
import subprocess
import sys

import pytest

from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.mixins import MCPConfig
from tests.stored import process_environment

ENTRY = {"command": "npx", "args": ["-y", "a-server"], "env": {"TOKEN": "xxx"}}


def test_nothing_is_made_before_the_first_server(tmp_path):
    config = MCPConfig(tmp_path / "new" / "mcp_servers.json")

    assert (config.get_servers(), config.get_server("a"), config.server_exists("a")) == ({}, {}, False)
    assert list(tmp_path.iterdir()) == []


def test_the_home_folder_is_the_default(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))

    MCPConfig().add_server("a", ENTRY)

    assert MCPConfig("~/.gaia/mcp_servers.json").get_server("a") == ENTRY
    assert (tmp_path / ".gaia" / "mcp_servers.json").is_file()


def test_a_server_is_saved_at_once_and_for_its_owner_only(tmp_path):
    path = tmp_path / "new" / "mcp_servers.json"
    MCPConfig(path).add_server("a", ENTRY)

    assert json.loads(path.read_text()) == {"mcpServers": {"a": ENTRY}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    MCPConfig(path).add_server("b", ENTRY)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_server_is_replaced_and_removed(tmp_path):
    config = MCPConfig(tmp_path / "mcp_servers.json")
    config.add_server("a", ENTRY)

    config.add_server("a", {"command": "uvx"})

    assert config.get_server("a") == {"command": "uvx"}
    config.remove_server("a")
    config.remove_server("a")
    assert not config.server_exists("a")
    assert json.loads(config.config_file.read_text()) == {"mcpServers": {}}


def test_copies_are_handed_out(tmp_path):
    config = MCPConfig(tmp_path / "mcp_servers.json")
    config.add_server("a", ENTRY)

    config.get_servers()["a"]["env"]["TOKEN"] = "changed"
    config.get_server("a").clear()

    assert config.get_server("a") == ENTRY


def test_the_legacy_key_is_read_and_goes_with_the_next_change_and_all_else_stays(tmp_path):
    path = tmp_path / "mcp_servers.json"
    old = {
        "servers": {"old": ENTRY, "both": {"command": "1"}},
        "mcpServers": {"both": {"command": "2"}},
        "x": 1,
    }
    path.write_text(json.dumps(old))
    config = MCPConfig(path)

    assert config.get_servers() == {"old": ENTRY, "both": {"command": "2"}}
    config.add_server("new", ENTRY)

    servers = {"old": ENTRY, "both": {"command": "2"}, "new": ENTRY}
    assert json.loads(path.read_text()) == {"mcpServers": servers, "x": 1}


def test_what_others_write_is_seen(tmp_path):
    one, other = (MCPConfig(tmp_path / "mcp_servers.json") for _ in range(2))

    one.add_server("a", ENTRY)
    assert other.server_exists("a")
    other.remove_server("a")
    assert one.get_servers() == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', '{"servers": 1}'])
def test_a_broken_file_is_told_and_left_alone(tmp_path, text):
    path = tmp_path / "mcp_servers.json"
    config = MCPConfig(path)
    path.write_text(text)

    for use in (config.get_servers, lambda: config.add_server("a", ENTRY), lambda: MCPConfig(path)):
        with pytest.raises(ConfigurationError, match=r"mcp_servers\.json"):
            use()

    assert path.read_text() == text


@pytest.mark.parametrize("config", [{"command": {1, 2}}, {"timeout": float("nan")}, "npx", None])
def test_what_json_cannot_hold_is_refused_without_its_values(tmp_path, config):
    store = MCPConfig(tmp_path / "mcp_servers.json")

    with pytest.raises(ConfigurationError, match="'a'"):
        store.add_server("a", config)

    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link(tmp_path):
    target = tmp_path / "real.json"
    link = tmp_path / "mcp_servers.json"
    link.symlink_to(target)

    MCPConfig(link).add_server("a", ENTRY)

    assert link.is_symlink()
    assert json.loads(target.read_text()) == {"mcpServers": {"a": ENTRY}}


def test_a_failed_write_leaves_the_file_and_no_other(tmp_path, monkeypatch):
    config = MCPConfig(tmp_path / "mcp_servers.json")
    config.add_server("a", ENTRY)
    before = config.config_file.read_text()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(ConfigurationError, match="No space left"):
            config.add_server("b", ENTRY)

    assert config.config_file.read_text() == before
    assert {path.name for path in tmp_path.iterdir()} == {"mcp_servers.json", ".mcp_servers.json.lock"}


WRITER = """
import sys
import django
django.setup()
from mcp_client_app.mixins import MCPConfig
path, name = sys.argv[1:]
config = MCPConfig(path)
print("ready", flush=True)
sys.stdin.readline()
for number in range(40):
    config.add_server(f"{name}-{number}", {"command": "x"})
    if number % 2:
        config.remove_server(f"{name}-{number}")
"""


def test_writers_in_several_processes_lose_nothing(tmp_path):
    path = tmp_path / "mcp_servers.json"
    reader = MCPConfig(path)
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, str(path), name],
                    env=process_environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for name in ("one", "two")
        ]
        for writer in writers:
            assert writer.stdout
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin
            writer.stdin.write("go\n")
            writer.stdin.flush()
        while any(writer.poll() is None for writer in writers):
            reader.get_servers()  # never half a file
        assert [writer.returncode for writer in writers] == [0, 0]

    assert set(reader.get_servers()) == {
        f"{name}-{number}" for name in ("one", "two") for number in range(0, 40, 2)
    }
