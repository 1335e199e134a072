from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group

from mcp_client_app import services
from mcp_client_app.models import AgentConfig, AgentServer
from tests.stored import stored

SECRET = "s3cret-value-that-never-shows"
EDITOR = ("view_agentconfig", "add_agentconfig", "change_agentconfig", "delete_agentconfig")


@pytest.fixture(autouse=True)
def _servers(_site) -> None:
    stored("files")
    stored("tracker")


def agent(name: str = "support", **fields: Any) -> AgentConfig:
    return services.add_agent(name, **fields)


def with_secrets() -> AgentConfig:
    return agent(
        servers=[
            {
                "server": "tracker",
                "fixed_arguments": {"search": {"token": SECRET, "nested": {"key": SECRET}}},
            },
            "files",
        ],
        model_settings={"temperature": 0, "extra_headers": {"X-Key": SECRET}},
    )


def fixed() -> dict[str, Any]:
    return dict(AgentServer.objects.get(server__name="tracker").fixed_arguments)


# Reading


def test_an_agent_is_shown_with_all_that_is_stored(api):
    Group.objects.create(name="helpers")
    row = agent(
        label="Help",
        model="openai:gpt-5",
        groups=["helpers"],
        servers=["tracker", {"server": "files", "allowed_tools": ["read_*"], "approval": "writes"}],
    )

    answer = api.get("agents/SUPPORT")

    assert answer.status_code == 200
    assert answer["ETag"] == f'"{row.revision}"'
    assert answer["Cache-Control"] == "no-store"
    shown = answer.json()
    assert (shown["name"], shown["label"], shown["model"]) == ("support", "Help", "openai:gpt-5")
    assert (shown["groups"], shown["allowed_tools"], shown["max_rounds"]) == (["helpers"], None, 8)
    assert [server["server"] for server in shown["servers"]] == ["files", "tracker"]
    assert shown["servers"][0] == {
        "server": "files",
        "allowed_tools": ["read_*"],
        "blocked_tools": [],
        "fixed_arguments": {},
        "output_filters": {},
        "result_limit": None,
        "result_limits": {},
        "approval": "writes",
        "tool_approvals": {},
    }


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["alpha", "beta", "gamma"]),
        ("?search=ALPH", ["alpha"]),
        ("?search=words", ["beta"]),
        ("?enabled=false", ["beta"]),
        ("?server=Files", ["gamma"]),
        ("?enabled=true&page_size=1&page=2", ["gamma"]),
    ],
)
def test_agents_are_found(api, query, names):
    agent("alpha")
    agent("beta", description="some words", enabled=False)
    agent("gamma", servers=["files"])

    assert [each["name"] for each in api.get(f"agents/{query}").json()["results"]] == names


def test_a_list_of_agents_costs_the_same_however_many_there_are(api, django_assert_max_num_queries):
    for number in range(12):
        agent(f"a{number}", servers=["files", "tracker"])

    with django_assert_max_num_queries(6):
        answer = api.get("agents/")

    assert answer.json()["count"] == 12


def test_an_agent_that_is_not_there_is_not_found(api):
    for answer in (api.get("agents/nobody/"), api.patch("agents/nobody/", {}), api.delete("agents/nobody/")):
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_agent")


# Secrets


def test_values_that_are_fixed_never_show(api):
    with_secrets()

    def of_tracker(**fields: Any) -> dict[str, Any]:
        return {"servers": [{"server": "tracker", **fields}]}

    answers = [
        api.get("agents/"),
        api.get("agents/support/"),
        api.patch("agents/support/", {"label": "x"}),
        api.patch("agents/support/", of_tracker(fixed_arguments={"a": {"b": {"c": SECRET}}})),
        api.patch("agents/support/", of_tracker(fixed_arguments={"a": SECRET})),
        api.post("agents/", {"name": "a b", **of_tracker(fixed_arguments={"a": {"b": SECRET}})}),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 400, 400, 400]
    for answer in answers:
        assert SECRET not in answer.content.decode()
    tracker = answers[1].json()["servers"][1]
    assert tracker["fixed_arguments"] == {"search": {"token": {"set": True}, "nested": {"set": True}}}
    assert answers[1].json()["model_settings"] == {"temperature": 0, "extra_headers": {"X-Key": None}}


@pytest.mark.parametrize("method", ["put", "patch"])
def test_what_was_shown_can_be_sent_back_and_nothing_changes(api, method):
    with_secrets()
    shown = api.get("agents/support/").json()

    answer = getattr(api, method)("agents/support/", shown)

    assert answer.status_code == 200, answer.content
    assert fixed() == {"search": {"token": SECRET, "nested": {"key": SECRET}}}
    assert AgentConfig.objects.get().model_settings["extra_headers"] == {"X-Key": SECRET}
    changing = ("revision", "updated_at")
    assert {key: value for key, value in answer.json().items() if key not in changing} == {
        key: value for key, value in shown.items() if key not in changing
    }


