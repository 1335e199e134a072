from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.shared.dispatcher import OnRequest
from mcp.shared.exceptions import MCPError, NoBackChannelError
from pydantic import BaseModel

from mcp_client_app.client.exchange import Exchange, recorded
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.serving import MOST, DispatchContext
from mcp_client_app.exceptions import ConnectionLostError, ServerCrashedError
from tests.client.loopback import Loopback, until
from tests.client.peers import PATIENCE

pytestmark = pytest.mark.anyio

LOST = ConnectionLostError("Gone.", server="srv")


async def answered(dispatcher: Loopback, count: int = 1) -> list[dict[str, Any]]:
    """Let tasks run until so many answers of ours are sent."""

    def found() -> list[dict[str, Any]]:
        return [message for message in dispatcher.sent if "result" in message or "error" in message]

    await until(lambda: len(found()) >= count)
    return found()


@asynccontextmanager
async def running(dispatcher: Loopback, on_request: OnRequest | None = None) -> AsyncIterator[list[Any]]:
    """Run the dispatcher; gives the notifications as they are handled."""
    heard: list[Any] = []

    async def refuse(context: Any, method: str, params: Any) -> dict[str, Any]:
        raise MCPError(-32601, "Nobody home", {"method": method})

    async def note(context: Any, method: str, params: Any) -> None:
        heard.append((method, params))
        if method == "fail":
            raise ZeroDivisionError

    task = asyncio.create_task(dispatcher.run(on_request or refuse, note))
    await asyncio.sleep(0)
    yield heard
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# Requests ----------------------------------------------------------------------------


async def test_a_request_gets_its_result_and_fills_in_the_record():
    dispatcher = Loopback(lambda message: {"result": {"content": None}})
    exchange = Exchange()
    with recorded(exchange):
        result = await dispatcher.send_raw_request("tools/call", {"name": "t"})
    assert result == {"content": []}
    assert exchange.sent
    assert exchange.raw == {"content": None}
    assert exchange.repairs == ["the result has no content"]


@pytest.mark.parametrize("size", [100, 2_000_000])
async def test_only_large_results_are_mended_off_the_loop(size: int):
    class Watched(Repairer):
        def repair(self, method: str, result: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
            threads.append(threading.current_thread())
            return super().repair(method, result)

    threads: list[threading.Thread] = []
    dispatcher = Loopback()
    dispatcher.repairer = Watched("srv")
    waiting = asyncio.create_task(dispatcher.send_raw_request("tools/list", None))
    await until(lambda: dispatcher.sent)
    dispatcher._receive({"jsonrpc": "2.0", "id": dispatcher.sent[0]["id"], "result": {"tools": None}}, size)
    assert await waiting == {"tools": []}
    (thread,) = threads
    assert (thread is threading.current_thread()) is (size == 100)


async def test_ids_are_never_used_twice_at_once():
    dispatcher = Loopback()
    first = asyncio.create_task(dispatcher.send_raw_request("a", None, {"request_id": 1}))
    await asyncio.sleep(0)
    second = asyncio.create_task(dispatcher.send_raw_request("b", None))
    await asyncio.sleep(0)
    assert [message["id"] for message in dispatcher.sent] == [1, 2]
    with pytest.raises(ValueError, match="in flight already"):
        await dispatcher.send_raw_request("c", None, {"request_id": "1"})
    dispatcher.receive(id=2, result={"of": "b"})
    dispatcher.receive(id=1, result={"of": "a"})
    assert (await first, await second) == ({"of": "a"}, {"of": "b"})


async def test_a_time_limit_of_the_session_is_an_error_of_the_protocol_and_tells_the_server():
    dispatcher = Loopback()
    with pytest.raises(MCPError, match="not answered in time"):
        await dispatcher.send_raw_request("slow", None, {"timeout": 0.01})
    assert dispatcher.sent[-1]["method"] == "notifications/cancelled"
    with pytest.raises(MCPError):
        await dispatcher.send_raw_request("slow", None, {"timeout": 0.01, "cancel_on_abandon": False})
    assert dispatcher.sent[-1]["method"] == "slow"


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        ({"code": -1, "message": "m"}, -1, "m"),
        ({"code": "x", "message": 5}, -32603, "The server gave no message."),
        ("plain text", -32603, "plain text"),
    ],
)
async def test_errors_of_any_form_reach_the_caller(error: Any, code: int, text: str):
    dispatcher = Loopback(lambda message: {"error": error})
    with pytest.raises(MCPError) as caught:
        await dispatcher.send_raw_request("x", None)
    assert (caught.value.error.code, caught.value.error.message) == (code, text)


