from __future__ import annotations

import json

import pytest

from mcp_client_app.configuration.dialects import parse, parse_text
from mcp_client_app.exceptions import ConfigurationError

STDIO = {"command": "npx", "args": ["-y", "server"]}


def read(**entry):
    """Read one entry."""
    (server,) = parse({"mcpServers": {"one": entry}})
    return server


def fields(**entry):
    server = read(**entry)
    assert server.error is None, server.error
    return dict(server.fields)


def noticed(server, text):
    return any(text in notice for notice in server.notices)


# The documents of the systems that people come from


def test_claude_form():
    servers = parse_text(
        """{"mcpServers": {
          "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]},
          "github": {"command": "npx", "args": ["-y", "x"], "env": {"GITHUB_TOKEN": "ghp_xxx"}},
          "time": {"command": "uvx", "args": ["mcp-server-time"]}
        }}"""
    )

    assert [(server.name, server.error, list(server.notices)) for server in servers] == [
        ("filesystem", None, []),
        ("github", None, []),
        ("time", None, []),
    ]
    assert servers[1].fields == {
        "transport": "stdio",
        "command": "npx",
        "args": ["-y", "x"],
        "env": {"GITHUB_TOKEN": "ghp_xxx"},
    }


def test_bare_map_with_schema_key():
    servers = parse(
        {
            "$schema": "https://example.com/schema.json",
            "filesystem": {"transport": "stdio", **STDIO, "env": {"NODE_ENV": "production"}},
            "brave-search": {
                "transport": "sse",
                "url": "http://localhost:8080/sse",
                "headers": {"Authorization": "Bearer $BRAVE_API_KEY"},
            },
        }
    )

    assert [server.name for server in servers] == ["filesystem", "brave-search"]
    assert servers[1].fields == {
        "transport": "sse",
        "url": "http://localhost:8080/sse",
        "headers": {"Authorization": "Bearer $BRAVE_API_KEY"},
    }


def test_vs_code_form_with_inputs():
    """C07."""
    (server,) = parse(
        {
            "inputs": [{"type": "promptString", "id": "key", "password": True}],
            "servers": {
                "one": {"type": "http", "url": "https://h/mcp", "headers": {"X-Key": "${input:key}"}}
            },
        }
    )

    assert server.error is None
    assert server.fields["headers"] == {"X-Key": "${input:key}"}
    assert noticed(server, "filled in before the server can be enabled: ${input:key}")


def test_vs_code_settings_file():
    (server,) = parse({"editor.tabSize": 2, "mcp": {"servers": {"one": STDIO}}})

    assert server.fields["command"] == "npx"


def test_codex_form():
    (server,) = parse(
        {
            "mcp_servers": {
                "docs": {
                    "url": "https://h/mcp",
                    "bearer_token_env_var": "DOCS_TOKEN",
                    "http_headers": {"X-Region": "eu"},
                    "env_http_headers": {"X-Key": "DOCS_KEY"},
                    "startup_timeout_sec": 20,
                    "tool_timeout_sec": 2000,
                    "enabled_tools": ["read"],
                    "disabled_tools": ["write"],
                    "enabled": False,
                }
            }
        }
    )

    assert server.error is None
    assert server.fields == {
        "url": "https://h/mcp",
        "headers": {"X-Region": "eu", "Authorization": "Bearer ${DOCS_TOKEN}", "X-Key": "${DOCS_KEY}"},
        "transport": "streamable_http",
        "connect_timeout": 20.0,
        "call_timeout": 2000.0,
        "allowed_tools": ["read"],
        "blocked_tools": ["write"],
        "enabled": False,
    }


def test_servers_as_a_list_with_names():
    servers = parse({"servers": [{"name": "a", **STDIO}, {"command": "b"}]})

    assert [server.name for server in servers] == ["a", "server-2"]


def test_a_server_may_be_called_servers():
    assert [server.name for server in parse({"servers": STDIO, "mcpServers": {"a": STDIO}})] == ["a"]
    assert [server.name for server in parse({"servers": STDIO})] == ["servers"]


@pytest.mark.parametrize("document", [{}, {"mcpServers": {}}, {"servers": []}])
def test_no_servers_are_no_error(document):
    assert parse(document) == []


@pytest.mark.parametrize("document", [[], 3, "x", None, STDIO])
def test_other_documents_are_refused(document):
    with pytest.raises(ConfigurationError, match="mcpServers"):
        parse(document)


# Names


def test_names_are_turned_into_server_names_and_kept_as_labels():
    """C20."""
    (server,) = parse({"My Wéird__Server": STDIO})

    assert (server.name, server.label) == ("My-Weird-Server", "My Wéird__Server")
    assert noticed(server, "is called 'My-Weird-Server' here")


