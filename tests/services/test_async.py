"""The async twins: on any loop, without deadlocks, and the sync forms kept off loops."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from asgiref.sync import iscoroutinefunction
from django.contrib.auth.models import User
from django.http import HttpRequest, JsonResponse
from django.test import AsyncClient, Client
from django.urls import path
from mcp.server.mcpserver import Context

from mcp_client_app import services
from mcp_client_app.exceptions import (
    AsyncContextError,
    KeyReusedError,
    MCPClientError,
    PermissionDeniedError,
    ToolError,
    UnknownToolError,
)
from mcp_client_app.models import ToolCall
from mcp_client_app.services.audit_rows import flush
from mcp_client_app.testing import fake_server
from tests.stored import close_connections, peer_entry

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]


def sync_view(request: HttpRequest) -> JsonResponse:
    result = services.call_tool("shop__price", {"article": "oak"}, user=request.user)
    return JsonResponse(result.structured)


async def async_view(request: HttpRequest) -> JsonResponse:
    user = await request.auser()
    result = await services.acall_tool("shop__price", {"article": "oak"}, user=user)
    return JsonResponse(result.structured)


urlpatterns = [path("sync/", sync_view), path("async/", async_view)]


FUNCTIONS = sorted(name for name in services.__all__ if not isinstance(getattr(services, name), type))
IN_ASYNC_FORM = {name for name in FUNCTIONS if iscoroutinefunction(getattr(services, name))}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in IN_ASYNC_FORM])
def test_every_service_has_a_twin_that_takes_the_same_parameters(name):
    assert f"a{name}" in IN_ASYNC_FORM

    twin: Any = getattr(services, f"a{name}")
    ours, theirs = (
        inspect.signature(each).parameters for each in (getattr(services, name), getattr(twin, "func", twin))
    )
    assert list(ours) == list(theirs)
    assert [each.default for each in ours.values()] == [each.default for each in theirs.values()]


def test_every_async_form_is_a_twin():
    assert {name.removeprefix("a") for name in IN_ASYNC_FORM} <= set(FUNCTIONS) - IN_ASYNC_FORM
    assert len(IN_ASYNC_FORM) >= 33


@pytest.mark.anyio
async def test_the_verbs_work_on_a_loop(the_shop, make_user):
    # Rows were made by other threads; what follows happens on this loop.
    result = await services.acall_tool("price", {"article": "oak"}, correlation_id="c1")
    assert result.structured == {"article": "oak", "price": 3}
    assert (await services.aread_resource("shop", "shop://hours")).text == "9 to 5"
    assert (await services.aget_prompt("shop", "greet", {"name": "Ada"})).messages
    assert (await services.afind_tool("price")) is not None
    assert {tool.name for tool in (await services.alist_tools("shop")).items} == {"price", "fail", "echo"}
    assert len((await services.alist_resources()).items) == 1
    assert len((await services.alist_resource_templates()).items) == 1
    assert len((await services.alist_prompts()).items) == 1
    assert [prompt.name for prompt in await services.alast_known("prompts", "shop")] == ["greet"]
    assert await services.acall_limit(5, server="shop") == 5

    kinds = [call.kind async for call in ToolCall.objects.order_by("pk")]
    assert kinds == ["tool", "resource", "prompt"]
    with pytest.raises(MCPClientError):  # the shop has no suggestions to make
        await services.acomplete("shop", {"type": "ref/prompt", "name": "greet"}, "name", "A")
    with pytest.raises(ToolError):
        await services.acall_tool("shop__fail", {"message": "no"}, raise_on_error=True)
    with pytest.raises(UnknownToolError):
        await services.acall_tool("shop__nothing")
    assert await ToolCall.objects.filter(is_error=True).acount() == 3
    await close_connections()


@pytest.mark.anyio
async def test_permissions_hold_on_a_loop(the_shop):
    user = await User.objects.acreate(username="nobody")

    with pytest.raises(PermissionDeniedError):
        await services.acall_tool("price", {"article": "oak"}, user=user)

    assert (await ToolCall.objects.aget()).code == "permission_denied"
    await close_connections()


@pytest.mark.anyio
async def test_a_key_is_claimed_on_a_loop():
    user = await User.objects.acreate(username="ada")

    receipt = await services.aclaim_key(user, "k", {"name": "x"})

    assert (receipt.key, receipt.is_settled) == ("k", False)
    with pytest.raises(KeyReusedError):
        await services.aclaim_key(user, "k", {"name": "y"})
    await close_connections()


@pytest.mark.anyio
async def test_connections_are_made_and_ended_on_a_loop(the_shop, add_mcp_server):
    settled = []

    async def on_progress(name, status):
        settled.append(name)

    assert (await services.aconnect("shop")).is_ready
    assert (await services.aconnect_all(on_progress=on_progress))["shop"].is_ready
    assert settled == ["shop"]
    assert (await services.arefresh("shop")).tools == 3
    assert (await services.aserver_status("shop")).is_ready
    assert len(await services.aserver_statuses()) == 1
    assert await services.aserver_logs("shop") == ()
    assert await services.aserver_stderr("shop") == ()
    assert await services.aworker_states() == []
    assert not (await services.adisconnect("shop")).is_ready
    report = await services.atest_server("shop")
    assert [step.name for step in report.steps] == ["connect", "list", "ping", "close"]
    assert report.ok
    await close_connections()


@pytest.mark.anyio
async def test_rows_are_changed_on_a_loop():
    await services.aadd_server("one", **peer_entry())
    await services.aupdate_server("one", label="One")
    assert (await services.aget_server("one")).label == "One"
    assert not (await services.adisable_server("one")).enabled
    assert (await services.aenable_server("one")).enabled
    exported = await services.aexport_servers()
    assert (await services.aimport_servers(exported)).updated == ()
    row = await services.aget_server("one")
    row.label = "Uno"
    await services.asave_server(row)
    assert [server.label for server in await services.alist_servers()] == ["Uno"]
    assert (await services.async_servers()).errors == {}
    await services.aremove_server("one")
    assert await services.alist_servers() == []
    await close_connections()


SYNC_FORMS: dict[str, Callable[[], Any]] = {
    "call_tool": lambda: services.call_tool("x"),
    "read_resource": lambda: services.read_resource("x", "y"),
    "get_prompt": lambda: services.get_prompt("x", "y"),
    "complete": lambda: services.complete("x", {}, "y"),
    "find_tool": lambda: services.find_tool("x"),
    "list_tools": lambda: services.list_tools(),
    "list_resources": lambda: services.list_resources(),
    "list_resource_templates": lambda: services.list_resource_templates(),
    "list_prompts": lambda: services.list_prompts(),
    "connect": lambda: services.connect("x"),
    "connect_all": lambda: services.connect_all(),
    "disconnect": lambda: services.disconnect("x"),
    "refresh": lambda: services.refresh("x"),
    "test_server": lambda: services.test_server("x"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("verb", SYNC_FORMS)
async def test_a_sync_form_on_a_loop_names_its_twin(verb, caplog):
    with pytest.raises(AsyncContextError, match=f"await a{verb}"):
        SYNC_FORMS[verb]()

    assert caplog.text == "", "nothing was tried, so there is nothing to write down"


def test_two_loops_share_one_connection(add_mcp_server, mcp_manager):
    """D12."""
    add_mcp_server("peer", peer_entry())
    gate = threading.Barrier(2)
    texts = []

    async def use() -> None:
        for _ in range(3):
            result = await services.acall_tool("peer__pid")
            texts.append(result.text)

    def run() -> None:
        gate.wait()
        asyncio.run(use())

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(close_connections())

    assert len(texts) == 6
    assert len(set(texts)) == 1


def test_a_cancelled_call_is_written_down(add_mcp_server):
    async def stuck(ctx: Context) -> None:
        await ctx.report_progress(1)
        await anyio.sleep_forever()

    add_mcp_server("peer", fake_server(tools=[stuck]))

    async def main() -> None:
        under_way = asyncio.Event()
        call = asyncio.create_task(
            services.acall_tool("peer__stuck", timeout=0, on_progress=lambda _: under_way.set())
        )
        await under_way.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await close_connections()

    asyncio.run(main())

    assert ToolCall.objects.get().code == "cancelled"


@pytest.mark.parametrize("view", ["sync", "async"])
def test_views_under_wsgi(settings, the_shop, make_user, view):
    settings.ROOT_URLCONF = __name__
    client = Client()
    client.force_login(make_user("call_tool"))

    assert client.get(f"/{view}/").json()["price"] == 3
    assert ToolCall.objects.get().username == "user0"


@pytest.mark.anyio
@pytest.mark.parametrize("view", ["sync", "async"])
async def test_views_under_asgi_side_by_side(settings, the_shop, view):
    """D04: no call ends in a deadlock of the thread for sync code."""
    settings.ROOT_URLCONF = __name__
    user = await User.objects.acreate(username="ada", is_superuser=True)
    client = AsyncClient()
    await client.aforce_login(user)

    answers = await asyncio.gather(*(client.get(f"/{view}/") for _ in range(8)))

    assert [answer.json()["price"] for answer in answers] == [3] * 8
    assert await ToolCall.objects.filter(username="ada").acount() == 8
    await close_connections()
    assert flush(20)
