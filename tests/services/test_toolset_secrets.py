"""Fixed arguments reach the server and nobody else: not the model, not the audit, not the log."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from urllib.parse import quote, quote_plus

import pytest
from mcp.server.mcpserver import Context

from mcp_client_app import services
from mcp_client_app.datatypes import AgentServerSpec, Progress
from mcp_client_app.exceptions import InvalidArgumentsError, MCPClientError, ProtocolError
from mcp_client_app.models import AgentServer, Approval, ToolCall
from mcp_client_app.services.fixed_secrets import FixedSecrets
from mcp_client_app.services.toolset import Toolset
from mcp_client_app.testing import fake_server
from tests.services.toolsets import agent, calls_seen, logging_peer
from tests.stored import close_connections

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]

SECRET = "planted-9f3a77c1d0"
FOLDER = "/srv/planted/folder"


@pytest.fixture
def _with_payloads(settings):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True


def everything_told(*more: object) -> str:
    """Return all that is written down of calls, and what else is given."""
    rows = [*ToolCall.objects.values(), *Approval.objects.values()]
    return "\n".join(map(repr, [*rows, *more]))


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Return what we have logged; a server in this process has a log of its own."""
    return "\n".join(
        record.getMessage() for record in caplog.records if record.name.startswith("mcp_client_app")
    )


def test_a_fixed_argument_is_sent_whatever_the_model_says(tmp_path):
    logging_peer(tmp_path)
    toolset = Toolset(["peer"], fixed_arguments={"PEER__write": {"path": str(tmp_path / "here")}})

    shown = next(tool for tool in toolset.list_tools() if tool.name == "write")
    assert (list(shown.input_schema["properties"]), shown.input_schema["required"]) == (["text"], ["text"])
    toolset.call_tool("write", {"text": "x", "path": str(tmp_path / "elsewhere")})

    assert calls_seen(tmp_path)[0]["arguments"] == {"text": "x", "path": str(tmp_path / "here")}
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_fixed_for_a_server_wins(tmp_path):
    logging_peer(tmp_path)
    server = AgentServerSpec(name="peer", fixed_arguments={"echo": {"text": "server"}})
    assert Toolset([server], fixed_arguments={"echo": {"text": "agent"}}).call_tool("echo").text == "server"


@pytest.mark.usefixtures("_with_payloads")
@pytest.mark.parametrize("fixed", [{"token": SECRET}, {"tenant": SECRET}, {"options": {"keys": [SECRET]}}])
def test_a_server_that_repeats_what_is_fixed_tells_the_model_nothing(add_mcp_server, caplog, fixed):
    caplog.set_level(logging.DEBUG)
    (name,) = fixed

    def repeat(text: str, **kwargs: object) -> dict[str, object]:
        return kwargs

    def tell(text: str, token: str = "", tenant: str = "", options: dict[str, object] | None = None):
        return {"text": text, "all": json.dumps([token, tenant, options])}

    def refuse(text: str, token: str = "", tenant: str = "", options: dict[str, object] | None = None):
        raise ValueError(f"{[token, tenant, options]} may not {text}")

    add_mcp_server("shop", fake_server("shop", tools={"tell": tell, "refuse": refuse}))
    toolset = Toolset(["shop"], fixed_arguments=dict.fromkeys(("tell", "refuse"), fixed))

    told, refused = toolset.call_tool("tell", {"text": "hello"}), toolset.call_tool("refuse", {"text": "see"})

    assert "hello" in told.text
    assert "***" in told.text
    assert "may not see" in refused.text
    assert SECRET not in everything_told(
        told, told.text, told.result, told.result and told.result.raw, refused.text
    )
    assert SECRET not in logged(caplog)
    assert set(ToolCall.objects.values_list(f"arguments__{name}", flat=True)) == {"***"}
    assert name not in str(toolset.for_openai().tools)


def test_a_fixed_folder_stays_readable_in_results(add_mcp_server):
    def find(pattern: str, path: str) -> str:
        return f"{path}/{pattern}"

    add_mcp_server("files", fake_server("files", tools={"find": find}))
    toolset = Toolset(["files"], fixed_arguments={"find": {"path": FOLDER}})

    assert toolset.call_tool("find", {"pattern": "a.txt"}).text == f"{FOLDER}/a.txt"


