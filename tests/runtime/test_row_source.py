"""The manager's view of the rows: one query per interval, at once after a commit."""

from __future__ import annotations

import importlib
import json
import threading

import pytest
from django.db import OperationalError, connection, transaction

from mcp_client_app.exceptions import ConfigurationError, DuplicateServerError, UnknownServerError
from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import get_mcp_manager, row_source
from tests.stored import close_connections, peer_entry, run_process, stored

pytestmark = pytest.mark.django_db(transaction=True)

LONG = 3600
# The package's attribute of this name is the process's source itself.
row_source_module = importlib.import_module("mcp_client_app.runtime.row_source")


def commands() -> dict[str, str]:
    """Return what the source takes the command of each server to be."""
    entries = row_source.current().entries
    return {name: entry.spec.command if entry.spec else "" for name, entry in entries.items()}


# When it looks -----------------------------------------------------------------------


def test_within_the_interval_nothing_is_read(settings, django_assert_num_queries):
    settings.MCP_CLIENT_REVISION_INTERVAL = LONG
    stored("one")
    row_source.current()

    with django_assert_num_queries(0):
        row_source.current()


@pytest.mark.parametrize("servers", [1, 5])
def test_a_look_that_finds_nothing_new_costs_one_query_for_all_servers(
    settings, django_assert_num_queries, servers
):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    for number in range(servers):
        stored(f"server{number}")
    before = row_source.current()

    with django_assert_num_queries(1):
        assert row_source.current() is before


def test_a_change_is_read_with_one_more_query(settings, django_assert_num_queries):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    stored("one")
    row_source.current()
    ServerConfig.objects.update(command="changed")

    with django_assert_num_queries(2):
        assert commands() == {"one": "changed"}


