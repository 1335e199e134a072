from __future__ import annotations

import json

import pytest
from django.core.checks import Error, run_checks
from django.core.management import call_command

from mcp_client_app import checks


def found(*, deploy=False):
    """Run our checks; return the messages by id."""
    messages: dict[str, list[str]] = {}
    for message in run_checks(tags=["mcp_client_app"], include_deployment_checks=deploy):
        messages.setdefault(str(message.id).removeprefix("mcp_client_app."), []).append(message.msg)
    return messages


@pytest.fixture
def config_file(settings, tmp_path):
    """Write a configuration file and point the setting to it."""
    path = tmp_path / "mcp.json"
    settings.MCP_CLIENT_CONFIG_FILE = path

    def write(content):
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())

    return write


def test_the_settings_of_the_tests_are_sound():
    assert found() == {}


def test_manage_py_check_runs_them(settings, capsys):
    settings.MCP_CLIENT_CALL_TIMEOUT = "60"

    with pytest.raises(BaseException, match=r"mcp_client_app\.E001"):
        call_command("check")


def test_each_wrong_setting_is_an_error(settings):
    settings.MCP_CLIENT_CALL_TIMEOUT = "60"
    settings.MCP_CLIENT_SERVERS = []

    assert found() == {
        "E001": [
            "MCP_CLIENT_SERVERS must be a dictionary, not list.",
            "MCP_CLIENT_CALL_TIMEOUT must be a number, not str.",
        ]
    }


def test_an_in_process_path_is_judged_by_its_form_and_not_imported(settings):
    settings.MCP_CLIENT_IN_PROCESS_SERVERS = {"demo": "no_such_package.server"}
    assert found() == {}

    settings.MCP_CLIENT_IN_PROCESS_SERVERS = {"demo": "not a path"}
    assert list(found()) == ["E001"]


def test_an_unknown_setting_is_a_warning_with_a_suggestion(settings):
    settings.MCP_CLIENT_CALL_TIMEOUTS = 60

    (warning,) = checks.check_setting_names(None)
    assert (warning.id, warning.msg) == (
        "mcp_client_app.W001",
        "'MCP_CLIENT_CALL_TIMEOUTS' is no setting of this app.",
    )
    assert warning.hint == "Did you mean 'MCP_CLIENT_CALL_TIMEOUT'?"


def test_a_missing_config_file_is_an_error(settings, tmp_path):
    settings.MCP_CLIENT_CONFIG_FILE = tmp_path / "absent.json"

    assert found() == {
        "E002": ["The configuration file 'absent.json' cannot be read: No such file or directory."]
    }


def test_a_config_file_that_is_no_json_is_an_error_with_its_place(config_file):
    config_file(b'{"mcpServers": {\n')

    assert "(line 2, column 1)" in found()["E002"][0]


def test_sound_servers_are_quiet(settings, config_file):
    settings.MCP_CLIENT_SERVERS = {"a": {"command": "x", "env": {"K": "${ANY}"}}}
    config_file({"mcpServers": {"b": {"type": "http", "url": "https://h/mcp"}}})

    assert found() == {}


def test_each_unsound_server_is_an_error_of_its_own(settings, config_file):
    settings.MCP_CLIENT_SERVERS = {"a": {"type": "stdio"}, "b": {"type": "htttp", "url": "https://h"}}
    config_file({"mcpServers": {"c": {"type": "http", "url": "ftp://user:hunter2@h"}, "d": {"command": "x"}}})

    messages = found()

    assert messages["E003"] == [
        "The server 'a' of MCP_CLIENT_SERVERS: command: This transport needs a value here.",
        "The server 'b' of MCP_CLIENT_SERVERS: 'type' names an unknown transport. Did you mean 'http'?",
    ]
    assert messages["E004"] == [
        "The server 'c' of the configuration file: url: "
        "Give a complete URL with a host that begins with 'http://' or 'https://'."
    ]


def test_what_was_read_otherwise_than_written_is_a_warning(settings):
    settings.MCP_CLIENT_SERVERS = {"a": {"command": "npx -y x"}}

    assert list(found()) == ["W002"]


def test_a_server_is_not_judged_by_settings_that_are_wrong_themselves(settings):
    settings.MCP_CLIENT_SERVERS = {"a": {"command": "x"}}
    settings.MCP_CLIENT_ALLOW_STDIO = "yes"

    assert list(found()) == ["E001"]