def test_patch_keeps_fixed_arguments_that_it_does_not_name(api):
    with_secrets()
    change = {
        "search": {"token": None, "limit": 5, "object": {"value": {"a": None}}, "null": {"value": None}},
        "write": {"paths": ["/srv"]},
    }

    answer = api.patch("agents/support/", {"servers": [{"server": "tracker", "fixed_arguments": change}]})

    assert answer.status_code == 200, answer.content
    assert fixed() == {
        "search": {"nested": {"key": SECRET}, "limit": 5, "object": {"a": None}, "null": None},
        "write": {"paths": ["/srv"]},
    }
    assert [server["server"] for server in answer.json()["servers"]] == ["tracker"], "files was left out"


def test_put_makes_fixed_arguments_what_it_names(api):
    with_secrets()
    change = {"search": {"token": {"set": True}}}

    answer = api.put("agents/support/", {"servers": [{"server": "tracker", "fixed_arguments": change}]})

    assert answer.status_code == 200, answer.content
    assert fixed() == {"search": {"token": SECRET}}


def test_null_takes_out_all_that_is_fixed_for_a_tool(api):
    with_secrets()

    api.patch("agents/support/", {"servers": [{"server": "tracker", "fixed_arguments": {"Search": None}}]})

    assert fixed() == {}


@pytest.mark.parametrize("given", [[], "x", {"search": []}, {"search": {"a": {"b": 1}}}])
def test_fixed_arguments_that_could_mean_two_things_are_refused_by_place(api, given):
    with_secrets()

    answer = api.patch("agents/support/", {"servers": [{"server": "tracker", "fixed_arguments": given}]})

    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["servers.0.fixed_arguments"]
    assert fixed()["search"]["token"] == SECRET


# Changing


def test_an_agent_is_stored_with_its_servers(api):
    Group.objects.create(name="helpers")

    answer = api.post(
        "agents/",
        {
            "name": "support",
            "model": "openai:gpt-5",
            "servers": [{"server": "FILES", "fixed_arguments": {"search": {"root": "/srv"}}}],
            "groups": ["helpers"],
        },
    )

    assert answer.status_code == 201, answer.content
    assert answer["Location"].endswith("/agents/support/")
    assert answer["ETag"] == f'"{AgentConfig.objects.get().revision}"'
    spec = services.agent_spec("support")
    assert spec.servers[0].fixed_arguments == {"search": {"root": "/srv"}}
    assert AgentConfig.objects.get().groups.get().name == "helpers"


def test_what_is_wrong_is_told_by_place(api):
    body = {
        "name": "support",
        "max_rounds": 0,
        "servers": [{"server": "files", "approval": "sometimes"}, {"allowed_tools": "x"}],
    }

    answer = api.post("agents/", body)
    assert set(answer.json()["fields"]) == {
        "max_rounds",
        "servers.0.approval",
        "servers.1.server",
        "servers.1.allowed_tools",
    }

    body = {"name": "a b", "groups": ["strangers"], "servers": [{"server": "files"}, {"server": "nowhere"}]}
    answer = api.post("agents/", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert set(answer.json()["fields"]) == {"name", "groups", "servers.1.server"}
    assert not AgentConfig.objects.exists()


def test_a_name_is_given_once_and_never_changes(api):
    agent()

    taken = api.post("agents/", {"name": "Support"})
    renamed = api.patch("agents/support/", {"name": "other"})

    assert (taken.status_code, taken.json()["code"]) == (409, "duplicate_agent")
    assert (renamed.status_code, list(renamed.json()["fields"])) == (400, ["name"])


def test_only_what_is_given_changes(api):
    agent(label="Help", servers=["files", "tracker"], time_limit=5)

    answer = api.put("agents/support/", {"label": "Hilfe", "token_limit": 900})

    assert (answer.json()["label"], answer.json()["token_limit"], answer.json()["time_limit"]) == (
        "Hilfe",
        900,
        5,
    )
    assert len(answer.json()["servers"]) == 2
    assert api.patch("agents/support/", {"time_limit": None}).json()["time_limit"] is None
    assert api.patch("agents/support/", {"servers": []}).json()["servers"] == []


def test_an_unseen_change_is_not_overwritten(api):
    agent(servers=["files"])
    tag = api.get("agents/support/")["ETag"]
    # A change of a server alone counts, too.
    AgentServer.objects.update(approval="always")

    by_header = api._send("patch", "agents/support/", {"label": "x"}, **{"If-Match": tag})
    by_body = api.patch("agents/support/", {"label": "x", "revision": int(tag.strip('"'))})
    deleting = api.delete("agents/support/", **{"If-Match": tag})

    assert [each.status_code for each in (by_header, by_body, deleting)] == [412, 412, 412]
    assert AgentConfig.objects.get().label == ""
    tag = api.get("agents/support/")["ETag"]
    done = api._send("patch", "agents/support/", {"label": "x"}, **{"If-Match": tag})
    assert (done.status_code, done["ETag"]) == (200, f'"{AgentConfig.objects.get().revision}"')
    assert api.delete("agents/support/", **{"If-Match": done["ETag"]}).status_code == 204
    assert not AgentConfig.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {"result_limit": 2**40},
        {"time_limit": True},
        {"time_limit": 10**400},
        {"time_limit": "NaN"},
        {"model": "x" * 300},
        {"allowed_tools": [1, None]},
        {"servers": {}},
        {"servers": ["files"]},
        {"servers": [{"server": "files", "result_limits": {"a": True}}]},
        {"servers": [{"server": "files"}, {"server": "Files"}]},
        {"model_settings": []},
        {"model_settings": {"a": "\0"}},
        {"servers": [{"server": "files", "fixed_arguments": {"a": {"b": "\0"}}}]},
        {"servers": [{"server": "files", "tool_approvals": {"\0": "deny"}}]},
        {"groups": "helpers"},
        {"validation": "sometimes"},
    ],
)
def test_what_cannot_be_stored_is_refused(api, body):
    agent()

    assert api.patch("agents/support/", body).status_code == 400


