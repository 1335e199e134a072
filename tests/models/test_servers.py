from __future__ import annotations

import threading

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from mcp_client_app.configuration.dialects import parse
from mcp_client_app.configuration.export import export
from mcp_client_app.datatypes import ProtocolMode, Transport
from mcp_client_app.models import ServerConfig


def server(**fields) -> ServerConfig:
    """Build a sound stdio server, unsaved."""
    return ServerConfig(**{"name": "one", "command": "npx", **fields})


def errors(**fields) -> dict[str, list[str]]:
    """Return the codes of what is wrong, by field."""
    row = server(**fields)
    with pytest.raises(ValidationError) as caught:
        row.full_clean(validate_unique=False, validate_constraints=False)
    return {name: [str(error.code) for error in found] for name, found in caught.value.error_dict.items()}


def is_sound(**fields) -> bool:
    server(**fields).full_clean(validate_unique=False, validate_constraints=False)
    return True


# Revisions


@pytest.mark.django_db
def test_save_raises_the_revision():
    row = ServerConfig.objects.create(name="a", command="x")
    before = row.revision

    row.save()
    assert row.revision == before + 1
    row.save(update_fields=["command"])
    assert row.revision == before + 2
    assert ServerConfig.objects.get().revision == before + 2


@pytest.mark.django_db
def test_a_save_of_no_fields_changes_nothing():
    row = ServerConfig.objects.create(name="a", command="x")
    before = row.revision

    row.save(update_fields=[])

    assert ServerConfig.objects.get().revision == row.revision == before


@pytest.mark.django_db
def test_two_savers_of_the_same_version_get_two_revisions():
    row = ServerConfig.objects.create(name="a", command="x")
    other = ServerConfig.objects.get()

    row.save()
    other.save()

    assert other.revision == row.revision + 1


@pytest.mark.django_db
def test_a_failed_save_leaves_the_revision_alone():
    ServerConfig.objects.create(name="a", command="x")
    row = ServerConfig.objects.create(name="b", command="x")
    before = row.revision
    row.name = "a"

    with pytest.raises(IntegrityError), transaction.atomic():
        row.save()

    assert row.revision == before
    assert ServerConfig.objects.get(name="b").revision == before


@pytest.mark.django_db
def test_update_raises_the_revision_and_notes_the_time():
    row = ServerConfig.objects.create(name="a", command="x")
    moment = timezone.now()

    assert ServerConfig.objects.filter(name="a").update(enabled=False) == 1

    changed = ServerConfig.objects.get()
    assert changed.revision == row.revision + 1
    assert changed.updated_at >= moment


@pytest.mark.django_db
def test_bulk_update_raises_the_revision():
    rows = [ServerConfig.objects.create(name=name, command="x") for name in "ab"]
    for row in rows:
        row.command = "y"

    ServerConfig.objects.bulk_update(rows, ["command"])

    for row in rows:
        assert ServerConfig.objects.get(pk=row.pk).revision == row.revision + 1


@pytest.mark.django_db
def test_update_or_create_raises_the_revision():
    row = ServerConfig.objects.create(name="a", command="x")

    changed, created = ServerConfig.objects.update_or_create(name="a", defaults={"command": "y"})

    assert not created
    assert changed.revision == row.revision + 1


@pytest.mark.django_db
def test_bulk_create_over_existing_rows_renews_the_revision():
    row = ServerConfig.objects.create(name="a", command="x")
    ServerConfig.objects.filter(pk=row.pk).update(revision=5)

    # MySQL and MariaDB take no target: any unique column counts there.
    target = ["name"] if connection.features.supports_update_conflicts_with_target else None
    ServerConfig.objects.bulk_create(
        [server(name="a", command="y")],
        update_conflicts=True,
        update_fields=["command"],
        unique_fields=target,
    )

    changed = ServerConfig.objects.get()
    assert (changed.command, changed.revision >= row.revision) == ("y", True)


@pytest.mark.django_db
def test_a_row_made_anew_under_an_old_name_does_not_repeat_a_revision_of_fixture_size():
    # A counter from 1 would: delete and create between two looks, and nobody notices.
    assert ServerConfig.objects.create(name="a", command="x").revision > 1_000_000_000


