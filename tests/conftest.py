"""Fixtures for all tests, and the watch that nothing is left behind when they end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import pytest

from tests import leftovers

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As for whatever a script starts with "&". Children would inherit it, and many tests end them by Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on asyncio alone: the loop that the app runs on."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """Fail the run if a thread of ours, a child process or a descriptor outlives the tests.

    Set up first and therefore torn down last, after the database and all other session fixtures.
    """
    before = leftovers.descriptors()
    yield
    found = [*leftovers.our_threads(), *leftovers.children(), *leftovers.new_descriptors(before)]
    if found:
        pytest.fail("Left behind by the tests:\n  " + "\n  ".join(found), pytrace=False)


@pytest.fixture
def python() -> str:
    """The interpreter that runs the tests, for starting real processes."""
    return sys.executable