@pytest.mark.usefixtures("_with_payloads")
def test_errors_and_audit_rows_hold_no_fixed_argument(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    logging_peer(tmp_path)
    toolset = Toolset(
        ["peer"], fixed_arguments={"echo": {"text": SECRET}, "read": {"path": FOLDER}, "add": {"a": SECRET}}
    )
    errors: list[InvalidArgumentsError] = []

    assert toolset.call_tool("echo").text == "***"
    missing = toolset.call_tool("read")
    # Together with what is fixed it does not fit; the model reads that, and no value.
    for arguments in ({"b": 1}, {"b": "x"}, "{"):
        with pytest.raises(InvalidArgumentsError) as caught:
            toolset.call_tool("add", arguments)
        errors.append(caught.value)

    texts = [(error.details(), str(error), error.schema, error.arguments) for error in errors]
    assert missing.is_error
    for planted in (SECRET, FOLDER):
        assert planted not in everything_told(*texts)
        assert planted not in logged(caplog)
    assert all("a" not in (error.schema or {})["properties"] for error in errors)


def test_what_an_error_carries_holds_no_fixed_argument(tmp_path):
    logging_peer(tmp_path, "--scenario", "as_told")
    toolset = Toolset(["peer"], fixed_arguments={"echo": {"text": FOLDER}})
    data = {"seen": [FOLDER], FOLDER: 1}
    answer = {"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": f"no {FOLDER}", "data": data}}
    line = json.dumps(answer).replace('"id": 0', '"id": <id>')

    with pytest.raises(ProtocolError) as caught:
        toolset.call_tool("echo", {"lines": [line]})

    error = caught.value
    assert error.details()["data"] == {"seen": ["***"], "***": 1}
    assert FOLDER not in f"{error} {error.args} {error.details()} {vars(error)}"
    assert error.__cause__ is None


@pytest.mark.parametrize(("said", "told"), [(f"no {FOLDER}", "no ***"), ("no", "no")])
def test_what_lies_behind_an_error_holds_no_fixed_argument(said: str, told: str):
    error = ProtocolError(said)
    error.__cause__ = ValueError(FOLDER)

    shown = FixedSecrets({"path": FOLDER}).error(error)

    assert (str(shown), shown.__cause__) == (told, None)
    assert FOLDER not in "".join(traceback.format_exception(shown))


def test_an_error_that_holds_nothing_fixed_stays_as_it_is():
    error = ProtocolError("no")
    error.__cause__ = ValueError("why")

    assert FixedSecrets({"path": FOLDER}).error(error) is error


def test_a_server_that_refuses_the_arguments_is_understood_without_what_is_fixed(tmp_path):
    logging_peer(tmp_path, "--scenario", "error_on_call=-32602")
    toolset = Toolset(["peer"], fixed_arguments={"write": {"path": FOLDER}})

    with pytest.raises(InvalidArgumentsError) as caught:
        toolset.call_tool("write", {"text": "x"})

    error = caught.value
    assert error.arguments == {"text": "x"}
    assert list((error.schema or {})["properties"]) == ["text"]
    assert FOLDER not in f"{error} {error.details()}"
    assert 'Given: {"text":"x"}' in str(error)


def test_what_a_person_approves_shows_no_fixed_argument(tmp_path):
    server = logging_peer(tmp_path)
    row = agent("clerk", server, approval="always")
    choice = AgentServer.objects.get(agent=row)
    choice.fixed_arguments = {"write": {"path": SECRET}}
    choice.save()

    with pytest.raises(MCPClientError) as caught:
        services.get_toolset("clerk").answer("write", {"text": "hello"})

    assert Approval.objects.get().arguments == {"text": "hello"}
    assert SECRET not in everything_told(caught.value, caught.value.details())


def test_no_repr_holds_a_fixed_argument(tmp_path):
    logging_peer(tmp_path)
    toolset = Toolset(["peer"], fixed_arguments={"echo": {"text": SECRET}})
    selection = toolset.selection()

    prepared = selection.prepare("echo")

    assert SECRET not in repr([toolset, toolset.spec, selection, list(selection), prepared, selection.rules])


QUOTED = 'planted "ключ" \\ 4711/ü'


@pytest.mark.usefixtures("_with_payloads")
@pytest.mark.parametrize(
    "write", [json.dumps, lambda text: json.dumps(text, ensure_ascii=False), repr, quote, quote_plus]
)
def test_a_server_that_writes_what_is_fixed_in_another_way_tells_nothing(add_mcp_server, write):
    def tell(token: str) -> str:
        return f"It was {write(token)}."

    def refuse(token: str) -> str:
        raise ValueError(f"Not {write(token)}.")

    add_mcp_server("shop", fake_server("shop", tools={"tell": tell, "refuse": refuse}))
    toolset = Toolset(["shop"], fixed_arguments={name: {"token": QUOTED} for name in ("tell", "refuse")})

    told, refused = toolset.call_tool("tell"), toolset.call_tool("refuse")

    assert "***" in told.text
    assert "***" in refused.text
    assert "4711" not in everything_told(told.text, told.result, refused.text)


@pytest.mark.parametrize("view", ["sync", "async"])
def test_progress_tells_no_fixed_argument(add_mcp_server, view):
    async def dig(tenant: str, ctx: Context) -> str:
        await ctx.report_progress(1, 2, f"asking for {tenant}")
        await ctx.report_progress(2, 2)
        return "dug"

    add_mcp_server("mine", fake_server("mine", tools={"dig": dig}))
    toolset = Toolset(["mine"], fixed_arguments={"dig": {"tenant": SECRET}})
    heard: list[Progress] = []

    async def hear(progress: Progress) -> None:
        heard.append(progress)

    async def main() -> None:
        await toolset.acall_tool("dig", on_progress=hear)
        await close_connections()

    if view == "sync":
        toolset.call_tool("dig", on_progress=heard.append)
    else:
        asyncio.run(main())

    assert [(each.progress, each.message) for each in heard] == [(1, "asking for ***"), (2, None)]