@pytest.mark.django_db
def test_revisions_takes_one_query(django_assert_num_queries):
    rows = {name: ServerConfig.objects.create(name=name, command="x").revision for name in "ab"}

    with django_assert_num_queries(1):
        assert ServerConfig.objects.revisions() == rows


@pytest.mark.django_db(transaction=True)
def test_savers_in_several_threads_lose_no_revision():
    row = ServerConfig.objects.create(name="a", command="x")
    start = threading.Barrier(4, timeout=30)

    def save() -> None:
        try:
            mine = ServerConfig.objects.get()
            start.wait()
            mine.save(update_fields=["command"])
        finally:
            connection.close()

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ServerConfig.objects.get().revision == row.revision + 4


# Querysets and verbs


@pytest.mark.django_db
def test_querysets_speak_of_what_the_operator_wants():
    ServerConfig.objects.create(name="on", command="x")
    ServerConfig.objects.create(name="off", command="x", enabled=False)
    ServerConfig.objects.create(name="held", command="x", stopped=True, source="file")

    def names(queryset):
        return [row.name for row in queryset]

    assert names(ServerConfig.objects.enabled()) == ["held", "on"]
    assert names(ServerConfig.objects.disabled()) == ["off"]
    assert names(ServerConfig.objects.connectable()) == ["on"]
    assert names(ServerConfig.objects.from_source("file")) == ["held"]
    assert names(ServerConfig.objects.named("ON")) == ["on"]


@pytest.mark.django_db
def test_verbs_change_one_wish_and_raise_the_revision():
    row = ServerConfig.objects.create(name="a", command="x")
    ServerConfig.objects.filter(pk=row.pk).update(command="y", revision=row.revision)

    for verb, field, value in [
        ("disable", "enabled", False),
        ("enable", "enabled", True),
        ("stop", "stopped", True),
        ("unstop", "stopped", False),
    ]:
        before = row.revision
        getattr(row, verb)()
        stored = ServerConfig.objects.get()
        assert (getattr(stored, field), stored.revision, stored.command) == (value, before + 1, "y")


# Names


@pytest.mark.django_db
def test_names_are_unique_without_regard_to_case():
    ServerConfig.objects.create(name="GitHub", command="x")

    for name in ("github", "GitHub"):
        with pytest.raises(ValidationError) as caught:
            server(name=name).full_clean()
        assert list(caught.value.message_dict) == ["name"]
        with pytest.raises(IntegrityError), transaction.atomic():
            server(name=name).save()


@pytest.mark.django_db
def test_a_row_may_change_the_case_of_its_own_name():
    row = ServerConfig.objects.create(name="GitHub", command="x")
    row.name = "github"

    row.full_clean()
    row.save()

    assert ServerConfig.objects.get_by_natural_key("github") == row
    assert row.natural_key() == ("github",)


def test_a_row_is_called_by_its_name_and_titled_by_its_label():
    assert str(server()) == "one"
    assert server().title == "one"
    assert server(label="Eins").title == "Eins"


# Validation


