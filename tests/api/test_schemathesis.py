"""Requests made up from the OpenAPI document: whatever comes, no 500, and every answer is as described.

The requests are the same in each run. Answers with 502 to 504 are not mistakes: they tell how a
server fares.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import schemathesis
from django.contrib.auth.models import Permission, User
from django.core.wsgi import get_wsgi_application
from django.utils import timezone
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import CheckFunction
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from mcp_client_app import services
from mcp_client_app.agents.loop import close_agents_loop
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentConfig, AgentRun, AgentServer, Approval, ServerConfig
from tests.stored import stored

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EXAMPLES = 25
"""Requests for each operation and kind."""
NAMES = st.sampled_from(["peer", "PEER", "remote", "dead", "none", "a%2Fb", "\u00e9"])
AGENTS = st.sampled_from(["clerk", "CLERK", "watched", "none", "a%2Fb"])
RUN = "00000000-0000-4000-8000-000000000001"
APPROVAL = "00000000-0000-4000-8000-000000000002"
IDS = st.sampled_from([RUN, APPROVAL, RUN[:-1] + "9", "none"])
TOOLS = st.sampled_from(["peer__echo", "echo", "peer__add", "peer__fail", "peer__none", "x__y"])
CHECKS: list[CheckFunction] = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


def make_site() -> str:
    """Store servers, and make a user who may do all but run code, which made-up commands must not.

    Returns the header with the user's credentials.
    """
    user = User.objects.create_user("tester", password="secret")
    ours = Permission.objects.filter(content_type__app_label="mcp_client_app")
    withheld = ["run_code_serverconfig", "delete_serverconfig", "delete_agentconfig"]
    user.user_permissions.set(ours.exclude(codename__in=withheld))
    peer = stored("peer")
    store_agents(peer, user)
    stored("dead", command="/no/such/program")
    ServerConfig.objects.create(name="remote", transport="streamable_http", url="http://127.0.0.1:9/mcp")
    services.connect("peer")
    return "Basic " + base64.b64encode(b"tester:secret").decode()


def store_agents(server: ServerConfig, user: User) -> None:
    """Store two agents, one of which asks before each call, and a run that waits for people."""
    for name, approval in (("clerk", "never"), ("watched", "always")):
        agent = AgentConfig.objects.create(name=name, approval=approval, model="scripted:teller")
        AgentServer.objects.create(agent=agent, server=server)
    run = AgentRun.objects.create(
        pk=RUN, agent=agent, agent_name="watched", user=user, status=RunStatus.AWAITING_INPUT.value
    )
    Approval.objects.create(
        pk=APPROVAL,
        run=run,
        kind=Approval.Kind.INPUT,
        agent_name="watched",
        server_name="peer",
        tool="echo",
        fingerprint="-",
        requests={"key": {"method": "elicitation/create", "params": {"requestedSchema": {"type": "object"}}}},
        expires_at=timezone.now() + timedelta(days=1),
    )


@pytest.fixture
def _loop_closed() -> Iterator[None]:
    yield
    close_agents_loop()


@pytest.mark.usefixtures("_site", "_loop_closed")
def test_made_up_requests_find_no_mistake(settings_of_site):
    authorization = make_site()
    document = schemathesis.openapi.from_wsgi(
        "/api/mcp/schema/", get_wsgi_application(), headers={"Authorization": authorization}
    )
    asked: set[str] = set()

    for found in document.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        asked.add(operation.label)
        services.connect("peer")  # an earlier request may have disconnected it
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @seed(20_261_130)
            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
            def ask(case: Case[Any], data: st.DataObject) -> None:
                aim(case, data)
                response = case.call(headers={"Authorization": authorization})
                assert response.status_code != 500, response.text
                case.validate_response(response, checks=CHECKS)

            ask()

    assert len(asked) == sum(len(path) for path in document.raw_schema["paths"].values())


def aim(case: Case[Any], data: st.DataObject) -> None:
    """Have most requests mean something that exists: made-up names would all end with 404."""
    for name in case.path_parameters or {}:
        if data.draw(st.integers(0, 9)):
            names = AGENTS if case.operation.path.startswith("/api/mcp/agents/") else NAMES
            case.path_parameters[name] = data.draw(IDS if name == "id" else names)
    body: Any = case.body
    if isinstance(body, dict) and data.draw(st.integers(0, 9)):
        if "server" in body:
            body["server"] = data.draw(NAMES)
        if case.operation.path.endswith("/call/"):
            body["name"] = data.draw(TOOLS)
            body.pop("server", None)


@pytest.fixture
def settings_of_site(settings: Any) -> None:
    """Short limits, and no address of anybody else."""
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 1.0
    settings.MCP_CLIENT_ALLOWED_HOSTS = ["127.0.0.1"]
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    settings.MCP_CLIENT_MODELS = {"scripted:teller": "tests.api.models.teller"}