async def test_when_the_link_fails_all_who_wait_get_a_copy_that_says_whether_theirs_was_sent():
    dispatcher = Loopback()
    waiting = [asyncio.create_task(dispatcher.send_raw_request("x", None)) for _ in range(3)]
    await asyncio.sleep(0)
    dispatcher._fail(ServerCrashedError("It crashed.", server="srv", exit_code=7))
    dispatcher._fail(LOST)  # the first reason stays
    errors = await asyncio.gather(*waiting, return_exceptions=True)
    for error in errors:
        assert isinstance(error, ServerCrashedError)
        assert (error.exit_code, error.sent) == (7, True)
    assert len({id(error) for error in errors}) == 3
    assert dispatcher.closed.done()
    with pytest.raises(ServerCrashedError) as later:
        await dispatcher.send_raw_request("x", None)
    assert later.value.sent is False


async def test_the_link_is_down_before_those_who_wait_learn_of_it():
    dispatcher = Loopback()
    order: list[str] = []
    dispatcher.closed.add_done_callback(lambda _: order.append("closed"))

    async def wait() -> None:
        with pytest.raises(ConnectionLostError):
            await dispatcher.send_raw_request("x", None)
        order.append("failed")

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    dispatcher._fail(LOST)
    await waiting
    assert order == ["closed", "failed"]


async def test_a_failure_that_nobody_waits_for_is_not_complained_about(caplog: pytest.LogCaptureFixture):
    dispatcher = Loopback()
    waiting = asyncio.create_task(dispatcher.send_raw_request("x", None))
    await asyncio.sleep(0)
    dispatcher._fail(LOST)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    del waiting
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_progress_goes_to_its_request_and_to_no_other():
    dispatcher = Loopback()
    seen: list[Any] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    waiting = asyncio.create_task(dispatcher.send_raw_request("x", {"a": 1}, {"on_progress": note}))
    await asyncio.sleep(0)
    token = dispatcher.sent[0]["params"]["_meta"]["progressToken"]
    for params in (
        {"progressToken": token, "progress": 1},
        {"progressToken": str(token), "progress": 2, "total": 3, "message": "m"},
        {"progressToken": "other", "progress": 9},
        {"progressToken": token, "progress": True},
        {"progressToken": token, "progress": None},
        None,
    ):
        dispatcher.receive(method="notifications/progress", params=params)
    dispatcher.receive(id=token, result={})
    dispatcher.receive(method="notifications/progress", params={"progressToken": token, "progress": 99})
    await waiting
    await asyncio.sleep(0)
    assert seen == [(1, None, None), (2, 3, "m")]


# Messages that make no sense -----------------------------------------------------------


@pytest.mark.parametrize("message", [5, None, "text", [], {}, {"id": 1}, {"jsonrpc": "2.0", "method": 7}])
async def test_what_is_no_message_is_counted(message: Any):
    dispatcher = Loopback()
    dispatcher._receive(message)
    assert dispatcher.noise_count == 1


async def test_noise_is_quoted_without_secrets():
    dispatcher = Loopback()
    dispatcher.redact = lambda text: text.replace("hunter2", "***")
    dispatcher._receive("password hunter2 " + "x" * 900)
    assert dispatcher.noise_last.startswith("not a JSON-RPC message: password *** x")
    assert len(dispatcher.noise_last) <= 200


async def test_answers_that_nobody_waits_for_are_dropped():
    dispatcher = Loopback()
    waiting = asyncio.create_task(dispatcher.send_raw_request("x", None))
    await asyncio.sleep(0)
    dispatcher.receive(id=99, result={})
    dispatcher.receive(id=None, result={})
    dispatcher.receive(id=True, error={"code": 1, "message": "bool"})
    with pytest.raises(MCPError, match="bool"):  # an error without an id can only mean the one that waits
        await waiting
    assert dispatcher.noise_count == 0


# What the server says ------------------------------------------------------------------


async def test_notifications_are_handled_in_order_and_a_failing_handler_loses_only_its_own(
    caplog: pytest.LogCaptureFixture,
):
    dispatcher = Loopback()
    async with running(dispatcher) as heard:
        for method in ("a", "fail", "b"):
            dispatcher.receive(method=method, params=["no object"])
        await until(lambda: len(heard) == 3)
    assert heard == [("a", None), ("fail", None), ("b", None)]
    assert "ZeroDivisionError" in caplog.text