@pytest.mark.parametrize(
    "fields",
    [
        {"args": ["-y"], "env": {"A": "x"}, "cwd": "/srv"},
        {"transport": "streamable_http", "command": "", "url": "https://h", "headers": {"X": "y"}},
        {"transport": "sse", "command": "", "url": "${BASE}/sse", "source": "file"},
        {"strict": ["parse_errors"], "allowed_tools": [], "blocked_tools": ["x*"], "call_timeout": 0},
        {"link": "stock"},
        {"link": "site.links.Custom", "source": "settings"},
        {"env": {"A": "${input:x}"}, "enabled": False},
        {"env": {"A": "pa$USERword", "B": "$$USER"}, "args": ["$HOME"]},
    ],
)
def test_sound_servers(fields):
    assert is_sound(**fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"command": ""}, {"command": ["required"]}),
        ({"transport": "sse", "command": ""}, {"url": ["required"]}),
        ({"transport": "in_process", "command": ""}, {"in_process": ["required"]}),
        ({"transport": "in_process", "command": "", "in_process": "x"}, {"in_process": ["in_process_key"]}),
        ({"url": "https://h"}, {"url": ["irrelevant"]}),
        ({"headers": {"X": "y"}}, {"headers": ["irrelevant"]}),
        ({"transport": "sse", "url": "https://h"}, {"command": ["irrelevant"]}),
        ({"in_process": "x"}, {"in_process": ["irrelevant"]}),
        ({"transport": "htttp"}, {"transport": ["invalid_choice"]}),
        ({"mode": "x"}, {"mode": ["invalid_choice"]}),
        ({"name": "a__b"}, {"name": ["server_name"]}),
        ({"args": "x"}, {"args": ["args", "list"]}),
        ({"env": {"A": 1}}, {"env": ["mapping"]}),
        ({"env": []}, {"env": ["object"]}),
        ({"env": None}, {"env": ["object"]}),
        ({"args": None}, {"args": ["list"]}),
        ({"transport": "sse", "command": "", "url": "ftp://h"}, {"url": ["url"]}),
        ({"allowed_tools": [""]}, {"allowed_tools": ["tool_patterns"]}),
        ({"blocked_tools": "x"}, {"blocked_tools": ["tool_patterns", "list"]}),
        ({"blocked_tools": None}, {"blocked_tools": ["list"]}),
        ({"allowed_tools": {}}, {"allowed_tools": ["list"]}),
        ({"call_timeout": -1}, {"call_timeout": ["seconds"]}),
        ({"strict": ["everything"]}, {"strict": ["strict"]}),
        ({"strict": "x"}, {"strict": ["list"]}),
        ({"strict": [["x"]]}, {"strict": ["strict"]}),
        ({"link": "site.links.Custom"}, {"link": ["link"]}),
        ({"link": "nonsense", "source": "file"}, {"link": ["link"]}),
        ({"inherited_names": ["no name"]}, {"inherited_names": ["variable_names", "reference"]}),
        ({"env": {"A": "x ${input:y}"}}, {"env": ["placeholder"]}),
        ({"args": ["${SECRET_KEY}"]}, {"args": ["reference"]}),
        ({"env": {"A": "$SECRET_KEY", "B": "${X:-${Y}}"}}, {"env": ["reference"]}),
        ({"inherited_names": ["SECRET_KEY"]}, {"inherited_names": ["reference"]}),
    ],
)
def test_what_is_wrong_is_told_by_field(fields, expected):
    assert errors(**fields) == expected


def test_all_that_is_wrong_is_told_at_once():
    assert set(errors(command="", url="https://h", strict=["x"])) == {"command", "url", "strict"}


def test_stdio_can_be_switched_off(settings):
    settings.MCP_CLIENT_ALLOW_STDIO = False

    assert errors() == {"transport": ["stdio_not_allowed"]}


def test_in_process_servers_are_keys_of_the_settings(settings):
    settings.MCP_CLIENT_IN_PROCESS_SERVERS = {"demo": "site.servers.demo"}

    assert is_sound(transport="in_process", command="", in_process="demo")


def test_programs_on_this_machine_are_told_from_addresses():
    assert server().runs_code
    assert server(transport="in_process").runs_code
    assert not server(transport="sse").runs_code


def test_choices_cover_every_value_of_the_core():
    assert [value for value, _ in ServerConfig.TRANSPORTS] == list(Transport)
    assert [value for value, _ in ServerConfig.MODES] == list(ProtocolMode)


# Import and export


def import_into(row: ServerConfig, **entry) -> list[str]:
    (imported,) = parse({row.name: entry})
    assert imported.error is None
    return row.apply_import(imported)


def test_an_import_changes_what_it_says_and_keeps_the_rest():
    row = server(args=["old"], env={"A": "1"}, blocked_tools=["x"], label="Kept", call_timeout=5)

    assert import_into(row, command="uvx", args=["new"]) == []

    assert (row.command, row.args, row.env) == ("uvx", ["new"], {"A": "1"})
    assert (row.blocked_tools, row.label, row.call_timeout, row.enabled) == (["x"], "Kept", 5, True)


def test_an_import_of_null_keeps_the_stored_value():
    row = server(env={"A": "hunter2", "B": "gone"})

    assert import_into(row, command="npx", env={"A": None, "C": "new"}) == []

    assert row.env == {"A": "hunter2", "C": "new"}
    assert row.enabled


def test_an_import_without_a_needed_value_disables_the_server_and_says_what_is_missing():
    row = server()

    assert import_into(row, command="npx", env={"A": None, "B": "${input:b}"}, args=["${input:c}"]) == [
        "args.0",
        "env.A",
        "env.B",
    ]
    assert not row.enabled


