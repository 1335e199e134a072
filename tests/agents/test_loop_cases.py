"""What models and servers get wrong, and how a run goes on or ends; see the group "LLM loop" of the cases."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from mcp_client_app.agents.api import run_agent
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentEvent
from tests.agents.scripts import asks, call, says, scripted, tool_results


def results_of(seen):
    return tool_results(seen[-1])


def test_arguments_that_are_no_json_are_told_the_model_and_not_sent(agent, calls):
    agent()
    seen: list[Any] = []
    model = scripted(asks(ToolCallPart("shop__nothing", "{a:")), says("Sorry."), seen=seen)

    result = run_agent("clerk", "Go.", model=model)

    assert result.text == "Sorry."
    assert calls == []
    ((tool, outcome, text),) = results_of(seen)
    assert (tool, outcome) == ("shop__nothing", "failed")
    assert text.startswith("Error calling mcp tool shop__nothing:")
    assert "no valid JSON" in text
    (event,) = AgentEvent.objects.filter(run__pk=result.run_id, kind="tool.call")
    assert event.data["valid"] is False
    assert event.data["arguments"] == "{a:"


def test_arguments_that_do_not_fit_come_back_with_the_schema(agent, calls):
    agent()
    seen: list[Any] = []
    model = scripted(asks(call("shop__price", artikel="tea")), says("Sorry."), seen=seen)

    run_agent("clerk", "Go.", model=model)

    assert calls == []
    ((_, outcome, text),) = results_of(seen)
    assert outcome == "failed"
    assert "article" in text
    assert '"artikel"' in text


@pytest.mark.parametrize("name", ["nope", "multi_tool_use.parallel", "shop__prize"])
def test_an_unknown_tool_is_told_with_the_names_that_there_are(agent, calls, name):
    agent()
    seen: list[Any] = []
    model = scripted(asks(call(name)), says("Sorry."), seen=seen)

    result = run_agent("clerk", "Go.", model=model)

    assert result.text == "Sorry."
    assert result.tool_rounds == 1
    ((tool, outcome, text),) = results_of(seen)
    assert tool == name.replace(".", "_")
    assert outcome == "failed"
    assert "shop__price" in text
    assert calls == []


def test_many_unknown_tools_in_a_row_end_at_the_limit_of_rounds(agent, calls):
    agent(max_rounds=3)
    result = run_agent("clerk", "Go.", model=scripted(asks(call("nope"))))

    assert (result.status, result.code) == (RunStatus.LIMIT_REACHED, "max_rounds")
    assert result.tool_rounds == 3
    assert calls == []


def test_a_list_of_valid_names_is_bounded(agent, add_mcp_server, calls):
    from mcp_client_app.models import AgentServer
    from mcp_client_app.testing import fake_server

    row = agent()
    tools = {f"tool{number:03}_{'x' * 30}": (lambda: "ok") for number in range(200)}
    AgentServer.objects.create(agent=row, server=add_mcp_server("many", fake_server("many", tools=tools)))
    seen: list[Any] = []
    run_agent("clerk", "Go.", model=scripted(asks(call("nope")), says("Sorry."), seen=seen))

    ((_, _, text),) = results_of(seen)
    assert len(text) < 5000


def test_the_name_of_a_tool_on_its_server_will_do(agent, calls):
    agent()
    seen: list[Any] = []
    model = scripted(asks(call("price", article="tea")), says("3."), seen=seen)

    run_agent("clerk", "Go.", model=model)

    assert calls == [("price", "tea")]
    ((tool, outcome, text),) = results_of(seen)
    assert (tool, outcome, text) == ("shop__price", "success", "tea costs 3")


def test_a_loop_without_end_ends_at_the_limit_and_is_no_answer(agent, calls):
    agent(max_rounds=2)
    result = run_agent("clerk", "Go.", model=scripted(asks(call("shop__price", article="tea"), text="Hm.")))

    assert (result.status, result.code) == (RunStatus.LIMIT_REACHED, "max_rounds")
    assert not result.is_complete
    assert result.tool_rounds == 2
    assert calls == [("price", "tea")] * 2
    assert result.text == "Hm.\n\nHm.\n\nHm."
    assert "2 rounds" in result.detail


def test_a_call_repeated_over_and_over_is_pointed_out(agent, calls):
    agent(max_rounds=4)
    seen: list[Any] = []
    run_agent("clerk", "Go.", model=scripted(asks(call("shop__price", article="tea")), seen=seen))

    texts = [text for _, _, text in results_of(seen)]
    assert texts[:2] == ["tea costs 3"] * 2
    assert "3 times in a row" in texts[2]
    assert "4 times in a row" in texts[3]


def test_calls_with_other_arguments_are_no_repetition(agent, calls):
    agent(max_rounds=4)
    seen: list[Any] = []
    steps = [asks(call("shop__price", article=article)) for article in ("tea", "salt", "tea", "salt")]
    run_agent("clerk", "Go.", model=scripted(*steps, says("Done."), seen=seen))

    assert all("in a row" not in text for _, _, text in results_of(seen))


def test_one_of_several_calls_fails_and_all_are_answered_in_order(agent, calls):
    agent()
    seen: list[Any] = []
    model = scripted(
        asks(
            call("shop__price", "one", article="tea"),
            ToolCallPart("shop__price", "{", "two"),
            call("shop__fail", "three", why="sold out"),
            call("nope", "four"),
        ),
        says("Done."),
        seen=seen,
    )

    result = run_agent("clerk", "Go.", model=model)

    assert result.status is RunStatus.COMPLETED
    answers = [part for part in seen[-1][-1].parts if part.part_kind == "tool-return"]
    assert [part.tool_call_id for part in answers] == ["one", "two", "three", "four"]
    assert [part.outcome for part in answers] == ["success", "failed", "failed", "failed"]
    assert "sold out" in str(answers[2].content)


def test_an_empty_result_is_something_to_read(agent):
    agent()
    seen: list[Any] = []
    run_agent("clerk", "Go.", model=scripted(asks(call("shop__nothing")), says("Done."), seen=seen))

    ((_, outcome, text),) = results_of(seen)
    assert outcome == "success"
    assert text.strip()


def test_a_huge_result_is_cut_and_marked(agent):
    agent(result_limit=1000)
    seen: list[Any] = []
    run_agent("clerk", "Go.", model=scripted(asks(call("shop__long")), says("Done."), seen=seen))

    ((_, _, text),) = results_of(seen)
    assert len(text) < 1200
    assert "cut" in text


def test_ids_that_come_twice_are_told_apart(agent, calls):
    agent()
    model = scripted(
        asks(call("shop__price", "call_0", article="tea"), call("shop__price", "call_0", article="salt")),
        asks(call("shop__price", "call_0", article="soap")),
        says("Done."),
    )

    result = run_agent("clerk", "Go.", model=model)

    assert result.status is RunStatus.COMPLETED
    assert sorted(calls) == [("price", "salt"), ("price", "soap"), ("price", "tea")]


def test_ids_that_a_provider_would_refuse_are_replaced(agent, calls):
    agent()
    seen: list[Any] = []
    odd = "functions.price:0/" + "x" * 50
    run_agent(
        "clerk", "Go.", model=scripted(asks(call("shop__price", odd, article="tea")), says("."), seen=seen)
    )

    (request,) = [part for message in seen[-1] for part in message.parts if part.part_kind == "tool-call"]
    (answer,) = [part for message in seen[-1] for part in message.parts if part.part_kind == "tool-return"]
    assert request.tool_call_id == answer.tool_call_id
    assert len(answer.tool_call_id) <= 40
    assert "." not in answer.tool_call_id


def test_a_blocked_tool_is_neither_offered_nor_called(agent, calls):
    agent(blocked_tools=["price"])
    offered: list[Any] = []
    seen: list[Any] = []

    def ask(messages, info):
        offered.extend(tool.name for tool in info.function_tools)
        return ModelResponse(parts=[call("shop__price", article="tea"), call(" Shop__PRICE ", article="tea")])

    run_agent("clerk", "Go.", model=scripted(ask, says("."), seen=seen))

    assert "shop__order" in offered
    assert "shop__price" not in offered
    assert calls == []
    assert [outcome for _, outcome, _ in results_of(seen)] == ["failed", "failed"]


def test_what_ends_a_run_is_told_without_secrets(agent, caplog):
    agent()

    def explode(messages, info):
        raise RuntimeError("key sk-secret is wrong")

    result = run_agent("clerk", "Go.", model=scripted(explode))

    assert result.status is RunStatus.FAILED
    assert "sk-secret" not in result.detail
    assert "RuntimeError" in result.detail


def test_text_beside_calls_ends_nothing(agent, calls):
    agent()
    model = scripted(asks(call("shop__price", article="tea"), text="I look."), says("It costs 3."))

    result = run_agent("clerk", "Go.", model=model)

    assert result.text == "It costs 3."
    assert calls == [("price", "tea")]


def test_an_answer_without_anything_fails(agent):
    agent()
    result = run_agent("clerk", "Go.", model=scripted(ModelResponse(parts=[TextPart("")])))

    assert (result.status, result.code) == (RunStatus.FAILED, "model_error")


@pytest.mark.parametrize(("reason", "told"), [("length", "max_tokens"), ("content_filter", "content filter")])
def test_an_answer_that_breaks_off_is_not_passed_off_as_one(agent, reason, told):
    agent()
    half = ModelResponse(parts=[TextPart("It costs")], finish_reason=reason)

    result = run_agent("clerk", "Go.", model=scripted(lambda messages, info: half))

    assert (result.status, result.code) == (RunStatus.FAILED, "model_error")
    assert told in result.detail
    assert result.text == "It costs"
