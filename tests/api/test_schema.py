"""The OpenAPI document: valid, complete, quiet; and a project that does without it."""

from __future__ import annotations

import io
import re

import pytest
import yaml
from django.core.management import call_command
from django.urls import get_resolver

from mcp_client_app.api.urls import urlpatterns
from tests.stored import run_process

NAMES = {
    "ServerConfig", "ToolInfo", "ResourceInfo", "ResourceTemplateInfo", "PromptInfo",
    "ServerStatus", "ToolResult", "Error", "ToolCallRecord", "ImportReport",
    "AgentConfig", "AgentRun", "Approval",
}  # fmt: skip


@pytest.fixture(scope="module")
def document():
    out = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    return yaml.safe_load(out.getvalue())


def operations(document):
    return [operation for path in document["paths"].values() for operation in path.values()]


def test_every_endpoint_is_in_the_document(document):
    described = {path.removeprefix("/api/mcp/").rstrip("/") for path in document["paths"]}
    patterns = [
        str(pattern.pattern) for pattern in urlpatterns if pattern.name not in ("index", "schema", "nowhere")
    ]
    ours = {
        re.sub(r"\(\?P<(\w+)>\[\^/\]\+\)", r"{\1}", text.strip("^$").removesuffix("/?")) for text in patterns
    }
    assert described == ours


def test_the_schemas_have_the_names_that_other_systems_use(document):
    assert set(document["components"]["schemas"]) >= NAMES


def test_every_operation_has_a_name_a_description_and_the_one_form_of_errors(document):
    form = {"$ref": "#/components/schemas/Error"}
    names = [operation["operationId"] for operation in operations(document)]
    assert len(set(names)) == len(names)
    for operation in operations(document):
        assert operation["description"], operation["operationId"]
        for code in ("401", "403", "default"):
            assert operation["responses"][code]["content"]["application/json"]["schema"] == form


def test_secrets_are_described_as_going_in_only(document):
    schemas = document["components"]["schemas"]
    assert schemas["ServerConfig"]["properties"]["env"]["additionalProperties"] == {
        "$ref": "#/components/schemas/StoredSecret"
    }
    assert schemas["NewServerConfig"]["properties"]["env"]["writeOnly"] is True


def test_calls_have_examples_and_tell_of_streams(document):
    call = document["paths"]["/api/mcp/tools/call/"]["post"]
    assert call["requestBody"]["content"]["application/json"]["examples"]
    assert set(call["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    assert {parameter["name"] for parameter in call["parameters"]} == {"Idempotency-Key", "X-Correlation-ID"}


def test_runs_tell_of_streams_too_and_of_where_they_stand(document):
    follow = document["paths"]["/api/mcp/runs/{id}/events/"]["get"]
    assert set(follow["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    assert {parameter["name"] for parameter in follow["parameters"]} >= {"after", "limit", "Last-Event-ID"}
    run = document["paths"]["/api/mcp/agents/{name}/run/"]["post"]
    assert set(run["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    assert run["responses"]["202"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/AgentRun"
    }
    schemas = document["components"]["schemas"]
    for name in ("AgentRun", "AgentRunSummary"):
        assert schemas[name]["properties"]["status"] == {"$ref": "#/components/schemas/RunStatus"}


def test_the_document_is_served_to_whoever_is_signed_in(api_as, document):
    answer = api_as().get("schema")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert set(answer.json()["paths"]) == set(document["paths"])


def test_a_project_does_without_the_extra(db):
    run_process(
        """
from django.urls import get_resolver, reverse
from django.core.management import call_command
assert "drf_spectacular" not in __import__("django.conf").conf.settings.INSTALLED_APPS
assert reverse("mcp_client:server-list") == "/api/mcp/servers"
names = {pattern.name for pattern in get_resolver("mcp_client_app.api.urls").url_patterns}
assert "schema" not in names and "health" in names
call_command("check", fail_level="WARNING")
""",
        before="import sys\nsys.modules['drf_spectacular'] = None\n",
    )


def test_addresses_are_found_by_name():
    assert "mcp_client" in get_resolver().app_dict