def test_only_the_changed_server_gets_a_new_spec(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    stored("one")
    stored("two")
    before = row_source.current().entries

    ServerConfig.objects.filter(name="two").update(command="changed")

    after = row_source.current().entries
    assert after["one"] is before["one"]
    assert after["two"] is not before["two"]


def test_a_wish_for_fresh_data_resolves_everything_anew(settings, monkeypatch):
    settings.MCP_CLIENT_REVISION_INTERVAL = LONG
    settings.MCP_CLIENT_ENV_ALLOW = ["PEER_COMMAND"]
    monkeypatch.setenv("PEER_COMMAND", "first")
    stored("one", command="${PEER_COMMAND}")
    assert commands() == {"one": "first"}

    monkeypatch.setenv("PEER_COMMAND", "second")

    assert commands() == {"one": "first"}
    row_source.current(fresh=True)
    assert commands() == {"one": "second"}


# Changes in this process -----------------------------------------------------------------


def test_a_saved_change_is_seen_at_once(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = LONG
    row = stored("one")
    row_source.current()

    row.command = "changed"
    row.save()
    assert commands() == {"one": "changed"}

    row.delete()
    assert commands() == {}


def test_a_change_counts_once_it_is_committed(settings):
    """D08."""
    settings.MCP_CLIENT_REVISION_INTERVAL = LONG
    row = stored("one")
    before = row_source.current()

    with transaction.atomic():
        row.command = "changed"
        row.save()
        assert row_source.current() is before

    assert commands() == {"one": "changed"}


def test_a_change_that_is_rolled_back_leaves_nothing(settings):
    """D08."""
    settings.MCP_CLIENT_REVISION_INTERVAL = LONG
    row = stored("one")
    before = row_source.current()

    with transaction.atomic():
        row.command = "changed"
        row.save()
        transaction.set_rollback(True)

    assert row_source.current() is before


def test_what_was_seen_of_a_change_that_is_rolled_back_is_not_kept(settings):
    """The next change may get the same revision as the one that was undone."""
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    stored("one")
    row_source.current()
    with transaction.atomic():
        row = ServerConfig.objects.get()
        row.command = "undone"
        row.save()
        assert commands() == {"one": "undone"}
        undone = row.revision
        transaction.set_rollback(True)

    again = ServerConfig.objects.get()
    again.command = "done"
    again.save()

    assert again.revision == undone
    assert commands() == {"one": "done"}


def test_a_server_that_was_deleted_and_made_anew_is_another_one(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    row = stored("one")
    row_source.current()

    row.delete()
    stored("one", command="changed", revision=row.revision)

    assert commands() == {"one": "changed"}


def test_a_change_that_is_saved_while_another_thread_looks_is_seen(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = LONG
    row = stored("one")
    row_source.current()
    reading, saved = threading.Event(), threading.Event()

    def hold_back(execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        reading.set()
        assert saved.wait(20)
        return result

    def look() -> None:
        try:
            with connection.execute_wrapper(hold_back):
                row_source.current()
        finally:
            connection.close()

    row_source.invalidate()
    looker = threading.Thread(target=look)
    looker.start()
    assert reading.wait(20)
    row.command = "changed"
    row.save()
    saved.set()
    looker.join()

    assert commands() == {"one": "changed"}


def test_a_look_that_takes_for_ever_does_not_stop_the_other_threads(settings, monkeypatch):
    """It may wait for a transaction of one of them."""
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    monkeypatch.setattr(row_source_module, "PATIENCE", 0.01)
    stored("one")
    before = row_source.current()
    reading, go_on = threading.Event(), threading.Event()

    def hold_back(execute, sql, params, many, context):
        reading.set()
        assert go_on.wait(20)
        return execute(sql, params, many, context)

    def look() -> None:
        try:
            with connection.execute_wrapper(hold_back):
                row_source.current()
        finally:
            connection.close()

    looker = threading.Thread(target=look)
    looker.start()
    assert reading.wait(20)
    seen = row_source.current()
    go_on.set()
    looker.join()

    assert seen is before


# Changes elsewhere -----------------------------------------------------------------------


def test_a_change_of_another_process_is_seen_with_the_next_look(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    stored("one")
    assert get_mcp_manager().list_servers() == ["one"]

    run_process("""
from tests.stored import stored
from mcp_client_app.models import ServerConfig
stored("two")
ServerConfig.objects.filter(name="one").update(command="changed")
""")

    assert commands()["one"] == "changed"
    assert get_mcp_manager().list_servers() == ["one", "two"]


@pytest.mark.anyio
async def test_coroutines_see_the_same(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = LONG
    assert (await row_source.acurrent()).entries == {}

    await ServerConfig.objects.acreate(name="one", command="x")
    seen = await row_source.acurrent()

    assert list(seen.entries) == ["one"]
    assert await row_source.acurrent() is seen
    await close_connections()


# A database that fails ------------------------------------------------------------------


def failing(execute, sql, params, many, context):
    raise OperationalError("the database is away")


def test_the_last_view_is_kept_while_the_database_is_away(settings, caplog):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    stored("one")
    before = row_source.current()

    with connection.execute_wrapper(failing):
        assert row_source.current() is before
        assert row_source.current(fresh=True) is before

    assert "OperationalError" in caplog.text
    ServerConfig.objects.update(command="changed")
    assert commands() == {"one": "changed"}


def test_without_tables_the_error_names_the_cure():
    with (
        connection.execute_wrapper(failing),
        pytest.raises(ConfigurationError, match="migrate"),
    ):
        row_source.current()


# Rows that are unsound ------------------------------------------------------------------


def test_an_unsound_row_costs_that_server_only():
    stored("sound")
    stored("no-command", command="")
    stored("no-such-variable", command="${SURELY_NOT_SET_ANYWHERE}", may_reference_environment=True)
    stored("odd", transport="pigeon")
    stored("environment", env=["not", "a", "map"])

    entries = row_source.current().entries

    assert entries["sound"].spec is not None
    unsound = {name for name, entry in entries.items() if entry.error is not None}
    assert unsound == {"no-command", "no-such-variable", "odd", "environment"}
    statuses = {status.name: status for status in get_mcp_manager().status()}
    assert statuses["odd"].code == "configuration"
    assert get_mcp_manager().call_tool("sound__echo", {"text": "hi"}).text == "hi"


# The manager's own verbs -----------------------------------------------------------------


def test_a_server_can_be_added_and_removed_from_code():
    handle = get_mcp_manager().add_server("mine", peer_entry())

    assert handle.call_tool("echo", {"text": "hi"}).text == "hi"
    assert ServerConfig.objects.get().name == "mine"
    get_mcp_manager().remove_server("mine")
    assert not ServerConfig.objects.exists()
    with pytest.raises(UnknownServerError):
        get_mcp_manager().status("mine")


def test_a_name_is_given_once_whatever_its_case():
    stored("Mine")

    with pytest.raises(DuplicateServerError) as caught:
        get_mcp_manager().add_server("mine", peer_entry())

    assert caught.value.field == "name"


@pytest.mark.parametrize("name", ["", "two words", "a__b", "1st", "x" * 41])
def test_a_name_that_cannot_be_is_refused(name):
    with pytest.raises(ConfigurationError, match="cannot name a server"):
        get_mcp_manager().add_server(name, peer_entry())


@pytest.mark.parametrize("config", [{}, {"type": "pigeon", "url": "http://x"}, {"command": 7}])
def test_a_configuration_that_cannot_work_is_refused(config):
    with pytest.raises(ConfigurationError):
        get_mcp_manager().add_server("mine", config)

    assert not ServerConfig.objects.exists()


def test_a_configuration_that_is_no_mapping_is_refused():
    with pytest.raises(ConfigurationError, match="mapping"):
        get_mcp_manager().add_server("mine", "npx x")  # type: ignore[arg-type]


def test_removing_what_is_not_there_is_worth_a_warning(caplog):
    get_mcp_manager().remove_server("nobody")

    assert "nobody" in caplog.text


def test_a_server_of_the_settings_cannot_be_removed_from_code(settings):
    settings.MCP_CLIENT_SERVERS = {"theirs": peer_entry()}
    get_mcp_manager().list_servers()

    with pytest.raises(ConfigurationError, match="settings"):
        get_mcp_manager().remove_server("theirs")


def test_the_servers_of_a_file_are_stored_and_connected(tmp_path, caplog):
    path = tmp_path / "servers.json"
    entries = {
        "up": peer_entry(),
        "off": {**peer_entry(), "disabled": True},
        "down": {"command": "surely-no-such-program"},
        "bad": {"type": "pigeon"},
    }
    path.write_text(json.dumps({"mcpServers": entries}))

    assert get_mcp_manager().load_from_config(path) == ["up"]

    assert set(ServerConfig.objects.values_list("name", flat=True)) == {"up", "off", "down"}
    assert "'bad' was not loaded" in caplog.text


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        get_mcp_manager().load_from_config(tmp_path / "nothing.json")
