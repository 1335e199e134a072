from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from typing import Any

import pytest

from mcp_client_app.client.compat import (
    KNOWN_VERSIONS,
    dispatcher_signature_problem,
    is_known_version,
    signature_problem,
)


class AsKnown:
    async def run(
        self, on_request: Any, on_notify: Any, on_notify_intercept: Any = None, *, task_status: Any = None
    ) -> None: ...

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> Any: ...

    async def notify(self, method: str, params: Any, opts: Any = None) -> None: ...


class RunTakesMore(AsKnown):
    async def run(self, on_request: Any, on_notify: Any, lifecycle: Any) -> None: ...  # type: ignore[override]


class InterceptByKeyword(AsKnown):
    async def run(  # type: ignore[override]
        self, on_request: Any, on_notify: Any, *, on_notify_intercept: Any = None, task_status: Any = None
    ) -> None: ...


class WithoutNotify:
    run = AsKnown.run
    send_raw_request = AsKnown.send_raw_request


def install(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Make the metadata of the SDK name another version."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)


def test_the_installed_sdk_has_the_port_that_own_is_built_on():
    assert dispatcher_signature_problem() is None


def test_the_installed_sdk_is_a_known_one():
    assert is_known_version()


@pytest.mark.parametrize(
    ("version", "known"),
    [("2.3", True), ("2.3.7", True), ("2.30.0", False), ("2.4.0", False), ("3.2.3", False)],
)
def test_a_minor_release_is_known_as_a_whole(monkeypatch: pytest.MonkeyPatch, version: str, known: bool):
    assert KNOWN_VERSIONS == ("2.3",)
    install(monkeypatch, version)

    assert is_known_version() is known


def test_an_sdk_without_metadata_is_not_known(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)

    assert not is_known_version()


def test_asking_for_the_version_loads_no_sdk():
    code = (
        "import sys\n"
        "from mcp_client_app.client.compat import is_known_version\n"
        "assert is_known_version()\n"
        "assert not {'mcp', 'mcp_types', 'anyio'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_same_port_is_no_problem():
    assert signature_problem(AsKnown) is None


@pytest.mark.parametrize(
    ("dispatcher", "words"),
    [
        (RunTakesMore, "Dispatcher.run takes (on_request, on_notify, lifecycle) instead of"),
        (InterceptByKeyword, "*on_notify_intercept"),
        (WithoutNotify, "no method 'notify'"),
    ],
)
def test_another_port_is_told_apart(dispatcher: type, words: str):
    assert words in str(signature_problem(dispatcher))


def test_an_sdk_without_the_port_is_a_problem(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr("mcp.shared.dispatcher.Dispatcher")

    assert "no mcp.shared.dispatcher.Dispatcher" in str(dispatcher_signature_problem())
