from __future__ import annotations

import random
import subprocess

import pytest

from mcp_client_app.client.backoff import Backoff


def delays(count: int, seed: int = 1) -> list[float]:
    backoff = Backoff(chance=random.Random(seed).random)
    return [backoff.failed(0.0) for _ in range(count)]


def test_delays_double_and_then_the_breaker_allows_one_probe_a_minute():
    for expected, delay in zip([1, 2, 4, 8, 60, 60, 60], delays(7), strict=True):
        assert 0.9 * expected <= delay <= 1.1 * expected


FORKING = """
import os
from mcp_client_app.client.backoff import Backoff
backoff = Backoff()
for _ in range(2):
    if not os.fork():
        print(backoff.failed(0.0), flush=True)
        os._exit(0)
    os.wait()
"""


def test_delays_differ_between_processes_that_were_forked_from_one(python: str):
    found = subprocess.run([python, "-c", FORKING], capture_output=True, text=True, check=True)
    first, second = map(float, found.stdout.split())
    assert first != second


def test_what_is_left_of_a_delay_shrinks_with_the_clock():
    backoff = Backoff()
    delay = backoff.failed(100.0)
    assert backoff.wait(100.0) == pytest.approx(delay)
    assert 0 < backoff.wait(100.0 + delay / 2) < delay
    assert backoff.wait(100.0 + delay) == 0.0
    assert backoff.wait(1e9) == 0.0


def test_a_server_may_ask_for_a_longer_delay_but_not_for_a_shorter_one():
    assert Backoff().failed(0.0, at_least=30.0) == 30.0
    assert Backoff().failed(0.0, at_least=0.001) >= 0.9


def test_a_reset_forgets_everything():
    backoff = Backoff()
    for _ in range(9):
        backoff.failed(0.0)
    backoff.reset()
    assert (backoff.failures, backoff.wait(0.0)) == (0, 0.0)
    assert backoff.failed(0.0) <= 1.1
