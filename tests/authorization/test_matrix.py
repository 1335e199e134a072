"""Who may do what over REST and in the admin: all endpoints, methods and kinds of users, against a file.

The file ``matrix.txt`` is reviewed by people. After a change that is meant, write it anew with
``make authorization`` and read the difference: each changed letter is a door that was opened or shut.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.db import transaction
from django.test import Client
from django.utils import timezone

from mcp_client_app.models import (
    AgentConfig,
    AgentRun,
    AgentServer,
    Approval,
    ServerConfig,
    ServerState,
    ToolCall,
    WorkerProcess,
)
from mcp_client_app.runtime import close_mcp_manager, row_source
from tests.authorization.callers import COLUMNS, make_clients
from tests.authorization.requests import AGENT, IDS, LOCAL, REMOTE, URL, Ask, admin_asks, api_asks

MATRIX = Path(__file__).with_name("matrix.txt")
LEGEND = """\
# Who may do what. Written by `make authorization`, read by people.
#
#   +  let in: done, or refused for another reason than who asks
#   -  refused: 401 or 403
#   L  sent to the login page of the admin
#   x  no such method here: 405
#   0  nothing here: 404, which only those are told who may be here
#
# anon: nobody signed in. plain: a user without rights. staff: may enter the admin, without rights.
# super: may do all. The columns between them: staff with that one permission; v+conn: view and connect;
# editor: view, add, change, delete; ed+run: these and runcode; a.*: view, add, change, delete and run of
# agents; rest: all permissions without a column.
#
# http, stdio: on a server of that kind. Buttons and actions of the admin ask for "view" as well.
"""


@pytest.fixture
def asks(db) -> list[Ask]:
    remote = ServerConfig.objects.create(name=REMOTE, transport="streamable_http", url=URL)
    ServerConfig.objects.create(name=LOCAL, transport="stdio", command="echo", enabled=False)
    agent = AgentConfig.objects.create(name=AGENT)
    AgentServer.objects.create(agent=agent, server=remote)
    run = AgentRun.objects.create(pk=IDS["runs"], agent=agent, agent_name=AGENT, status="awaiting_approval")
    approval = Approval.objects.create(
        pk=IDS["approvals"],
        run=run,
        agent=agent,
        agent_name=AGENT,
        server_name=REMOTE,
        tool="echo",
        expires_at=timezone.now() + timedelta(days=1),
    )
    worker = WorkerProcess.objects.create(host="host", pid=1)
    state = ServerState.objects.create(worker=worker, server=remote, state="ready")
    call = ToolCall.objects.create(server=remote, server_name=REMOTE, tool="echo")
    rows: dict[type, Any] = {
        ServerConfig: remote,
        WorkerProcess: worker,
        ServerState: state,
        ToolCall: call,
        AgentConfig: agent,
        Approval: approval,
    }
    return [*api_asks(), *admin_asks(rows)]


@pytest.fixture
def observed(asks, settings) -> dict[str, str]:
    settings.MCP_CLIENT_REAPER = False
    settings.MCP_CLIENT_RECORD_STATES = False
    row_source.forget()
    clients = make_clients()
    try:
        return {str(ask): " ".join(cell(client, ask) for client in clients.values()) for ask in asks}
    finally:
        close_mcp_manager()
        row_source.forget()


def cell(client: Client, ask: Ask) -> str:
    """Ask, undo what that did, and return the letter for the answer."""
    # Messages that nobody has looked at yet.
    client.cookies.pop("messages", None)
    with transaction.atomic():
        content_type = {} if ask.is_form else {"content_type": "application/json"}
        response = getattr(client, ask.method.lower())(
            ask.path, ask.body if ask.is_form or ask.method not in ("GET", "DELETE") else None, **content_type
        )
        transaction.set_rollback(True)
    status = response.status_code
    assert status != 500, f"{ask}: {response.content[:500]!r}"
    if status in (401, 403):
        return "-"
    if status == 302 and "/login/" in response["Location"]:
        return "L"
    if ask.is_action and not was_done(response):
        return "-"
    if status == 405:
        return "x"
    if status == 404 and (ask.is_form or response.json()["code"] == "not_found"):
        return "0"
    return "+"


def was_done(response: Any) -> bool:
    """Say whether an action of a list was done, or whether the list does not know it for this user."""
    is_the_list_again = "cl" in (getattr(response, "context_data", None) or {})
    told = [str(message) for message in get_messages(response.wsgi_request)]
    return not is_the_list_again and "No action selected." not in told


def without_repetition(cells: dict[str, str]) -> dict[str, str]:
    """Join the methods that an endpoint does not have to one row."""
    joined: dict[str, str] = {}
    missing: dict[tuple[str, str], list[str]] = {}
    for ask, row in cells.items():
        if "x" in row:
            endpoint, method = ask.split(" ", 1)
            missing.setdefault((endpoint, row), []).append(method)
        else:
            joined[ask] = row
    joined |= {f"{endpoint} {','.join(methods)}": row for (endpoint, row), methods in missing.items()}
    order = list(dict.fromkeys(ask.split(" ")[0] for ask in cells))
    return dict(sorted(joined.items(), key=lambda item: order.index(item[0].split(" ")[0])))


def table(cells: dict[str, str]) -> str:
    """Return the matrix as it is kept: a line for each request, a column for each user."""
    cells = without_repetition(cells)
    width = max(map(len, cells))
    head = " " * width + "  " + " ".join(COLUMNS)
    lines = [
        f"{ask:<{width}}  "
        + " ".join(f"{letter:<{len(name)}}" for letter, name in zip(row.split(), COLUMNS, strict=True))
        for ask, row in cells.items()
    ]
    return "\n".join([LEGEND, head, *(line.rstrip() for line in lines)]) + "\n"


def test_every_endpoint_lets_in_whom_the_reviewed_matrix_lets_in(observed):
    text = table(observed)
    if os.environ.get("WRITE_AUTHORIZATION_MATRIX"):
        MATRIX.write_text(text, encoding="utf-8")
    reviewed = MATRIX.read_text(encoding="utf-8").splitlines()
    assert text.splitlines() == reviewed, "Read the difference, then `make authorization`."


def rows_of_file() -> dict[str, list[str]]:
    lines = [line for line in MATRIX.read_text(encoding="utf-8").splitlines() if ":" in line.split(" ")[0]]
    return {"  ".join(line.split("  ")[:1]).strip(): line.split()[-len(COLUMNS) :] for line in lines}


def test_the_matrix_lets_nobody_in_who_is_not_signed_in():
    assert {letters[0] for letters in rows_of_file().values()} <= {"-", "L"}


def test_the_matrix_gives_a_plain_user_and_staff_without_rights_nothing_of_the_servers():
    open_to_all = {"api:index GET", "api:health GET", "api:schema GET"}
    for position in (1, 2):
        let_in = {name for name, letters in rows_of_file().items() if letters[position] == "+"}
        assert let_in == open_to_all
