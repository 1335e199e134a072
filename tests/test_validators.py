from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from mcp_client_app import validators


def refused(validator, value):
    """Return the code and the text with which a value is refused."""
    with pytest.raises(ValidationError) as caught:
        validator(value)
    return caught.value.code, " ".join(caught.value.messages)


@pytest.mark.parametrize("name", ["a", "github", "My-Server_2", "x" * 40])
def test_server_names_are_letters_digits_hyphens_and_underscores(name):
    validators.validate_server_name(name)


@pytest.mark.parametrize("name", ["", "1a", "a__b", "a_", "a b", "é", "x" * 41, "a\n"])
def test_other_server_names_are_refused(name):
    assert refused(validators.validate_server_name, name)[0] == "server_name"


@pytest.mark.parametrize("value", [None, [], ["read_*", "x"]])
def test_tool_patterns_are_null_or_a_list_of_strings(value):
    validators.validate_tool_patterns(value)


@pytest.mark.parametrize("value", ["read_*", [""], [" "], [1], {"a": 1}])
def test_other_tool_patterns_are_refused(value):
    assert refused(validators.validate_tool_patterns, value)[0] == "tool_patterns"


def test_args_are_strings_without_nul():
    validators.validate_args(["-y", "", "a b"])
    assert refused(validators.validate_args, "-y")[0] == "args"
    assert refused(validators.validate_args, [1])[0] == "args"
    assert refused(validators.validate_args, ["a\0b"])[0] == "nul"


def test_a_command_is_one_clean_line():
    validators.validate_command("/opt/My Tools/server")
    for command in ("a\nb", " a", "a\0"):
        assert refused(validators.validate_command, command)[0] == "command"


def test_env_maps_names_to_strings():
    validators.validate_env({"TOKEN": "", "npm_config_@scope:registry": "x"})
    assert refused(validators.validate_env, [])[0] == "mapping"
    assert refused(validators.validate_env, {"A": 1})[0] == "mapping"
    for name in ("", "A=B", " A", "A\0"):
        assert refused(validators.validate_env, {name: "x"})[0] == "env_name"


def test_no_message_shows_a_secret():
    secret = "hunter2"
    for validator, value in [
        (validators.validate_env, {"A": f"{secret}\0"}),
        (validators.validate_headers, {"A": f"{secret}\n"}),
        (validators.validate_headers, {"A": f" {secret}"}),
        (validators.validate_args, [f"{secret}\0"]),
        (validators.validate_url, f"ftp://host/{secret}"),
        (validators.validate_url, f"https://user:{secret}@host/"),
    ]:
        assert secret not in refused(validator, value)[1]


def test_header_names_are_tokens_each_given_once():
    validators.validate_headers({"Authorization": "Bearer ${TOKEN}", "X-Empty": "", "X-Umlaut": "ä"})
    for name in ("", "A B", "A:", "Ä"):
        assert refused(validators.validate_headers, {name: "x"})[0] == "header_name"
    assert refused(validators.validate_headers, {"X-Key": "1", "x-key": "2"})[0] == "header_twice"
    assert refused(validators.validate_headers, {"X": None})[0] == "mapping"


@pytest.mark.parametrize(
    "name", ["Content-Length", "transfer-encoding", "EXPECT", "Content-Encoding", "Mcp-Session-Id"]
)
def test_headers_that_the_client_sets_itself_are_refused(name):
    """H23: a wrong one makes servers wait for ever, or mix up requests."""
    assert refused(validators.validate_headers, {name: "5"})[0] == "header_reserved"


def test_headers_that_other_clients_need_are_no_error():
    """H23: they are in many files, and do no harm."""
    validators.validate_headers({"Content-Type": "application/json", "Accept": "*/*", "Host": "a.example"})


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\n", "a\0", "\x7f", "☃"])
def test_header_values_that_http_does_not_allow_are_refused(value):
    """H23."""
    assert refused(validators.validate_headers, {"X": value})[0] == "header_value"


@pytest.mark.parametrize("value", [" a", "a\t"])
def test_header_values_with_outer_white_space_are_refused(value):
    """H23."""
    assert refused(validators.validate_headers, {"X": value})[0] == "header_space"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/mcp?key=1",
        "http://localhost:8000/sse",
        "http://[::1]:3000/",
        "https://${HOST}:${PORT}/mcp",
        "${BASE}/mcp",
        "${SCHEME}://example.com/",
        "${BASE:-http://localhost:${PORT:-80}}/mcp",
        "https://${HOST:-a b}/mcp",
    ],
)
def test_urls_are_http_with_a_host_and_may_refer_to_variables(url):
    validators.validate_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "example.com",
        "ftp://example.com",
        "file:///etc/passwd",
        "https://",
        "https:///mcp",
        "http://a b/",
        "http://a/\nb",
        "http://a:99999/",
        "http://a:x/",
        "http://[::1/",
    ],
)
def test_other_urls_are_refused(url):
    """H24."""
    assert refused(validators.validate_url, url)[0] == "url"


@pytest.mark.parametrize("url", ["https://user:pw@host/", "https://${USER}@host/"])
def test_user_information_in_a_url_is_refused(url):
    assert refused(validators.validate_url, url)[0] == "url_user"


def test_times_are_finite_and_not_negative():
    validators.validate_seconds(0)
    validators.validate_seconds(0.5)
    for value in (-1, float("inf"), float("nan")):
        assert refused(validators.validate_seconds, value)[0] == "seconds"


def test_variable_names_are_a_list_of_names():
    validators.validate_variable_names(["HOME", "_x1"])
    for value in ("HOME", ["1A"], ["A B"], ["A="], [None]):
        assert refused(validators.validate_variable_names, value)[0] == "variable_names"


def test_a_text_map_holds_strings_only():
    validators.validate_text_map({"a": "b\n"})
    assert refused(validators.validate_text_map, {"a": None})[0] == "mapping"