async def test_notifications_that_nobody_takes_are_dropped_oldest_first():
    dispatcher = Loopback(queue_size=2)
    for method in ("a", "b", "c"):
        dispatcher.receive(method=method)
    async with running(dispatcher) as heard:
        await until(lambda: len(heard) == 2)
    assert [method for method, _ in heard] == ["b", "c"]
    assert dispatcher.dropped_notifications == 1


async def test_requests_of_the_server_are_answered_under_their_ids():
    async def answer(context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        return {"method": method, "params": params, "id": context.request_id}

    dispatcher = Loopback()
    async with running(dispatcher, answer):
        dispatcher.receive(id="s-1", method="roots/list", params={"a": 1})
        (reply,) = await answered(dispatcher)
    assert reply == {
        "jsonrpc": "2.0",
        "id": "s-1",
        "result": {"method": "roots/list", "params": {"a": 1}, "id": "s-1"},
    }


class Strict(BaseModel):
    number: int


async def invalid(context: Any, method: str, params: Any) -> dict[str, Any]:
    return Strict.model_validate({"number": "x"}).model_dump()


async def broken(context: Any, method: str, params: Any) -> dict[str, Any]:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("handler", "code", "data"),
    [(None, -32601, {"method": "x"}), (invalid, -32602, None), (broken, -32603, None)],
    ids=["refused", "invalid", "broken"],
)
async def test_failures_of_handlers_are_errors_of_the_protocol(
    handler: OnRequest | None, code: int, data: Any
):
    dispatcher = Loopback()
    async with running(dispatcher, handler):
        dispatcher.receive(id=1, method="x")
        (reply,) = await answered(dispatcher)
    assert reply["error"]["code"] == code
    assert reply["error"].get("data") == data


async def test_before_a_session_listens_requests_are_refused():
    dispatcher = Loopback()
    dispatcher.receive(id=1, method="x")
    assert (await answered(dispatcher))[0]["error"]["message"] == "The client is busy."


async def test_a_flood_of_requests_is_refused_beyond_a_limit():
    gate = asyncio.Event()

    async def wait(context: Any, method: str, params: Any) -> dict[str, Any]:
        await gate.wait()
        return {}

    dispatcher = Loopback()
    async with running(dispatcher, wait):
        for number in range(MOST + 5):
            dispatcher.receive(id=number, method="x")
        refused = await answered(dispatcher, 5)
        assert [reply["id"] for reply in refused] == list(range(MOST, MOST + 5))
        gate.set()
        assert len(await answered(dispatcher, MOST + 5)) == MOST + 5


async def test_the_server_may_take_its_request_back():
    cancelled = asyncio.Event()

    async def hang(context: Any, method: str, params: Any) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return {}

    dispatcher = Loopback()
    async with running(dispatcher, hang):
        dispatcher.receive(id=5, method="x")
        await asyncio.sleep(0)
        dispatcher.receive(method="notifications/cancelled", params={"requestId": "unknown"})
        dispatcher.receive(method="notifications/cancelled", params={"requestId": "5"})
        async with asyncio.timeout(PATIENCE):
            await cancelled.wait()
    assert not [message for message in dispatcher.sent if "result" in message or "error" in message]


async def test_handlers_may_talk_back_while_the_link_is_up():
    dispatcher = Loopback(lambda message: {"result": {"pong": True}})
    context = DispatchContext(dispatcher, 1)
    assert await context.send_raw_request("ping", None) == {"pong": True}
    await context.notify("hello", {"a": 1})
    await context.progress(1)
    assert dispatcher.sent[-1] == {"jsonrpc": "2.0", "method": "hello", "params": {"a": 1}}
    dispatcher._fail(LOST)
    assert not context.can_send_request
    with pytest.raises(NoBackChannelError):
        await context.send_raw_request("ping", None)
    await context.notify("too late", None)
    assert dispatcher.sent[-1]["method"] == "hello"


async def test_every_message_can_be_traced():
    dispatcher = Loopback(lambda message: {"result": {}})
    traced: list[tuple[str, Any]] = []
    dispatcher.trace = lambda direction, message: traced.append((direction, message.get("method")))
    await dispatcher.send_raw_request("x", None)
    await dispatcher.notify("y", None)
    assert traced == [("->", "x"), ("<-", None), ("->", "y")]
