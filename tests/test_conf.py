from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from mcp_client_app.conf import app_settings, is_dotted_path, setting_names


def test_a_setting_that_is_not_set_has_its_default(settings):
    del settings.MCP_CLIENT_CONFIG_FILE

    assert app_settings.CALL_TIMEOUT == 60.0
    assert app_settings.SERVERS == {}
    assert app_settings.CLIENT_INFO is None


def test_every_default_passes_its_own_check(settings):
    for name in setting_names():
        value = getattr(app_settings, name)
        setattr(settings, f"MCP_CLIENT_{name}", value)
        assert getattr(app_settings, name) == value


def test_settings_are_read_live(settings):
    settings.MCP_CLIENT_CALL_TIMEOUT = 5
    assert app_settings.CALL_TIMEOUT == 5.0
    settings.MCP_CLIENT_CALL_TIMEOUT = 7.5
    assert app_settings.CALL_TIMEOUT == 7.5


def test_a_default_that_a_caller_changes_stays_the_default():
    app_settings.ENV_ALLOW.append("HOME")

    assert app_settings.ENV_ALLOW == []


def test_a_tuple_of_strings_serves_as_a_list(settings):
    settings.MCP_CLIENT_ENV_ALLOW = ("HOME", "PATH")

    assert app_settings.ENV_ALLOW == ["HOME", "PATH"]


@pytest.mark.parametrize(
    ("name", "value", "cure"),
    [
        ("CALL_TIMEOUT", "60", "must be a number, not str."),
        ("CALL_TIMEOUT", True, "must be a number, not bool."),
        ("CALL_TIMEOUT", -1, "must be 0 or more."),
        ("CALL_TIMEOUT", float("nan"), "must be 0 or more."),
        ("MAX_STARTS", 0, "must be 1 or more."),
        ("MAX_STARTS", 1.5, "must be a whole number, not float."),
        ("ALLOW_STDIO", 1, "must be True or False, not int."),
        ("ENV_ALLOW", "HOME", "must be a list of strings, not str."),
        ("ENV_ALLOW", [1], "must be a string, not int."),
        ("ALLOWED_HOSTS", "example.com", "must be a list of strings or None, not str."),
        ("SERVERS", [], "must be a dictionary, not list."),
        ("SERVERS", {"": {}}, "holds a server without a name."),
        ("IN_PROCESS_SERVERS", {"a": "no path"}, "write a dotted path"),
        ("IN_PROCESS_SERVERS", {"a": 1}, "must be a string, not int."),
        ("OUTPUT_FILTERS", {"short": "no path"}, "write a dotted path"),
        ("OUTPUT_FILTERS", {"drop_binary": "a.b"}, "has the key 'drop_binary', which is the name of a"),
        ("INPUT_HANDLERS", {"elicit": "a.b"}, "which no server asks for; there are 'elicitation'"),
        ("INPUT_HANDLERS", {"roots": "no path"}, "write a dotted path"),
        ("CONFIG_FILE", 3, "must be a string or a path or None, not int."),
        ("BLOCKED_NETWORKS", ["10.0.0.1/8"], "which is no network"),
        ("CLIENT_INFO", {"title": "x"}, "must hold 'name'"),
        ("RESULT_STORAGE", "nowhere", "names 'nowhere', which is no key of STORAGES."),
        ("LINK", "other", "must be 'own', 'stock' or the dotted path"),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_and_the_cure(settings, name, value, cure):
    setattr(settings, f"MCP_CLIENT_{name}", value)

    with pytest.raises(ImproperlyConfigured) as caught:
        getattr(app_settings, name)

    assert str(caught.value).startswith(f"MCP_CLIENT_{name} ")
    assert cure in str(caught.value)


def test_the_config_file_beside_manage_py_is_used_if_it_is_there(settings, tmp_path):
    del settings.MCP_CLIENT_CONFIG_FILE
    settings.BASE_DIR = tmp_path
    assert app_settings.config_file() is None

    (tmp_path / "mcp_servers.json").write_text("{}")
    assert app_settings.config_file() == tmp_path / "mcp_servers.json"


@pytest.mark.parametrize("off", ["", None])
def test_the_config_file_can_be_switched_off(settings, tmp_path, off):
    settings.BASE_DIR = tmp_path
    (tmp_path / "mcp_servers.json").write_text("{}")
    settings.MCP_CLIENT_CONFIG_FILE = off

    assert app_settings.config_file() is None


def test_an_explicit_config_file_is_named_even_if_it_is_missing(settings, tmp_path):
    settings.BASE_DIR = tmp_path
    settings.MCP_CLIENT_CONFIG_FILE = "conf/mcp.json"
    assert app_settings.config_file() == tmp_path / "conf" / "mcp.json"

    settings.MCP_CLIENT_CONFIG_FILE = Path("/etc/mcp.json")
    assert app_settings.config_file() == Path("/etc/mcp.json")


def test_dotted_paths_have_a_module_and_a_name():
    assert is_dotted_path("package.module.server")
    assert is_dotted_path("package.module:server")
    assert not is_dotted_path("server")
    assert not is_dotted_path("package..server")
    assert not is_dotted_path("package.module; import os")
