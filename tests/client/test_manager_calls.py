"""Calls through the manager: results, limits of time and size, answers that go astray."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from mcp_client_app.datatypes import ConnectionState, Progress, StrictOptions
from mcp_client_app.exceptions import (
    InvalidArgumentsError,
    ProtocolError,
    RequestTimeoutError,
    ResultTooLargeError,
    ToolError,
    TransportError,
)
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import LINKS
from tests.client.peers import PATIENCE, Recorder
from tests.servers import payloads


@pytest.fixture(params=LINKS)
def manage(request: pytest.FixtureRequest, manage: MakeManager) -> MakeManager:
    """Make managers with one link and then with the other."""
    return partial(manage, default_link=request.param)


# Results -----------------------------------------------------------------------------


def test_a_result_gives_text_structure_and_the_raw_answer(manage: MakeManager, peer: MakePeer):
    result = manage(peer("srv")).call_tool("srv__add", {"a": 1, "b": 2})
    assert (result.server, result.tool) == ("srv", "add")
    assert result.text == "3"
    assert result.structured == {"result": 3}
    assert result.raw["structuredContent"] == {"result": 3}
    assert (result.is_error, result.warnings, result.truncated, result.replayed) == (False, (), False, False)


def test_a_failure_of_the_tool_is_a_result_or_an_exception_as_asked(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv"))
    result = manager.call_tool("srv__fail", {"message": "no luck"})
    assert result.is_error
    assert result.text == "no luck"
    with pytest.raises(ToolError, match="no luck") as caught:
        manager.call_tool("srv__fail", {"message": "no luck"}, raise_on_error=True)
    assert caught.value.result == result
    with pytest.raises(ToolError):
        manager.call_tool("srv__fail", {"message": "no luck"}, structured=True)


def test_the_caller_may_ask_for_a_part_of_the_result(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv"))
    assert manager.call_tool("srv__add", {"a": 1, "b": 2}, structured=True) == {"result": 3}
    blocks = manager.call_tool("srv__add", {"a": 1, "b": 2}, content="blocks")
    assert blocks == ({"type": "text", "text": "3"}, {"type": "text", "text": '{"result":3}'})
    with pytest.raises(ValueError, match="content must be"):
        manager.call_tool("srv__add", {"a": 1, "b": 2}, content="html")  # type: ignore[call-overload]


def test_refused_arguments_carry_the_schema_and_the_arguments(manage: MakeManager, peer: MakePeer):
    with pytest.raises(InvalidArgumentsError) as caught:
        manage(peer("srv")).call_tool("srv__echo", {"txet": "hi"})
    assert caught.value.tool == "echo"
    assert caught.value.arguments == {"txet": "hi"}
    assert caught.value.schema is not None
    assert caught.value.schema["required"] == ["text"]


def circular() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["itself"] = value
    return value


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("value", [object(), circular(), len], ids=["object", "circular", "function"])
def test_arguments_that_are_no_json_are_the_callers_mistake_and_nothing_is_sent(
    manage: MakeManager, peer: MakePeer, value: Any, modern: bool
):
    server = peer("srv", modern=modern)
    manager = manage(server)
    with pytest.raises(InvalidArgumentsError, match="arguments cannot be written as JSON") as caught:
        manager.call_tool("srv__echo", {"text": value})
    assert (caught.value.tool, caught.value.arguments) == ("echo", None)
    json.dumps(caught.value.details())
    with pytest.raises(InvalidArgumentsError, match="arguments cannot be written as JSON"):
        manager.get_prompt("srv", "p", {"a": value})
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"
    assert server.calls() == ["echo"]
    assert manager.status("srv").connects == 1


def test_an_error_of_the_server_keeps_its_code(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "error_on_call=-32099"))
    with pytest.raises(ProtocolError, match="refuses with -32099") as caught:
        manager.call_tool("srv__echo", {"text": "hi"})
    assert caught.value.rpc_code == -32099
    assert manager.status("srv").is_ready


def test_arguments_that_are_null_reach_the_server(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    manager.call_tool("srv__echo", {"text": "hi", "lang": None, "deep": {"x": None}})
    arguments = server.wait_for("tools/call")["params"]["arguments"]
    assert arguments == {"text": "hi", "lang": None, "deep": {"x": None}}


def test_meta_of_the_caller_reaches_the_server(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manage(server).call_tool("srv__echo", {"text": "hi"}, meta={"trace": "abc"})
    assert server.wait_for("tools/call")["params"]["_meta"]["trace"] == "abc"


def test_unknown_and_malformed_blocks_become_text(manage: MakeManager, peer: MakePeer):
    result = manage(peer("srv", "unknown_blocks")).call_tool("srv__echo", {"text": "hi"})
    kinds = [block["type"] for block in result.content]
    assert kinds == ["text", "text", "text", "image", "text", "text", "text", "text"]
    assert result.content[0]["text"] == "known"
    assert json.loads(result.content[1]["text"]) == payloads.UNKNOWN_BLOCKS["content"][1]
    assert result.content[2]["text"] == "5"
    assert result.content[3]["data"] == "!!"  # passed on, never decoded
    assert result.content[6]["text"] == "bare string"
    assert any("'video'" in warning for warning in result.warnings)
    assert result.raw["content"] == payloads.UNKNOWN_BLOCKS["content"]


@pytest.mark.parametrize("value", ["null", "missing"])
def test_a_result_without_content_is_an_empty_result(manage: MakeManager, peer: MakePeer, value: str):
    manager = manage(peer("srv", f"null_content={value}"))
    result = manager.call_tool("srv__echo", {"text": "hi"})
    assert result.content == ()
    assert result.text == ""
    assert result.warnings == ("the result has no content",)


def test_a_result_without_content_is_refused_if_that_is_asked_for(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "null_content", strict=StrictOptions(result_content=True)))
    with pytest.raises(ProtocolError, match="without content"):
        manager.call_tool("srv__echo", {"text": "hi"})


def test_content_that_is_no_list_is_taken_as_one_block(manage: MakeManager, peer: MakePeer):
    result = manage(peer("srv", "not_a_list_content")).call_tool("srv__echo", {"text": "hi"})
    assert result.text == "alone"
    assert result.warnings == ("content was no list",)


def test_structured_content_alone_is_also_text(manage: MakeManager, peer: MakePeer):
    result = manage(peer("srv", "structured_only")).call_tool("srv__echo", {"text": "hi"})
    assert result.content == ()
    assert result.structured == {"answer": 42}
    assert json.loads(result.text) == {"answer": 42}


def test_an_empty_result_is_a_success(manage: MakeManager, peer: MakePeer):
    result = manage(peer("srv", "empty_content")).call_tool("srv__echo", {"text": "hi"})
    assert (result.is_error, result.text, result.warnings) == (False, "", ())


def test_a_result_that_is_no_object_fails_its_call_only(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "result_not_object=[]", once=True))
    with pytest.raises(TransportError, match="no object"):
        manager.call_tool("srv__echo", {"text": "hi"})
    assert manager.status("srv").is_ready


@pytest.mark.parametrize(
    ("value", "warning"),
    [("wrong", "does not fit the output schema: n:"), ("missing", "gave no structured content")],
)
def test_a_breach_of_the_output_schema_is_a_warning_for_the_tool_has_run(
    manage: MakeManager, peer: MakePeer, value: str, warning: str
):
    server = peer("srv", f"output_schema_mismatch={value}")
    result = manage(server).call_tool("srv__echo", {"text": "hi"})
    assert result.text == "four"
    assert warning in result.warnings[0]
    assert server.methods().count("tools/list") == 1  # no hidden listing after the call


def test_an_error_result_is_not_held_to_the_output_schema(manage: MakeManager, peer: MakePeer):
    result = manage(peer("srv", "output_schema_mismatch=error")).call_tool("srv__echo", {"text": "hi"})
    assert (result.is_error, result.text, result.warnings) == (True, "the real reason", ())


def test_strange_values_come_out_fit_for_json(manage: MakeManager, peer: MakePeer):
    result = manage(peer("srv", "strange_values")).call_tool("srv__echo", {"text": "hi"})
    assert result.structured == {
        "big": 12345678901234567890123,
        "exact": 9007199254740993,
        "nan": None,
        "infinity": None,
        "key �": "�",
    }
    assert result.text == "lone � surrogate, \0 NUL, \x1b escape"
    json.dumps(result.raw, allow_nan=False).encode()


# Answers that go astray --------------------------------------------------------------


def test_ids_echoed_as_strings_find_their_calls(manage: MakeManager, peer: MakePeer):
    assert manage(peer("srv", "string_ids")).call_tool("srv__echo", {"text": "hi"}).text == "hi"


@pytest.mark.parametrize("value", ["null", "missing"])
def test_an_error_without_an_id_reaches_the_only_call_that_waits(
    manage: MakeManager, peer: MakePeer, value: str
):
    manager = manage(peer("srv", f"null_id_error={value}"))
    with pytest.raises(ProtocolError, match="cannot parse that"):
        manager.call_tool("srv__echo", {"text": "hi"})


def test_an_error_without_an_id_is_nobodys_when_several_wait(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    server = peer("srv", "null_id_error")
    manager = manage(server)
    manager.connect("srv")
    hanging = threads.submit(manager.call_tool, "srv__hang", timeout=0.6)
    server.wait_for("tools/call")
    with pytest.raises(RequestTimeoutError):
        manager.call_tool("srv__echo", {"text": "hi"}, timeout=0.2)
    with pytest.raises(RequestTimeoutError):
        hanging.result(PATIENCE)


def test_an_answer_under_a_foreign_id_is_dropped(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "wrong_id"))
    manager.connect("srv")
    with pytest.raises(RequestTimeoutError):
        manager.call_tool("srv__echo", {"text": "hi"}, timeout=0.2)
    assert manager.status("srv").is_ready


def test_a_second_answer_is_dropped(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "duplicate_reply"))
    assert [manager.call_tool("srv__echo", {"text": text}).text for text in "abc"] == ["a", "b", "c"]


def test_answers_find_their_calls_whatever_their_order(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    manager = manage(peer("srv"))
    calls = [threads.submit(manager.call_tool, "srv__meet", {"count": 8}) for _ in range(8)]
    assert [call.result(PATIENCE).text for call in calls] == ["met 8"] * 8


# Time limits -------------------------------------------------------------------------


def test_a_time_out_tells_the_server_and_the_answer_that_comes_late_is_dropped(
    manage: MakeManager, peer: MakePeer
):
    server = peer("srv", "late_reply")
    manager = manage(server)
    manager.connect("srv")
    with pytest.raises(RequestTimeoutError, match=r"within 0\.2 s") as caught:
        manager.call_tool("srv__hang", timeout=0.2)
    assert (caught.value.seconds, caught.value.sent) == (0.2, True)
    assert caught.value.details() == {"seconds": 0.2, "outcome": "unknown"}
    assert manager.call_tool("srv__echo", {"text": "next"}).text == "next"
    called = server.wait_for("tools/call")
    cancelled = server.wait_for("notifications/cancelled")
    assert cancelled["params"]["requestId"] == called["id"]
    assert len(server.pids) == 1
    assert manager.status("srv").calls_in_flight == 0


def test_the_servers_own_limit_holds_where_the_caller_names_none(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", call_timeout=0.2))
    with pytest.raises(RequestTimeoutError) as caught:
        manager.call_tool("srv__hang")
    assert caught.value.seconds == 0.2


def test_zero_is_no_limit(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", call_timeout=0.05))
    assert manager.call_tool("srv__sleep", {"seconds": 0.2}, timeout=0).text == "slept 0.2"


def test_the_limit_of_a_call_covers_connecting(manage: MakeManager, peer: MakePeer):
    silent = peer("srv", "mute")
    manager = manage(silent)
    with pytest.raises(RequestTimeoutError) as caught:
        manager.call_tool("srv__echo", {"text": "hi"}, timeout=0.2)
    assert caught.value.sent is False
    assert caught.value.details()["outcome"] == "not_sent"
    assert manager.status("srv").state is ConnectionState.CONNECTING  # the attempt is everybody's


def test_a_cancelled_coroutine_tells_the_server(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)

    async def cancel_a_call() -> None:
        await manager.aconnect("srv")
        call = asyncio.create_task(manager.acall_tool("srv__hang", timeout=0))
        await asyncio.to_thread(server.wait_for, "tools/call")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.to_thread(server.wait_for, "notifications/cancelled")

    asyncio.run(cancel_a_call())


def test_a_time_out_frees_the_slot(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", max_concurrency=1))
    manager.connect("srv")
    with pytest.raises(RequestTimeoutError):
        manager.call_tool("srv__hang", timeout=0.2)
    assert manager.call_tool("srv__echo", {"text": "free"}).text == "free"


def test_calls_wait_for_a_slot_first_come_first_served(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    server = peer("srv", max_concurrency=1)
    manager = manage(server)
    manager.connect("srv")
    gate = server.directory / "go"
    first = threads.submit(manager.call_tool, "srv__wait", {"path": str(gate)})
    server.wait_for("tools/call")
    others = []
    for number in range(5):
        others.append(threads.submit(manager.call_tool, "srv__echo", {"text": str(number)}))
        # Counted on the loop before it waits: the next one comes after it.
        while manager.status("srv").calls_in_flight < number + 2:
            manager.list_tools("srv")
    assert server.calls() == ["wait"]
    server.let_go()
    assert first.result(PATIENCE).text == "there"
    assert [call.result(PATIENCE).text for call in others] == list("01234")
    texts = [
        frame["params"]["arguments"].get("text")
        for frame in server.tap.frames()
        if frame.get("method") == "tools/call"
    ]
    assert texts == [None, "0", "1", "2", "3", "4"]


def test_waiting_for_a_slot_counts_as_time_of_the_call_and_sends_nothing(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    server = peer("srv", max_concurrency=1)
    manager = manage(server)
    manager.connect("srv")
    first = threads.submit(manager.call_tool, "srv__wait", {"path": str(server.directory / "go")})
    server.wait_for("tools/call")
    with pytest.raises(RequestTimeoutError) as caught:
        manager.call_tool("srv__echo", {"text": "hi"}, timeout=0.2)
    assert caught.value.sent is False
    server.let_go()
    first.result(PATIENCE)
    assert server.calls() == ["wait"]


def test_when_a_server_stops_reading_every_call_ends_at_its_limit_and_the_connection_is_recycled(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    # It has read initialize, initialized, tools/list: nothing more.
    blocked = peer("srv", "stop_reading=3", once=True, mode="legacy", shutdown_timeout=0.5)
    manager = manage(blocked)
    manager.connect("srv")
    text = "x" * 3_000_000
    calls = [
        threads.submit(manager.call_tool, "srv__write", {"path": "/dev/null", "text": text}, timeout=0.5)
        for _ in range(3)
    ]
    errors = [call.exception(PATIENCE) for call in calls]
    started_to_write = [error for error in errors if isinstance(error, RequestTimeoutError) and error.sent]
    assert (
        len(started_to_write) == 1
    )  # the others were known not to be sent, and were sent to the next process
    assert manager.call_tool("srv__echo", {"text": "anew"}).text == "anew"
    assert len(blocked.pids) == 2


# Size --------------------------------------------------------------------------------


def test_ten_megabytes_come_through(manage: MakeManager, peer: MakePeer):
    size = 10_000_000
    manager = manage(peer("srv", max_result_size=0))
    assert manager.call_tool("srv__big", {"bytes": size}).text == "x" * size


def test_a_result_over_the_limit_is_cut_and_marked_but_kept_raw(manage: MakeManager, peer: MakePeer):
    result = manage(peer("srv", max_result_size=1000)).call_tool("srv__big", {"bytes": 5000})
    assert result.truncated
    assert result.text == "x" * 1000 + "\n[cut: 4000 more bytes]"
    assert "the result was cut to 1000 bytes" in result.warnings
    assert len(result.raw["content"][0]["text"]) == 5000


def test_a_line_over_the_frame_limit_fails_its_call_and_no_other(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    server = peer("srv")
    manager = manage(server, max_frame_size=2_000_000)
    manager.connect("srv")
    waiting = threads.submit(manager.call_tool, "srv__wait", {"path": str(server.directory / "go")})
    server.wait_for("tools/call")
    with pytest.raises(ResultTooLargeError) as caught:
        manager.call_tool("srv__big", {"bytes": 3_000_000})
    assert caught.value.limit == 2_000_000
    assert caught.value.size is not None
    assert caught.value.size > 3_000_000
    server.let_go()
    assert waiting.result(PATIENCE).text == "there"
    assert len(server.pids) == 1


def test_a_line_without_end_costs_its_call_and_bounded_memory(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "never_newline=8000000"), max_frame_size=1_000_000)
    with pytest.raises(RequestTimeoutError):
        manager.call_tool("srv__echo", {"text": "hi"}, timeout=1)


def test_large_answers_keep_their_order_with_small_ones(
    manage: MakeManager, peer: MakePeer, recorder: Recorder
):
    # Decoded on a worker thread, while the log messages after it have to wait.
    manager = manage(peer("srv", "log_messages", max_result_size=0), observers=[recorder])
    assert len(manager.call_tool("srv__big", {"bytes": 3_000_000}).text) == 3_000_000
    assert manager.call_tool("srv__echo", {"text": "after"}).text == "after"
    recorder.wait_for(lambda: len(recorder.logs) == 6)
    assert [message.level for message in recorder.logs] == ["debug", "warning", "error"] * 2


# Progress ----------------------------------------------------------------------------


def test_progress_comes_in_order_in_the_callers_thread(manage: MakeManager, peer: MakePeer):
    seen: list[tuple[Progress, threading.Thread]] = []
    manage(peer("srv", "progress=20")).call_tool(
        "srv__echo", {"text": "hi"}, on_progress=lambda p: seen.append((p, threading.current_thread()))
    )
    assert [progress for progress, _ in seen] == [Progress(n, 20, f"step {n}") for n in range(1, 21)]
    assert {thread for _, thread in seen} == {threading.current_thread()}


def test_progress_comes_on_the_callers_loop_also_to_a_coroutine_function(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "progress=20"))

    async def call() -> list[float]:
        seen: list[float] = []
        home = asyncio.get_running_loop()

        async def note(progress: Progress) -> None:
            await asyncio.sleep(0)
            assert asyncio.get_running_loop() is home
            seen.append(progress.progress)

        await manager.acall_tool("srv__echo", {"text": "hi"}, on_progress=note)
        return seen

    assert asyncio.run(call()) == list(range(1, 21))


def test_bad_progress_is_left_out(manage: MakeManager, peer: MakePeer):
    seen: list[Progress] = []
    manager = manage(peer("srv", "bad_progress"))
    assert manager.call_tool("srv__echo", {"text": "hi"}, on_progress=seen.append).text == "hi"
    assert seen == [Progress(0.5, None, None), Progress(1, 2, "good")]


def test_a_failing_progress_callback_does_not_harm_the_call(
    manage: MakeManager, peer: MakePeer, caplog: pytest.LogCaptureFixture
):
    def fail(progress: Progress) -> None:
        raise ZeroDivisionError

    assert manage(peer("srv", "progress")).call_tool("srv__echo", {"text": "a"}, on_progress=fail).text == "a"
    assert "A progress callback failed" in caplog.text


def test_without_a_callback_no_progress_is_asked_for(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manage(server).call_tool("srv__echo", {"text": "hi"})
    assert "progressToken" not in server.wait_for("tools/call")["params"].get("_meta", {})
