"""A scenario of a server that asks for input before it answers: requests in several rounds (2026-07-28)."""

from __future__ import annotations

import json
import os

from tests.servers import payloads
from tests.servers.scenarios import NO_ANSWER, ON_MESSAGE, ON_RESULT, scenario

TYPE_CHECKING = False  # as in ``typing``, which costs start-up time
if TYPE_CHECKING:
    from typing import Any

    from tests.servers.faulty_stdio import Message, Peer

METHODS = ("tools/call", "prompts/get", "resources/read")
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


@scenario(
    ON_MESSAGE,
    'asks for input by a script, {"": RESULT, STATE: RESULT or "die"}; then quotes the request',
)
def asks(peer: Peer, value: str, message: Message) -> bool:
    if message.get("method") not in METHODS:
        return False
    params = message["params"]
    peer.unanswered[message["id"]] = message
    step = json.loads(value).get(params.get("requestState", ""))
    if step == "die":
        os._exit(7)
    # The answers to the first question may come without any state.
    if step is not None and not ("inputResponses" in params and "requestState" not in params):
        peer.deliver(message, {"resultType": "input_required", **step})
        return True
    told = json.dumps(
        {
            "id": message["id"],
            "capabilities": params.get("_meta", {}).get(CAPABILITIES),
            **{name: params[name] for name in ("inputResponses", "requestState") if name in params},
        }
    )
    if message["method"] == "tools/call":
        peer.deliver(message, payloads.text_result(told))
    elif message["method"] == "prompts/get":
        content = {"type": "text", "text": told}
        peer.deliver(message, {"messages": [{"role": "user", "content": content}]})
    else:
        peer.deliver(message, {"contents": [{"uri": params["uri"], "text": told}]})
    return True


@scenario(ON_RESULT, "refuses every call until the user has visited a URL (2025-11-25)")
def needs_visit(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if message["method"] != "tools/call":
        return result
    visit = {
        "mode": "url",
        "url": "https://pay.test/?token=t",
        "elicitationId": "e1",
        "message": "Pay first.",
    }
    error = {"code": -32042, "message": "Visit it.", "data": {"elicitations": [visit]}}
    peer.reply(message, {"error": error})
    return NO_ANSWER
