"""The bundled server `weather`: how its process starts, answers and ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mcp import Client

SCRIPT = Path(__file__).resolve().parents[2] / "example_project" / "servers" / "weather.py"
SECONDS = 30

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def url_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    word, url = process.stdout.readline().split()
    assert word == "READY"
    return url


async def test_it_answers_the_same_each_time(start):
    async with Client(url_of(start())) as client:
        first = await client.call_tool("forecast", {"city": "oslo", "days": 2})
        again = await client.call_tool("forecast", {"city": "Oslo", "days": 2})
        unknown = await client.call_tool("forecast", {"city": "Atlantis"})
    assert first.structured_content == again.structured_content
    assert [day["day"] for day in (first.structured_content or {})["days"]] == [0, 1]
    assert unknown.is_error


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["sigterm", "ctrl-c"])
def test_a_signal_ends_it_in_good_order(start, number):
    process = start()
    url_of(process)
    process.send_signal(number)
    assert process.wait(SECONDS) == 0


def test_it_ends_with_whoever_started_it(start):
    process = start("--until-stdin-closes")
    url_of(process)
    process.stdin.close()
    assert process.wait(SECONDS) == 0
    process.stdin = None


def test_a_taken_port_has_an_exit_status_of_its_own(start):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        process = start("--port", str(holder.getsockname()[1]))
        _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert "cannot be used" in errors
