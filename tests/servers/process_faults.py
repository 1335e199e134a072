"""Scenarios of the process and of its streams: noise, silence, death, standard error, frames without end."""

from __future__ import annotations

import os
import signal
import sys

from tests.servers import payloads
from tests.servers.scenarios import AT_START, NO_ANSWER, ON_MESSAGE, ON_RESULT, scenario
from tests.servers.wire import STDERR, STDOUT

TYPE_CHECKING = False  # as in ``typing``, which costs start-up time
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from tests.servers.faulty_stdio import Message, Peer


def leave(code: str) -> NoReturn:
    """End the process at once, as a crash does."""
    os._exit(int(code))


def linger(peer: Peer) -> None:
    """Stay although the input has ended, if the scenario wants it."""
    while "ignore_eof_and_term" in peer.active:
        signal.pause()


# At the start ------------------------------------------------------------------------


@scenario(AT_START, "four lines of noise on standard output: text, a blank, an emoji, a brace")
def banner(peer: Peer, value: str) -> None:
    peer.wire.write("Starting faulty peer 1.0\n\n🚀 ready\n{not json\n".encode())


@scenario(AT_START, "a line on standard output that is no UTF-8")
def non_utf8(peer: Peer, value: str) -> None:
    peer.wire.write(b"\xff\xfe\n")


@scenario(AT_START, "one line on standard error, then exit with this status", "1")
def exit_at_start(peer: Peer, value: str) -> None:
    peer.log("faulty peer: the variable API_KEY is not set")
    leave(value)


@scenario(AT_START, "so many lines on standard error, then exit with status 1", "2000")
def stderr_flood(peer: Peer, value: str) -> None:
    for number in range(1, int(value) + 1):
        peer.log(f"flood {number}")
    leave("1")


@scenario(AT_START, "waits for the file of this name before it reads anything", "slow-start")
def slow_start(peer: Peer, value: str) -> None:
    def begin() -> None:
        peer.wire.reading = True

    peer.wire.reading = False
    peer.wire.once_exists(value, begin)