# Who may


@pytest.mark.parametrize(
    ("method", "place", "body", "codename"),
    [
        ("get", "agents/", None, "view_agentconfig"),
        ("get", "agents/support/", None, "view_agentconfig"),
        ("post", "agents/", {"name": "new"}, "add_agentconfig"),
        ("put", "agents/support/", {}, "change_agentconfig"),
        ("patch", "agents/support/", {}, "change_agentconfig"),
        ("delete", "agents/support/", None, "delete_agentconfig"),
    ],
)
def test_one_permission_is_enough_and_without_it_the_answer_names_it(api_as, method, place, body, codename):
    agent()
    given = {"body": body} if body is not None else {}

    others = {*EDITOR, "run_agentconfig"} - {codename}
    refused = getattr(api_as(*others, name="other"), method)(place, **given)
    done = getattr(api_as(codename), method)(place, **given)

    assert (refused.status_code, refused.json()["permission"]) == (403, f"mcp_client_app.{codename}")
    assert done.status_code in (200, 201, 204)


def test_the_variable_of_a_key_needs_the_permission_to_refer_to_the_environment(api_as):
    body = {"name": "support", "model": "openai:gpt-5", "api_key_variable": "SOME_KEY"}

    refused = api_as(*EDITOR).post("agents/", body)
    done = api_as(*EDITOR, "reference_environment", name="other").post("agents/", body)

    assert list(refused.json()["fields"]) == ["api_key_variable"]
    assert (done.status_code, done.json()["api_key_variable"]) == (201, "SOME_KEY")


def test_who_may_only_look_sees_scheme_and_host_of_an_address(api_as):
    agent(model="openai:gpt-5", base_url="https://llm.example.com:8443/s3cret/v1?key=s3cret")
    viewer, editor = api_as("view_agentconfig"), api_as(*EDITOR, name="editor")

    assert viewer.get("agents/support/").json()["base_url"] == "https://llm.example.com:8443"
    assert viewer.get("agents/").json()["results"][0]["base_url"] == "https://llm.example.com:8443"
    assert editor.get("agents/support/").json()["base_url"].endswith("?key=s3cret")


def test_the_form_of_the_browsable_api_shows_what_is_stored_and_no_secret(api):
    with_secrets()

    page = api.get("agents/support/", Accept="text/html").content.decode()

    assert "&quot;set&quot;: true" in page
    assert SECRET not in page


def test_a_user_of_agents_finds_them_without_a_look_at_their_configuration(api_as):
    Group.objects.create(name="others")
    agent("open", label="Help", model="openai:gpt-5", instructions="Be kind.")
    agent("tools", description="Only tools.")
    agent("closed", groups=["others"])
    agent("off", enabled=False)
    api = api_as("run_agentconfig")

    answer = api.get("usable-agents/")

    assert answer.json()["results"] == [
        {"name": "open", "label": "Help", "description": "", "has_model": True},
        {"name": "tools", "label": "", "description": "Only tools.", "has_model": False},
    ]
    assert api.get("agents/").status_code == api.get("agents/open/").status_code == 403
    assert api_as(*EDITOR, name="editor").get("usable-agents/").status_code == 403