def test_a_title_in_the_entry_is_the_label():
    assert read(**STDIO, label="Files").label == "Files"
    assert read(**STDIO, name="Files").label == "Files"


def test_names_that_collide_are_an_error_of_the_later_entry_even_by_case():
    """C20."""
    first, second, third = parse({"git hub": STDIO, "Git-Hub": STDIO, "other": STDIO})

    assert first.error is None
    assert second.error == "The name 'Git-Hub' is taken by the entry 'git hub'; rename one of them."
    assert third.error is None


def test_a_name_that_appears_twice_in_the_text_is_noticed():
    (server,) = parse_text('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}')

    assert server.fields["command"] == "y"
    assert noticed(server, "more than once")


# Robustness


def test_one_bad_entry_never_sinks_the_others():
    """C21."""
    servers = parse({"a": "x", "b": {"transport": "htttp", "url": "https://h"}, "c": {}, "d": STDIO})

    assert [server.error is None for server in servers] == [False, False, False, True]


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x", "args": {"a": 1}},
        {"command": "x", "args": [None]},
        {"command": {"path": "x"}},
        {"command": "x 'y"},
        {"command": "x", "args": "'y"},
        {"command": "x", "env": ["A"]},
        {"command": "x", "env": {"A": {}}},
        {"command": "x", "timeout": "soon"},
        {"command": "x", "timeout": -1},
        {"command": "x", "timeout": True},
        {"command": "x", "timeout": 10**400},
        {"command": "x", "disabled": "perhaps"},
        {"command": "x", "disabledTools": "y"},
        {"command": "x", "max_concurrency": 1.5},
        {"command": "x", "cwd": []},
        {"url": 3},
        {"url": "https://h", "headers": "X"},
        {"url": "https://h", "bearer_token_env_var": "no name"},
        {"url": "https://h", "env_http_headers": {"X": "no name"}},
        {"type": 3, "command": "x"},
        {"type": "websocket", "url": "wss://h"},
        {"type": "http", "transport": "stdio", "command": "x"},
        {"command": "x", "allowed_tools": ["a"], "includeTools": ["b"]},
        {"command": "x", "env": {"A": "\0"}},
        {"command": "x", "note": "\ud800"},
    ],
)
def test_an_entry_of_the_wrong_form_is_an_error_without_any_value(entry):
    (server,) = parse({"one": {"type": "stdio", "env": {"K": "hunter2"}} | entry})

    assert server.error
    assert "hunter2" not in server.error + repr(server)


@pytest.mark.parametrize("entry", [{"command": "x"}, {"command": "\0"}, 5], ids=["good", "bad", "no entry"])
def test_a_name_that_no_page_and_no_database_takes_is_shown_all_the_same(entry):
    (server,) = parse({"half \ud800, \0": entry})

    assert server.label == "half \ufffd, \ufffd"


def test_an_entry_that_reaches_nothing_is_an_error():
    assert read(args=["x"]).error == "The entry has neither a command nor a URL."


def test_a_repr_shows_no_secrets():
    assert "hunter2" not in repr(read(**STDIO, env={"K": "hunter2"}, apiKey="hunter2"))


# Transports


@pytest.mark.parametrize("key", ["type", "transport", "transportType", "TYPE"])
@pytest.mark.parametrize(
    ("spelling", "transport"),
    [
        ("http", "streamable_http"),
        ("HTTP", "streamable_http"),
        ("streamable-http", "streamable_http"),
        ("streamableHttp", "streamable_http"),
        ("streamable_http", "streamable_http"),
        ("sse", "sse"),
        ("remote", "streamable_http"),
    ],
)
def test_the_spellings_of_http_transports(key, spelling, transport):
    """C04."""
    assert fields(**{key: spelling, "url": "https://h/mcp"})["transport"] == transport


@pytest.mark.parametrize("spelling", ["stdio", "STDIO", "local"])
def test_the_spellings_of_stdio(spelling):
    """C04."""
    assert fields(type=spelling, command="x")["transport"] == "stdio"


def test_a_misspelt_transport_is_an_error_with_a_suggestion():
    """C21: it never becomes HTTP in silence."""
    assert (
        read(type="htttp", url="https://h").error == "'type' names an unknown transport. Did you mean 'http'?"
    )


def test_a_transport_object_is_flattened():
    """C09."""
    assert fields(transport={"type": "stdio", "command": "x", "args": ["y"]}, disabled=True) == {
        "transport": "stdio",
        "command": "x",
        "args": ["y"],
        "enabled": False,
    }