@scenario(AT_START, "ignores SIGTERM and the end of its input")
def ignore_eof_and_term(peer: Peer, value: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@scenario(
    AT_START, "starts a child in its process group that holds the pipes; writes its pid to the file", "child"
)
def grandchild(peer: Peer, value: str) -> None:
    code = "import signal, time; signal.alarm(120); time.sleep(120)"
    pid = os.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-S", "-E", "-c", code])
    # Renamed into place: whoever sees the file sees the number.
    with open(f"{value}.part", "w") as file:
        file.write(str(pid))
    os.replace(f"{value}.part", value)


@scenario(AT_START, "exits with this status on SIGUSR1 or on a notification `notifications/die`", "5")
def die_on_idle(peer: Peer, value: str) -> None:
    def die(*_: object) -> None:
        peer.log("faulty peer: dying while idle")
        leave(value)

    signal.signal(signal.SIGUSR1, die)


@scenario(AT_START, "tells the variable TOKEN on stderr, in noise, logs and errors; `crash`: and dies")
def telltale(peer: Peer, value: str) -> None:
    token = os.environ["TOKEN"]
    peer.log(f"connecting with {token}")
    if value == "crash":
        leave("1")
    peer.wire.write(f"no JSON, but {token}\n".encode())


@scenario(ON_MESSAGE, of="telltale")
def _tell_on_call(peer: Peer, value: str, message: Message) -> bool:
    if message.get("method") != "tools/call":
        return False
    token = os.environ["TOKEN"]
    peer.notify("notifications/message", {"level": "error", "data": {"text": f"refused: {token}"}})
    peer.reply(message, {"error": {"code": -32000, "message": f"{token} is not valid", "data": token}})
    return True


# On a message that came in -----------------------------------------------------------


@scenario(ON_MESSAGE, of="die_on_idle")
def _die_on_notification(peer: Peer, value: str, message: Message) -> bool:
    if message.get("method") == "notifications/die":
        peer.log("faulty peer: told to die")
        leave(value)
    return False


@scenario(ON_MESSAGE, "never answers `initialize` nor `server/discover`")
def mute(peer: Peer, value: str, message: Message) -> bool:
    return message.get("method") in ("initialize", "server/discover")


@scenario(ON_MESSAGE, "never answers `server/discover`, but `initialize`")
def mute_discover(peer: Peer, value: str, message: Message) -> bool:
    return message.get("method") == "server/discover"


@scenario(ON_MESSAGE, "never answers `tools/list`")
def mute_list(peer: Peer, value: str, message: Message) -> bool:
    return message.get("method") == "tools/list"


@scenario(ON_MESSAGE, "knows no `subscriptions/listen`, although it announces changes")
def no_listen(peer: Peer, value: str, message: Message) -> bool:
    if message.get("method") != "subscriptions/listen":
        return False
    peer.reply(message, {"error": {"code": payloads.METHOD_NOT_FOUND, "message": "Method not found"}})
    return True


@scenario(ON_MESSAGE, "exits with status 8 on this method; with a file after an `@` only once, and makes it")
def die_on_method(peer: Peer, value: str, message: Message) -> bool:
    method, _, path = value.partition("@")
    if message.get("method") != method or os.path.exists(path):
        return False
    if path:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    leave("8")


@scenario(ON_MESSAGE, "exits with status 1 unless the first message is `initialize`")
def exit_unless_initialize_first(peer: Peer, value: str, message: Message) -> bool:
    if message.get("method") != "initialize":
        peer.log(f"faulty peer: {message.get('method')} before initialize")
        leave("1")
    del peer.active["exit_unless_initialize_first"]
    return False


@scenario(ON_MESSAGE, "stops reading its input after so many messages (these are answered)", "3")
def stop_reading(peer: Peer, value: str, message: Message) -> bool:
    left = int(value) - 1
    peer.active["stop_reading"] = str(left)
    if left <= 0:
        peer.wire.reading = False
    return False


PARTS = [b"first half, ", b"second half\n\n   \nnext caf\xc3", b"\xa9 line\r\n", b"unfinished"]


@scenario(
    ON_MESSAGE, "standard error in pieces: a part of a line with each message, blanks, no final newline"
)
def stderr_partial(peer: Peer, value: str, message: Message) -> bool:
    sent = int(value or 0)
    for part in PARTS[sent : sent + 1]:
        peer.wire.write(part, STDERR)
    peer.active["stderr_partial"] = str(sent + 1)
    return False


@scenario(ON_MESSAGE, "goes on with a call that was cancelled, and answers it in its time")
def ignore_cancel(peer: Peer, value: str, message: Message) -> bool:
    return message.get("method") == "notifications/cancelled"


@scenario(ON_MESSAGE, "answers a call as soon as it was cancelled")
def late_reply(peer: Peer, value: str, message: Message) -> bool:
    if message.get("method") != "notifications/cancelled":
        return False
    request = peer.unanswered.get(message["params"]["requestId"])
    if request is not None:
        peer.finish(request, payloads.text_result("too late"))
    return True


# On a result ------------------------------------------------------------------------


@scenario(ON_RESULT, "exits with this status on a call, after the tool has had its effect", "7")
def die_on_call(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if message["method"] == "tools/call":
        peer.log("faulty peer: dying in mid-call")
        leave(value)
    return result


@scenario(ON_RESULT, "closes its output on a call, but lives on")
def close_output_on_call(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if message["method"] != "tools/call":
        return result
    os.close(STDOUT)
    return NO_ANSWER


@scenario(ON_RESULT, "answers a call with so many bytes that have no newline", "80000000")
def never_newline(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if message["method"] != "tools/call":
        return result
    left, chunk = int(value), b"x" * 65536
    while left > 0:
        peer.wire.write(chunk[:left])
        left -= len(chunk)
    return NO_ANSWER


@scenario(ON_RESULT, "every call returns a text of so many bytes, in one line", "50000000")
def huge_line(peer: Peer, value: str, message: Message, result: Any) -> Any:
    return payloads.text_result("x" * int(value)) if message["method"] == "tools/call" else result
