from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from mcp_client_app import json_codec, services
from mcp_client_app.models import CallReceipt, ToolCall
from tests.api.conftest import Api
from tests.stored import run_process, stored


def lines(path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def write(api, path, key="one", text="x", **more):
    return api.call("peer__write", {"path": str(path), "text": text}, idempotency_key=key, **more)


def test_a_call_that_is_sent_twice_runs_once_and_gets_the_same_answer(api, tmp_path):
    stored("peer")
    first = write(api, tmp_path / "out")
    second = write(api, tmp_path / "out")

    assert lines(tmp_path / "out") == ["x"]
    assert (second.status_code, second.data) == (first.status_code, first.data)
    assert "Idempotent-Replayed" not in first
    assert second["Idempotent-Replayed"] == "true"
    assert ToolCall.objects.count() == 1


def test_the_key_may_be_a_header_which_wins(api, tmp_path):
    stored("peer")
    body = {"name": "peer__write", "arguments": {"path": str(tmp_path / "out"), "text": "x"}}

    for key in ("other", "another"):
        answer = api.post("tools/call/", {**body, "idempotency_key": key}, idempotency_key="header")
        assert answer.status_code == 200

    assert lines(tmp_path / "out") == ["x"]
    assert [receipt.key for receipt in CallReceipt.objects.all()] == ["header"]


def test_a_key_belongs_to_one_request(api, tmp_path):
    stored("peer")
    write(api, tmp_path / "out")
    answer = write(api, tmp_path / "out", text="other")
    assert (answer.status_code, answer.data["code"]) == (422, "key_reused")
    assert lines(tmp_path / "out") == ["x"]


def test_keys_of_two_users_do_not_meet(api, api_as, tmp_path):
    stored("peer")
    other = api_as("call_tool")
    for client in (api, other):
        assert write(client, tmp_path / "out").status_code == 200
    assert lines(tmp_path / "out") == ["x", "x"]


def test_while_a_call_runs_its_repeat_is_told_so(api, tmp_path):
    stored("peer")
    services.connect("peer")
    go, answers = tmp_path / "go", []
    body = {"name": "peer__wait", "arguments": {"path": str(go)}, "idempotency_key": "one"}

    def call() -> None:
        try:
            answers.append(Api(api.user).post("tools/call/", body))
        finally:
            connections.close_all()

    first = threading.Thread(target=call)
    first.start()
    while not CallReceipt.objects.exists():
        assert first.is_alive()
    repeat = api.post("tools/call/", body)
    go.touch()
    first.join(60)

    assert (repeat.status_code, repeat.data["code"]) == (409, "call_in_progress")
    assert (answers[0].status_code, answers[0].data["text"]) == (200, "there")
    assert api.post("tools/call/", body).data["text"] == "there"


DYING = """
import os, threading
from django.contrib.auth import get_user_model
from mcp_client_app.models import CallReceipt
from tests.api.conftest import Api

api = Api(get_user_model().objects.get(username={user!r}))
calling = threading.Thread(target=api.post, args=("tools/call/", {body!r}), daemon=True)
calling.start()
while not CallReceipt.objects.exists():
    assert calling.is_alive()
os._exit(0)
"""


@pytest.mark.parametrize(
    ("limit", "status", "code"),
    [(60, 504, "timeout"), (0, 409, "call_in_progress"), (1e300, 409, "call_in_progress")],
    ids=["limited", "unlimited", "beyond any date"],
)
def test_a_call_whose_process_died_is_unknown_once_its_time_is_over(api, limit, status, code):
    stored("peer", call_timeout=limit)
    body = {"name": "peer__hang", "idempotency_key": "one"}
    run_process(DYING.format(user=api.user.username, body=body))
    assert api.post("tools/call/", body).data["code"] == "call_in_progress"

    CallReceipt.objects.update(started_at=timezone.now() - timedelta(minutes=3))
    repeat = api.post("tools/call/", body)

    assert (repeat.status_code, repeat.data["code"]) == (status, code)
    assert repeat.data.get("outcome") == ("unknown" if status == 504 else None)
    assert not ToolCall.objects.exists()  # it was not made again


def test_a_call_that_may_have_run_is_not_run_again(api, tmp_path):
    stored("peer", "--scenario=die_on_call=7")

    first = write(api, tmp_path / "out")
    second = write(api, tmp_path / "out")

    assert (first.status_code, first.data["outcome"]) == (503, "unknown")
    assert (second.status_code, second.data) == (503, first.data)
    assert lines(tmp_path / "out") == ["x"]


def test_a_deep_answer_is_repeated_and_what_is_too_deep_is_refused(api):
    """Refused arguments are part of the answer."""
    stored("peer")

    def sent(depth: int) -> Any:
        arguments = {"a": 1, "more": json.loads("[" * depth + "]" * depth)}
        return api.call("peer__add", arguments, idempotency_key="one")

    deep = json_codec.DEEPEST - 2
    first, again, deeper = sent(deep), sent(deep), sent(deep + 1)

    assert (first.status_code, first.data["code"]) == (400, "invalid_arguments")
    assert (again.status_code, again.json()) == (400, first.json())
    assert again["Idempotent-Replayed"] == "true"
    assert (deeper.status_code, deeper.data["code"]) == (400, "parse_error")


def test_a_call_that_never_ran_may_be_repeated_with_its_key(api, tmp_path):
    row = stored("peer", blocked_tools=["write"])
    assert write(api, tmp_path / "out").status_code == 403

    row.blocked_tools = []
    row.save()

    assert write(api, tmp_path / "out").status_code == 200
    assert lines(tmp_path / "out") == ["x"]


def test_a_key_is_forgotten_after_its_time(api, tmp_path, settings):
    stored("peer")
    write(api, tmp_path / "out")
    CallReceipt.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    write(api, tmp_path / "out")

    assert lines(tmp_path / "out") == ["x", "x"]
    assert CallReceipt.objects.count() == 1


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_key_of_another_form_is_refused(api, tmp_path, key):
    stored("peer")
    by_body = write(api, tmp_path / "out", key=key)
    assert (by_body.status_code, list(by_body.data["fields"])) == (400, ["idempotency_key"])
    by_header = api.post("tools/call/", {"name": "peer__echo"}, idempotency_key=key or "a\tb")
    assert (by_header.status_code, list(by_header.data["fields"])) == (400, ["idempotency_key"])


def test_the_kept_answer_is_the_very_text_that_was_sent(api):
    stored("peer", "--scenario=strange_values")
    body = {"name": "peer__echo", "arguments": {"text": "x"}, "idempotency_key": "one"}
    first, second = api.post("tools/call/", body), api.post("tools/call/", body)
    assert second.json() == first.json()