@pytest.mark.parametrize(
    ("url", "transport"),
    [
        ("https://h/mcp", "streamable_http"),
        ("https://h/sse", "sse"),
        ("https://h/sse/", "sse"),
        ("https://h/mcp?x=/sse", "streamable_http"),
        ("https://[", "streamable_http"),
    ],
)
def test_the_transport_of_a_lone_url_is_inferred_and_reported(url, transport):
    """C11."""
    server = read(url=url)

    assert server.fields["transport"] == transport
    assert noticed(server, f"taken to be {transport!r}")


def test_the_other_keys_of_a_url():
    """C06: ``serverUrl`` and the like."""
    assert fields(httpUrl="https://h/sse") == {"url": "https://h/sse", "transport": "streamable_http"}
    assert fields(serverUrl="https://h/mcp")["url"] == "https://h/mcp"
    both = read(url="https://h/sse", httpUrl="https://h/mcp")
    assert both.fields["url"] == "https://h/mcp"
    assert noticed(both, "'url' is left out")


def test_a_server_in_process_is_named_by_its_key():
    assert fields(in_process="demo") == {"in_process": "demo", "transport": "in_process"}


def test_what_the_transport_does_not_use_is_kept_aside():
    server = read(type="http", url="https://h", command="x", env={"K": "hunter2"}, args=[])

    assert "command" not in server.fields
    assert server.extra == {"command": "x", "env": {"K": "hunter2"}}
    assert noticed(server, "'env' has no use")
    assert not noticed(server, "hunter2")


# Processes


@pytest.mark.parametrize(
    ("entry", "command", "args"),
    [
        ({"command": "npx -y 'a b'"}, "npx", ["-y", "a b"]),
        ({"command": "npx -y", "args": ["a"]}, "npx", ["-y", "a"]),
        ({"command": "/opt/My App/bin", "args": ["a"]}, "/opt/My App/bin", ["a"]),
        ({"command": "/opt/My App/bin", "args": []}, "/opt/My App/bin", []),
        ({"command": ["npx", "-y"], "args": ["a"]}, "npx", ["-y", "a"]),
        ({"command": "npx", "args": "-y 'a b'"}, "npx", ["-y", "a b"]),
        ({"command": "npx", "args": [1, True, "x"]}, "npx", ["1", "true", "x"]),
        ({"command": "npx", "args": None}, "npx", []),
        ({"command": " npx "}, "npx", []),
    ],
)
def test_command_lines_and_argument_lists(entry, command, args):
    read_fields = fields(**entry)

    assert (read_fields["command"], read_fields["args"]) == (command, args)


def test_splitting_is_reported():
    assert noticed(read(command="npx -y x"), "'command' is a whole command line")
    assert noticed(read(command="npx", args="-y x"), "'args' is one text")


def test_env_is_an_object_or_a_list_of_assignments_and_null_stays():
    assert fields(**STDIO, env={"A": 1, "B": True, "C": None})["env"] == {"A": "1", "B": "true", "C": None}
    assert fields(**STDIO, env=["A=b=c"])["env"] == {"A": "b=c"}
    assert fields(**STDIO, environment={"A": "b"})["env"] == {"A": "b"}
    assert fields(**STDIO, env=None)["env"] == {}
    assert "env" not in fields(**STDIO)


def test_an_env_file_is_not_read():
    server = read(**STDIO, envFile="/home/me/.env")

    assert noticed(server, "'envFile' is not read")
    assert server.extra == {"envFile": "/home/me/.env"}


def test_variables_to_pass_on():
    assert fields(**STDIO, env_vars=["HOME"])["inherited_names"] == ["HOME"]


# Time limits


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"timeout": 30}, {"call_timeout": 30.0}),
        ({"timeout": "30"}, {"call_timeout": 30.0}),
        ({"timeout": 1000}, {"call_timeout": 1000.0}),
        ({"timeout": 0}, {"call_timeout": 0.0}),
        ({"timeout": 30000}, {"call_timeout": 30.0}),
        ({"timeout": None}, {}),
        ({"initTimeout": 10000}, {"connect_timeout": 10.0}),
        ({"startup_timeout_ms": 500}, {"connect_timeout": 0.5}),
        ({"startup_timeout_sec": 1200}, {"connect_timeout": 1200.0}),
        ({"call_timeout": 3600}, {"call_timeout": 3600.0}),
        ({"sseReadTimeout": 300, "timeout": 5}, {"call_timeout": 300.0, "connect_timeout": 5.0}),
        ({"sse_read_timeout": 300}, {"call_timeout": 300.0}),
        ({"call_timeout": 5, "timeout": 9}, {"call_timeout": 5.0}),
        (
            {"idle_timeout": 0, "list_timeout": 1, "shutdown_timeout": 2},
            {"idle_timeout": 0.0, "list_timeout": 1.0, "shutdown_timeout": 2.0},
        ),
    ],
)
def test_time_limits_are_seconds(entry, expected):
    """C19."""
    found = fields(**STDIO, **entry)

    assert {name: value for name, value in found.items() if name.endswith("_timeout")} == expected


