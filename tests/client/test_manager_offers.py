"""What servers get wrong in resources, templates, prompts and completions, and in what reading them gives.

The neighbours of the cases about tools: T01, T04, T09, T21, P17, and the rule of repetition for reads.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mcp_client_app.datatypes import Completion
from mcp_client_app.exceptions import (
    ProtocolError,
    RequestTimeoutError,
    ResultTooLargeError,
    ServerCrashedError,
)
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import LINKS
from tests.client.peers import PATIENCE
from tests.servers import payloads

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
KINDS = pytest.mark.parametrize("kind", LINKS)


LISTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "resources": ("resources/list", "resources", {"uri": "a://good", "name": "good"}),
    "resource_templates": (
        "resources/templates/list",
        "resourceTemplates",
        {"uriTemplate": "a://{good}", "name": "good"},
    ),
    "prompts": ("prompts/list", "prompts", {"name": "good"}),
}
"""By kind of offer: method, key, and an entry that is right."""


def listing(kind: str, *entries: Any, **more: Any) -> dict[str, Any]:
    _, key, good = LISTS[kind]
    return {key: [good, *entries], **more}


@ERAS
@KINDS
@pytest.mark.parametrize("offer", LISTS)
def test_one_bad_entry_does_not_hide_the_good_ones(
    manage: MakeManager, peer: MakePeer, offer: str, kind: str, modern: bool
):
    method, _, good = LISTS[offer]
    bad = [None, 5, {}, {"name": 7}, {**good, "icons": [{"src": "x", "theme": "loud"}], "title": [1]}]
    results = {"resources/list": listing("resources"), method: listing(offer, *bad)}
    server = peer("srv", "instead=" + json.dumps(results), modern=modern)
    manager = manage(server, default_link=kind)
    # The last one is the first one again, and mended: of two the first is kept.
    assert len(manager.listing(offer).items) == 1
    told = manager.status("srv").warnings
    assert sum("twice" in warning for warning in told) == 1
    assert len(told) >= 4


@KINDS
@pytest.mark.parametrize("offer", LISTS)
def test_a_listing_without_end_is_stopped_early(manage: MakeManager, peer: MakePeer, offer: str, kind: str):
    method, _, _ = LISTS[offer]
    results = {"resources/list": listing("resources"), method: listing(offer, nextCursor="same")}
    server = peer("srv", "instead=" + json.dumps(results))
    manager = manage(server, default_link=kind)
    assert len(manager.listing(offer).items) == 1
    assert server.methods().count(method) == 2
    assert any(f"{method} never came to an end" in warning for warning in manager.status("srv").warnings)


@KINDS
@pytest.mark.parametrize("offer", LISTS)
def test_a_list_that_never_comes_costs_only_itself(
    manage: MakeManager, peer: MakePeer, offer: str, kind: str
):
    method, _, _ = LISTS[offer]
    results = {"resources/list": listing("resources"), method: None}
    manager = manage(
        peer("srv", "instead=" + json.dumps(results), list_timeout=0.3, mode="legacy"), default_link=kind
    )
    assert manager.connect("srv").tools == len(payloads.TOOLS)
    assert manager.listing(offer).items == ()
    assert f"{method} failed" in manager.status("srv").warnings[0]


@KINDS
def test_a_server_with_resources_need_not_know_templates(manage: MakeManager, peer: MakePeer, kind: str):
    results = {"resources/list": listing("resources")}
    manager = manage(peer("srv", "instead=" + json.dumps(results)), default_link=kind)
    assert manager.connect("srv").resources == 1
    assert manager.status("srv").warnings == ()


@KINDS
def test_a_list_over_the_frame_limit_costs_only_itself(manage: MakeManager, peer: MakePeer, kind: str):
    # P17
    big = {"name": "big", "description": "x" * 40_000}
    results = {"prompts/list": {"prompts": [big]}, "resources/list": listing("resources")}
    manager = manage(peer("srv", "instead=" + json.dumps(results)), default_link=kind, max_frame_size=20_000)
    assert manager.connect("srv").resources == 1
    assert manager.list_prompts("srv") == []
    assert "prompts/list failed: An answer of 'srv' has" in manager.status("srv").warnings[0]


# Reading -------------------------------------------------------------------------------

CONTENTS = {
    "contents": [
        {"uri": "a://1", "text": "one", "mimeType": 7},
        {"uri": "a://2", "blob": "!!", "mimeType": "image/png"},
        {"uri": "a://3", "text": 5},
        {"text": "of nothing"},
        "bare",
    ]
}
MESSAGES = {
    "description": ["d"],
    "messages": [
        {"role": "user", "content": "plain"},
        {"role": "assistant", "content": {"type": "video", "url": "a://film"}},
        {"role": "wizard", "content": {"type": "text", "text": "abracadabra"}},
        None,
    ],
}
COMPLETION = {"completion": {"values": ["a", 5, "b"], "total": "many", "hasMore": 1}}


@ERAS
@KINDS
def test_malformed_contents_are_mended_told_and_kept_raw(
    manage: MakeManager, peer: MakePeer, kind: str, modern: bool
):
    # T21, T28
    results = {"resources/read": CONTENTS, "prompts/get": MESSAGES, "completion/complete": COMPLETION}
    manager = manage(peer("srv", "instead=" + json.dumps(results), modern=modern), default_link=kind)

    read = manager.read_resource("srv", "a://1")
    assert [item["uri"] for item in read.contents] == ["a://1", "a://2", "a://3"]
    assert read.text == "one\n5"
    assert read.contents[1]["blob"] == "!!"  # passed on, never decoded
    assert read.raw["contents"] == CONTENTS["contents"]
    assert "a content without uri was left out" in read.warnings
    assert not read.truncated

    prompt = manager.get_prompt("srv", "p")
    assert [message["content"]["type"] for message in prompt.messages] == ["text", "text"]
    assert json.loads(prompt.messages[1]["content"]["text"]) == {"type": "video", "url": "a://film"}
    assert prompt.raw["messages"] == MESSAGES["messages"]
    assert "a message without a known role was left out" in prompt.warnings
    assert prompt.description is None

    found = manager.complete("srv", {"type": "ref/prompt", "name": "p"}, "argument", "")
    assert found == Completion(("a", "b"))


@KINDS
@pytest.mark.parametrize("nothing", [{}, {"contents": None}, {"contents": "text"}])
def test_a_resource_without_contents_is_empty(
    manage: MakeManager, peer: MakePeer, kind: str, nothing: dict[str, Any]
):
    manager = manage(peer("srv", "instead=" + json.dumps({"resources/read": nothing})), default_link=kind)
    read = manager.read_resource("srv", "a://1")
    assert (read.contents, read.text, read.warnings) == ((), "", ("contents was no list",))


@KINDS
def test_contents_over_the_limit_are_cut_and_marked_but_kept_raw(
    manage: MakeManager, peer: MakePeer, kind: str
):
    # P17
    text = {"uri": "a://text", "text": "é" * 1000}
    blob = {"uri": "a://blob", "blob": "A" * 2000, "mimeType": "image/png"}
    messages = [{"role": "user", "content": {"type": "text", "text": "x" * 2000}}]
    results = {"resources/read": {"contents": [text, blob]}, "prompts/get": {"messages": messages}}
    manager = manage(peer("srv", "instead=" + json.dumps(results), max_result_size=500), default_link=kind)

    read = manager.read_resource("srv", "a://text")
    assert read.truncated
    assert read.contents[0]["text"].startswith("é" * 240)
    assert "[cut: " in read.contents[0]["text"]
    assert read.contents[1] == {"uri": "a://blob", "text": read.contents[1]["text"]}
    assert read.contents[1]["text"].startswith("[left out: image/png of ")
    assert read.warnings == ("the result was cut to 500 bytes",)
    assert read.raw["contents"] == [text, blob]

    prompt = manager.get_prompt("srv", "p")
    assert prompt.truncated
    assert prompt.messages[0]["role"] == "user"
    assert prompt.messages[0]["content"]["text"] == "x" * 500 + "\n[cut: 1500 more bytes]"
    assert prompt.raw["messages"] == messages


@KINDS
def test_contents_over_the_frame_limit_fail_their_reading_and_no_other(
    manage: MakeManager, peer: MakePeer, kind: str, threads: ThreadPoolExecutor
):
    # P17
    big = {"contents": [{"uri": "a://big", "text": "x" * 40_000}]}
    server = peer("srv", "instead=" + json.dumps({"resources/read": big}))
    manager = manage(server, default_link=kind, max_frame_size=20_000)
    manager.connect("srv")
    waiting = threads.submit(manager.call_tool, "srv__wait", {"path": str(server.directory / "go")})
    server.wait_for("tools/call")
    with pytest.raises(ResultTooLargeError, match="limit for a message is 20000"):
        manager.read_resource("srv", "a://big")
    server.let_go()
    assert waiting.result(PATIENCE).text == "there"
    assert len(server.pids) == 1


@KINDS
@pytest.mark.parametrize("method", ["resources/read", "prompts/get", "completion/complete"])
def test_a_read_ends_at_its_limit_and_the_server_is_told(
    manage: MakeManager, peer: MakePeer, kind: str, method: str
):
    server = peer("srv", "instead=" + json.dumps({method: None}), call_timeout=0.3)
    manager = manage(server, default_link=kind)
    manager.connect("srv")
    with pytest.raises(RequestTimeoutError) as caught:
        read(manager, method)
    assert caught.value.details()["outcome"] == "unknown"
    cancelled = server.wait_for("notifications/cancelled")
    assert cancelled["params"]["requestId"] == server.wait_for(method)["id"]


# Losing the server ---------------------------------------------------------------------

ANSWERS = {
    "resources/read": {"contents": [{"uri": "a://1", "text": "read"}]},
    "prompts/get": {"messages": []},
    "completion/complete": {"completion": {"values": ["a"]}},
}


def read(manager: Any, method: str) -> Any:
    match method:
        case "resources/read":
            return manager.read_resource("srv", "a://1")
        case "prompts/get":
            return manager.get_prompt("srv", "p")
        case _:
            return manager.complete("srv", {"type": "ref/prompt", "name": "p"}, "argument", "")


@KINDS
@pytest.mark.parametrize("method", ANSWERS)
def test_a_read_that_lost_its_server_is_repeated_once(
    manage: MakeManager, peer: MakePeer, kind: str, method: str, tmp_path: Any
):
    # P12: reads do no harm twice, trusted annotations or not.
    answers = "instead=" + json.dumps(ANSWERS)
    server = peer("srv", f"die_on_method={method}@{tmp_path / 'died'}", answers)
    manager = manage(server, default_link=kind)
    assert read(manager, method).__class__.__name__ in ("ResourceResult", "PromptResult", "Completion")
    assert server.methods().count(method) == 2
    assert len(server.pids) == 2


@KINDS
@pytest.mark.parametrize("method", ANSWERS)
def test_a_read_is_not_repeated_twice(manage: MakeManager, peer: MakePeer, kind: str, method: str):
    server = peer("srv", f"die_on_method={method}", "instead=" + json.dumps(ANSWERS))
    with pytest.raises(ServerCrashedError, match="exited with code 8"):
        read(manage(server, default_link=kind), method)
    assert server.methods().count(method) == 2


@KINDS
def test_an_unknown_prompt_of_a_server_that_offers_none_is_an_error_of_the_protocol(
    manage: MakeManager, peer: MakePeer, kind: str
):
    with pytest.raises(ProtocolError) as caught:
        manage(peer("srv"), default_link=kind).complete(
            "srv", {"type": "ref/prompt", "name": "p"}, "argument", ""
        )
    assert caught.value.rpc_code == payloads.METHOD_NOT_FOUND
