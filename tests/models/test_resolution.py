from __future__ import annotations

import pytest

from mcp_client_app.datatypes import ProtocolMode, StrictOptions, ToolFilter, Transport
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models import ServerConfig

VARIABLES = {
    "TOKEN": "hunter2",
    "LINE": "hunter2\n",
    "TWO_LINES": "hunter2\nX: y",
    "HOST": "example.com",
    "EMPTY": "",
}


@pytest.fixture(autouse=True)
def _readable(settings):
    settings.MCP_CLIENT_ENV_ALLOW = [*VARIABLES, "NOPE"]


def stdio(**fields) -> ServerConfig:
    return ServerConfig(**{"name": "one", "command": "npx", **fields})


def http(**fields) -> ServerConfig:
    return ServerConfig(**{"name": "one", "transport": "streamable_http", "url": "https://h/mcp", **fields})


def failure(row: ServerConfig) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        row.to_spec(VARIABLES)
    assert caught.value.server == "one"
    assert "hunter2" not in str(caught.value)
    return caught.value


def test_every_field_reaches_the_core():
    spec = stdio(
        args=["a", "${HOST}"],
        env={"A": "${TOKEN}", "B": "x $TOKEN"},
        cwd="/srv/${HOST}",
        inherit_environment=False,
        inherited_names=["HOST"],
        mode="legacy",
        connect_timeout=1,
        list_timeout=2,
        call_timeout=0,
        shutdown_timeout=4,
        idle_timeout=5,
        max_concurrency=6,
        max_result_size=7,
        auto_reconnect=False,
        trust_annotations=True,
        strict=["parse_errors"],
        allowed_tools=["a"],
        blocked_tools=["b"],
        link="stock",
        revision=9,
    ).to_spec(VARIABLES)

    assert (spec.name, spec.transport, spec.revision, spec.command) == ("one", Transport.STDIO, 9, "npx")
    assert (spec.args, spec.cwd) == (("a", "example.com"), "/srv/example.com")
    assert spec.env == {"A": "hunter2", "B": "x hunter2"}
    assert (spec.inherit_environment, spec.inherited_names) == (False, ("HOST",))
    assert spec.mode is ProtocolMode.LEGACY
    assert (spec.connect_timeout, spec.list_timeout, spec.call_timeout) == (1, 2, 0)
    assert (spec.shutdown_timeout, spec.idle_timeout) == (4, 5)
    assert (spec.max_concurrency, spec.max_result_size) == (6, 7)
    assert (spec.auto_reconnect, spec.trust_annotations, spec.link) == (False, True, "stock")
    assert spec.strict == StrictOptions(parse_errors=True)
    assert spec.filter == ToolFilter(("a",), ("b",))


def test_what_the_row_leaves_open_comes_from_the_settings(settings):
    settings.MCP_CLIENT_CALL_TIMEOUT = 7
    settings.MCP_CLIENT_MAX_CONCURRENCY = 3
    settings.MCP_CLIENT_LINK = "stock"
    spec = stdio().to_spec({})

    assert (spec.call_timeout, spec.max_concurrency, spec.link, spec.cwd) == (7.0, 3, "stock", None)
    assert spec.filter == ToolFilter(None, ())


def test_a_url_and_headers_are_filled_in_and_judged():
    """C12, H24."""
    row = http(
        url="https://${HOST}/mcp", headers={"Authorization": "Bearer $TOKEN"}, terminate_on_close=False
    )
    spec = row.to_spec(VARIABLES)

    assert spec.url == "https://example.com/mcp"
    assert spec.headers == {"Authorization": "Bearer hunter2"}
    assert spec.terminate_on_close is False


def test_final_newlines_of_header_values_are_dropped():
    """H23: tokens from files end in one."""
    assert http(headers={"X": "${LINE}"}).to_spec(VARIABLES).headers == {"X": "hunter2"}


def test_an_in_process_server_is_looked_up_in_the_settings(settings):
    settings.MCP_CLIENT_IN_PROCESS_SERVERS = {"demo": "site.servers.demo"}
    row = ServerConfig(name="one", transport="in_process", in_process="demo")
    assert row.to_spec({}).in_process == "site.servers.demo"

    row.in_process = "other"
    assert failure(row).field == "in_process"