def test_the_label_is_the_name_in_the_file_where_that_differs():
    (imported,) = parse({"My Server": {"command": "x"}})
    row = ServerConfig(name=imported.name)

    row.apply_import(imported)

    assert (row.name, row.label) == ("My-Server", "My Server")


@pytest.mark.django_db
def test_export_then_import_gives_the_same_rows_and_keeps_literal_secrets(settings):
    settings.MCP_CLIENT_IN_PROCESS_SERVERS = {"demo": "site.servers.demo"}
    settings.MCP_CLIENT_ENV_ALLOW = ["*"]
    rows = [
        server(
            name="everything",
            label="Every thing",
            description="d",
            args=["a b", ""],
            env={"A": "hunter2", "B": "${TOKEN}", "C": ""},
            cwd="/srv",
            inherit_environment=False,
            inherited_names=["HOME"],
            mode="legacy",
            connect_timeout=1.0,
            list_timeout=2.0,
            call_timeout=30000.0,
            shutdown_timeout=0.0,
            idle_timeout=4.0,
            max_concurrency=5,
            max_result_size=0,
            auto_reconnect=False,
            trust_annotations=True,
            strict=["parse_errors"],
            allowed_tools=["a*"],
            blocked_tools=["b"],
            link="stock",
            enabled=False,
            stopped=True,
            extra={"icon": "x", "oauth": {"clientSecret": "hunter2", "id": 1}},
        ),
        server(name="path", command="/opt/My App/run", args=[], allowed_tools=[]),
        server(name="line", command="two words", args=[]),
        server(
            name="web",
            transport="streamable_http",
            command="",
            url="https://h/sse?key=1",
            headers={"Authorization": "Bearer hunter2", "X": "$X"},
            terminate_on_close=False,
            extra={"env": {"K": "hunter2"}},
        ),
        server(name="old", transport="sse", command="", url="https://h/mcp"),
        server(name="demo", transport="in_process", command="", in_process="demo"),
    ]
    for row in rows:
        row.full_clean()
        row.save()
    before = {row.name: row.export_values() for row in ServerConfig.objects.all()}

    document = export(row.export_values() for row in ServerConfig.objects.all())
    assert "hunter2" not in str(document)
    for imported in parse(document):
        assert imported.error is None
        row = ServerConfig.objects.get(name=imported.name)
        assert row.apply_import(imported) == []
        row.full_clean()
        row.save()

    assert {row.name: row.export_values() for row in ServerConfig.objects.all()} == before


# Who may refer to the environment


@pytest.mark.django_db
def test_a_saver_with_the_permission_grants_what_the_row_refers_to():
    row = server(env={"A": "${SECRET_KEY}"})
    row.judge_references(saver_may=True)

    assert row.may_reference_environment
    row.full_clean()


def test_nothing_is_granted_to_a_row_that_refers_to_nothing():
    row = server(env={"A": "x"})
    for saver_may in (True, False):
        row.judge_references(saver_may=saver_may)
        assert not row.may_reference_environment


@pytest.mark.django_db
def test_a_grant_outlives_changes_that_reach_nothing_else():
    row = server(env={"A": "${SECRET_KEY}"}, may_reference_environment=True)
    row.save()
    row.description, row.blocked_tools = "new", ["x"]

    row.judge_references(saver_may=False)

    assert row.may_reference_environment


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change", [{"command": "curl"}, {"args": ["evil.example"]}, {"env": {"A": "${SECRET_KEY}", "B": "x"}}]
)
def test_a_grant_ends_when_somebody_without_the_permission_changes_what_is_reached(change):
    row = server(env={"A": "${SECRET_KEY}"}, may_reference_environment=True)
    row.save()
    for name, value in change.items():
        setattr(row, name, value)

    row.judge_references(saver_may=False)

    assert not row.may_reference_environment
    with pytest.raises(ValidationError) as caught:
        row.full_clean()
    assert list(caught.value.message_dict) == ["env"]


@pytest.mark.django_db
def test_a_grant_cannot_be_claimed_by_a_new_row():
    row = server(env={"A": "${SECRET_KEY}"}, may_reference_environment=True)

    row.judge_references(saver_may=False)

    assert not row.may_reference_environment
