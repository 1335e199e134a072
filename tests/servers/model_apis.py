"""OpenAI's Chat Completions and Responses and Anthropic's Messages over HTTP, on this machine, and strict.

A script says what the model answers; the fake refuses requests that the real APIs would refuse
(``model_rules``)::

    with ModelApi([Turn(calls=(Call("files__read", {"path": "a"}),)), Turn("done")]) as api:
        client = openai.OpenAI(base_url=api.openai_url, api_key=api.key)

It keeps no state: which turn is meant follows from the conversation, so it serves several processes. As a
process of its own it says where it is: ``python -m tests.servers.model_apis SCRIPT.json``.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from tests.servers import model_answers
from tests.servers.model_answers import Call, Event, Failure, Turn
from tests.servers.model_rules import Asked, check_chat, check_messages, check_responses, parsed
from tests.servers.model_schemas import RefusedError

__all__ = ["Asked", "Call", "Failure", "ModelApi", "Turn"]

Script = Sequence[Turn | Failure] | Callable[[Asked], Turn | Failure]

KEY = "key-of-the-fake"
LONGEST_HOLD = 60
"""Seconds: a test that forgets to resume ends all the same."""


class ModelApi:
    """The server. ``requests`` are the bodies that it took, ``refusals`` what it said to the others."""

    def __init__(self, script: Script, *, key: str = KEY) -> None:
        self.key = key
        self.resume = threading.Event()
        self.held = threading.Event()
        """Set once a turn with ``hold`` has stopped in the middle."""
        self.hung_up = threading.Event()
        """Set once a client has gone away in the middle of a stream."""
        self.requests: list[dict[str, Any]] = []
        self.asked: list[Asked] = []
        self.refusals: list[str] = []
        self._script = script
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="model-api")

    @property
    def url(self) -> str:
        """The base URL for Anthropic's package."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI's package."""
        return f"{self.url}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.resume.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def turn(self, asked: Asked) -> Turn | Failure:
        """Return what the model says to this."""
        if callable(self._script):
            return self._script(asked)
        if asked.turns >= len(self._script):
            raise RefusedError(f"The script has {len(self._script)} turns, this would be another one.")
        return self._script[asked.turns]


class _Server(ThreadingHTTPServer):
    # server_close() waits for the threads, which end when their connections are shut down.
    daemon_threads = False
    api: ModelApi

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        with self._lock:
            for request in self._open:
                request.shutdown(socket.SHUT_RDWR)
        super().server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # Answers go out at once: with the kernel's delay each would cost 40 ms.
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.server.api.hung_up.set()

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.partition("?")[0]
        answer = {
            "/v1/chat/completions": self._chat,
            "/v1/responses": self._responses,
            "/v1/messages": self._messages,
        }.get(path)
        try:
            if answer is None:
                self._fail(404, f"There is nothing at {path}.")
            elif self._key() != self.server.api.key:
                self._fail(401, "Incorrect API key provided.", kind="authentication_error")
            else:
                answer(parsed(raw))
        except RefusedError as error:
            self.server.api.refusals.append(error.message)
            self._fail(400, error.message, param=error.param)

    def _key(self) -> str:
        if "x-api-key" in self.headers:
            return str(self.headers["x-api-key"])
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    # The APIs -------------------------------------------------------------------------

    def _chat(self, body: Any) -> None:
        asked, turn = self._turn(body, check_chat)
        if isinstance(turn, Turn) and asked.streamed:
            usage = bool((body.get("stream_options") or {}).get("include_usage"))
            events = model_answers.chat_events(turn, asked.turns, body["model"], usage=usage)
            self._stream(turn, events, end="data: [DONE]\n\n")
        elif isinstance(turn, Turn):
            self._json(200, model_answers.chat(turn, asked.turns, body["model"]))

    def _responses(self, body: Any) -> None:
        asked, turn = self._turn(body, check_responses)
        if isinstance(turn, Turn) and asked.streamed:
            self._stream(turn, model_answers.responses_events(turn, asked.turns, body["model"]))
        elif isinstance(turn, Turn):
            self._json(200, model_answers.responses(turn, asked.turns, body["model"]))

    def _messages(self, body: Any) -> None:
        if "anthropic-version" not in self.headers:
            raise RefusedError("anthropic-version: header is required")
        betas = self.headers.get("anthropic-beta", "")
        if "mid-conversation" not in betas and '"role": "system"' in json.dumps(body.get("messages")):
            raise RefusedError("messages: role 'system' is not supported without its beta header")
        asked, turn = self._turn(body, check_messages)
        if isinstance(turn, Turn) and asked.streamed:
            self._stream(turn, model_answers.messages_events(turn, asked.turns, body["model"]))
        elif isinstance(turn, Turn):
            self._json(200, model_answers.messages(turn, asked.turns, body["model"]))

    def _turn(self, body: Any, check: Callable[[Any], Asked]) -> tuple[Asked, Turn | Failure]:
        api = self.server.api
        asked = check(body)
        turn = api.turn(asked)
        api.requests.append(body)
        api.asked.append(asked)
        if isinstance(turn, Failure):
            self._fail(turn.status, turn.message, headers=turn.headers)
        return asked, turn

    # The wire -------------------------------------------------------------------------

    def _fail(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        kind: str = "invalid_request_error",
        headers: dict[str, str] | None = None,
    ) -> None:
        if self.path.startswith("/v1/messages"):
            error: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": message}}
            error["request_id"] = "req_fake"
        else:
            error = {"error": {"message": message, "type": kind, "param": param, "code": None}}
        self._json(status, error, headers)

    def _json(self, status: int, answer: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, turn: Turn, events: Iterator[Event], end: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for text in self._written(turn, events, end):
            data = text.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def _written(self, turn: Turn, events: Iterable[Event], end: str) -> Iterator[str]:
        holds = turn.hold
        for name, data in events:
            yield f"event: {name}\ndata: {json.dumps(data)}\n\n" if name else f"data: {json.dumps(data)}\n\n"
            if holds and _is_text(data):
                holds = False
                self._hold()
        if end:
            yield end

    def _hold(self) -> None:
        """Wait for the test, or for the client to hang up."""
        api = self.server.api
        api.held.set()
        self.connection.settimeout(0.05)
        for _ in range(LONGEST_HOLD * 20):
            try:
                if api.resume.is_set():
                    break
                if not self.connection.recv(1, socket.MSG_PEEK):
                    raise ConnectionResetError
            except TimeoutError:
                continue
        self.connection.settimeout(None)


def _is_text(data: dict[str, Any]) -> bool:
    delta = data.get("delta")
    if "choices" in data:
        return any(choice["delta"].get("content") for choice in data["choices"])
    if isinstance(delta, dict):
        return delta.get("type") == "text_delta"
    return data.get("type") == "response.output_text.delta"


def main() -> None:
    """Serve a script: ``[{"text": ..., "calls": [{"name": ..., "arguments": {...}}]}, ...]``."""
    turns = [
        Turn(turn.get("text", ""), tuple(Call(**call) for call in turn.get("calls", ())))
        for turn in json.loads(Path(sys.argv[1]).read_text())
    ]
    with ModelApi(turns) as api:
        sys.stdout.write(f"{api.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