def test_the_environment_of_this_process_is_the_default(monkeypatch):
    monkeypatch.setenv("TOKEN", "from here")

    assert stdio(env={"A": "${TOKEN}"}).to_spec().env == {"A": "from here"}


def test_an_unset_bare_word_stays_with_a_warning():
    resolved = stdio(env={"A": "$NOPE"}).resolve(VARIABLES)

    assert resolved.spec.env == {"A": "$NOPE"}
    assert resolved.warnings == ("The variable 'NOPE' in 'env.A' is not set; the text is used as it stands.",)


def test_bare_words_do_not_count_in_arguments():
    assert stdio(args=["$TOKEN"], command="$TOKEN").to_spec(VARIABLES).args == ("$TOKEN",)


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (stdio(env={"A": "${NOPE}"}), "env.A"),
        (stdio(args=["x", "${NOPE}"]), "args.1"),
        (stdio(command="${NOPE}"), "command"),
        (stdio(command="${EMPTY}"), "command"),
        (stdio(cwd="${NOPE}"), "cwd"),
        (stdio(env={"A": "${input:x}"}), "env.A"),
        (stdio(args="x"), "args"),
        (stdio(env={"A": 1}), "env"),
        (stdio(inherited_names="x"), "inherited_names"),
        (stdio(transport="x"), "transport"),
        (stdio(mode="x"), "mode"),
        (stdio(strict=["x"]), "strict"),
        (stdio(strict=None), "strict"),
        (stdio(allowed_tools="x"), "allowed_tools"),
        (stdio(blocked_tools=[1]), "blocked_tools"),
        (stdio(link="site.links.Custom"), "link"),
        (http(url="${NOPE}/mcp"), "url"),
        (http(url="${HOST}/mcp"), "url"),
        (http(url="ftp://${TOKEN}"), "url"),
        (http(url=""), "url"),
        (http(headers={"X": "${TWO_LINES}"}), "headers"),
        (http(headers={"X": None}), "headers"),
        (http(headers={"X": "${NOPE}"}), "headers.X"),
    ],
)
def test_a_server_that_cannot_work_fails_with_the_field(row, field):
    assert failure(row).field == field


def test_stdio_can_be_switched_off(settings):
    settings.MCP_CLIENT_ALLOW_STDIO = False

    assert "MCP_CLIENT_ALLOW_STDIO" in str(failure(stdio()))


def test_settings_and_file_may_name_a_link_class():
    assert stdio(link="site.links.Custom", source="settings").to_spec({}).link == "site.links.Custom"


# Which variables may be read

SECRET = {"DJANGO_SECRET_KEY": "hunter2"}


def reading(**fields) -> ServerConfig:
    return stdio(env={"A": "${DJANGO_SECRET_KEY}"}, **fields)


def test_a_stored_row_reads_no_variable_unless_it_is_allowed(settings):
    """C18."""
    settings.MCP_CLIENT_ENV_ALLOW = []
    with pytest.raises(ConfigurationError) as caught:
        reading().to_spec(SECRET)
    assert (caught.value.field, caught.value.variable) == ("env.A", "DJANGO_SECRET_KEY")

    settings.MCP_CLIENT_ENV_ALLOW = ["DJANGO_*"]
    assert reading().to_spec(SECRET).env == {"A": "hunter2"}


@pytest.mark.parametrize(
    "fields", [{"source": "settings"}, {"source": "file"}, {"may_reference_environment": True}]
)
def test_the_operators_own_servers_and_granted_rows_read_any_variable(settings, fields):
    settings.MCP_CLIENT_ENV_ALLOW = []

    assert reading(**fields).to_spec(SECRET).env == {"A": "hunter2"}


@pytest.mark.parametrize(
    "fields", [{}, {"source": "settings"}, {"source": "file"}, {"may_reference_environment": True}]
)
def test_the_deny_list_wins_over_everything_and_ignores_case(settings, fields):
    """C18."""
    settings.MCP_CLIENT_ENV_ALLOW = ["*"]
    settings.MCP_CLIENT_ENV_DENY = ["django_*"]

    with pytest.raises(ConfigurationError):
        reading(**fields).to_spec(SECRET)


def test_passing_a_variable_on_is_reading_it(settings):
    settings.MCP_CLIENT_ENV_ALLOW = []

    error = failure(stdio(inherited_names=["TOKEN"]))
    assert (error.field, error.variable) == ("inherited_names", "TOKEN")