def test_milliseconds_are_reported():
    """C19: what is over a thousand."""
    assert noticed(read(**STDIO, timeout=30000), "read as milliseconds")
    assert not read(**STDIO, timeout=30).notices


# State, filters, approvals


@pytest.mark.parametrize(
    ("entry", "enabled"),
    [
        ({"disabled": True}, False),
        ({"disabled": False}, True),
        ({"enabled": False}, False),
        ({"enabled": "true"}, True),
        ({"isActive": False}, False),
        ({"startup": False}, False),
        ({"enabled": True, "disabled": True}, False),
        ({}, None),
        ({"disabled": None}, None),
    ],
)
def test_enabled_in_all_its_spellings(entry, enabled):
    """C10."""
    assert fields(**STDIO, **entry).get("enabled") is enabled


@pytest.mark.parametrize(
    ("entry", "allowed", "blocked"),
    [
        ({"disabledTools": ["a"]}, "absent", ["a"]),
        ({"excludeTools": ["a"], "disabled_tools": ["b"]}, "absent", ["b", "a"]),
        ({"includeTools": ["a"]}, ["a"], "absent"),
        ({"enabled_tools": []}, [], "absent"),
        ({"allowed_tools": None}, None, "absent"),
        ({"toolFilter": ["a"]}, ["a"], "absent"),
        ({"toolFilter": {"include": ["a"], "exclude": ["b"]}}, ["a"], ["b"]),
        ({"toolFilter": {"exclude": ["b"]}, "blocked_tools": ["c"]}, None, ["b", "c"]),
        ({"tools": ["*"]}, None, "absent"),
        ({"tools": ["a"]}, ["a"], "absent"),
        ({"tools": {"a": {}}}, "absent", "absent"),
    ],
)
def test_filters_in_all_their_spellings(entry, allowed, blocked):
    found = fields(**STDIO, **entry)

    assert (found.get("allowed_tools", "absent"), found.get("blocked_tools", "absent")) == (allowed, blocked)


@pytest.mark.parametrize("key", ["autoApprove", "alwaysAllow", "trust"])
def test_approvals_grant_nothing(key):
    """C10."""
    server = read(**STDIO, disabled=True, **{key: ["*"]})

    assert server.fields == {
        "transport": "stdio",
        "command": "npx",
        "args": ["-y", "server"],
        "enabled": False,
    }
    assert server.extra == {key: ["*"]}
    assert noticed(server, f"{key!r} grants nothing")
    assert not read(**STDIO, **{key: []}).notices


def test_unknown_keys_are_kept_as_they_are():
    """C19."""
    extra = {"icon": "x.png", "oauth": {"clientId": "a", "clientSecret": "b"}, "mode": "fast", "strict": True}
    server = read(**STDIO, **extra)

    assert server.extra == extra
    assert noticed(server, "'oauth' is kept, but signing in is not set up")


def test_our_own_keys_are_taken_over():
    own = {
        "description": "d",
        "cwd": "/srv",
        "inherit_environment": False,
        "auto_reconnect": False,
        "trust_annotations": True,
        "max_concurrency": 2,
        "max_result_size": 5,
        "mode": "legacy",
        "link": "stock",
        "strict": ["parse_errors"],
        "stopped": True,
    }

    assert fields(**STDIO, **own) == {"transport": "stdio", **STDIO, **own}
    assert fields(url="https://h", type="http", terminateOnClose=False)["terminate_on_close"] is False


# References that cannot be resolved here


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "${workspaceFolder}/run"},
        {"command": "x", "args": ["${workspaceFolder:api}"]},
        {"command": "x", "cwd": "${userHome}"},
        {"command": "x", "env": {"A": "${command:pick}"}},
        {"url": "https://${file}/"},
    ],
)
def test_variables_of_an_editor_are_an_error(entry):
    assert "which only an editor knows" in str(read(**entry).error)


def test_references_are_kept_raw():
    """C12: what is stored is the reference."""
    raw = {"A": "${TOKEN:-x}", "B": "$TOKEN", "C": "${env:TOKEN}"}

    assert fields(**STDIO, env=raw)["env"] == raw


def test_placeholders_for_each_user_are_noticed():
    server = read(url="https://h", type="http", headers={"X-User": "{{LIBRECHAT_USER_ID}}"})

    assert server.error is None
    assert noticed(server, "double braces")


def test_settings_and_text_give_the_same():
    document = {"mcpServers": {"one": STDIO}}

    assert parse(document) == parse_text(json.dumps(document))