def test_one_server_without_a_name_is_an_error(settings):
    settings.MCP_CLIENT_SERVERS = {"command": "npx"}

    assert "without a name" in found()["E003"][0]


@pytest.fixture
def deployed(settings):
    """Settings in which the deployment checks have nothing to say."""
    settings.MCP_CLIENT_ALLOW_STDIO = False
    settings.MCP_CLIENT_ALLOWED_HOSTS = ["*.example.com"]
    return settings


def test_careful_deployments_are_quiet(deployed):
    assert found(deploy=True) == {}


def test_deployment_warnings_are_silent_without_deploy(settings):
    settings.MCP_CLIENT_AUDIT = False

    assert found() == {}


@pytest.mark.parametrize(
    ("name", "value", "warning"),
    [
        ("ALLOW_STDIO", True, "W010"),
        ("SERVERS", {"a": {"type": "http", "url": "http://h/", "headers": {"X": "y"}}}, "W011"),
        ("ALLOWED_HOSTS", None, "W012"),
        ("DEBUG", True, "W013"),
        ("AUDIT", False, "W014"),
    ],
)
def test_what_deserves_a_second_thought_in_deployment(deployed, name, value, warning):
    setattr(deployed, f"MCP_CLIENT_{name}", value)

    assert list(found(deploy=True)) == [warning]


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "http", "url": "https://h/", "headers": {"X": "y"}},
        {"type": "http", "url": "http://localhost:3000/", "headers": {"X": "y"}},
        {"type": "http", "url": "http://h/"},
        {"command": "x"},
    ],
)
def test_headers_that_others_cannot_read_are_no_reason_to_warn(deployed, entry):
    deployed.MCP_CLIENT_ALLOW_STDIO = True
    deployed.MCP_CLIENT_SERVERS = {"a": entry}

    assert list(found(deploy=True)) == ["W010"]


def test_a_url_that_cannot_be_read_is_an_error_and_nothing_more(deployed):
    deployed.MCP_CLIENT_SERVERS = {"a": {"type": "http", "url": "http://[", "headers": {"X": "y"}}}

    assert list(found(deploy=True)) == ["E003"]


def test_private_networks_may_be_blocked_instead_of_naming_hosts(deployed):
    deployed.MCP_CLIENT_ALLOWED_HOSTS = None
    deployed.MCP_CLIENT_BLOCKED_NETWORKS = [
        "10.0.0.0/8",
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::1/128",
        "fc00::/7",
    ]

    assert found(deploy=True) == {}


def test_deployment_checks_leave_wrong_settings_to_the_other_checks(deployed):
    deployed.MCP_CLIENT_BLOCKED_NETWORKS = ["everything"]

    messages = found(deploy=True)
    assert list(messages) == ["E001"]
    assert all(isinstance(message, Error) for message in checks.check_settings(None))


class OtherDispatcher:
    """The port of an SDK to come."""

    def run(self, lifecycle): ...


@pytest.mark.parametrize(("version", "deploy"), [("2.9.0", False), ("2.9.0", True), ("2.3.0", True)])
def test_an_sdk_with_another_dispatcher_port_is_told_once(monkeypatch, version, deploy):
    monkeypatch.setattr("importlib.metadata.version", lambda name: version)
    monkeypatch.setattr("mcp.shared.dispatcher.Dispatcher", OtherDispatcher)

    (warning,) = found(deploy=deploy)["W003"]
    assert "Dispatcher.run takes (lifecycle)" in warning


def test_an_unknown_sdk_with_the_same_port_is_fine(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.9.0")

    assert found() == {}


def test_a_known_sdk_is_not_compared_without_need(monkeypatch):
    monkeypatch.setattr("mcp.shared.dispatcher.Dispatcher", OtherDispatcher)

    assert found() == {}


def test_a_backend_of_runs_that_is_not_installed_is_told(settings, monkeypatch):
    settings.MCP_CLIENT_RUN_BACKEND = "celery"
    assert found() == {}

    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    (warning,) = found()["W004"]
    assert "'celery'" in warning

    settings.MCP_CLIENT_RUN_BACKEND = "thread"
    assert found() == {}
