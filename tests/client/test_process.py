from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_client_app.client.process import ChildProcess, child_environment, spawn
from mcp_client_app.client.reaper import Reaper
from mcp_client_app.datatypes import ServerSpec, Transport
from mcp_client_app.exceptions import ConfigurationError, ServerUnavailableError
from tests import leftovers
from tests.client.peers import PATIENCE

pytestmark = pytest.mark.anyio


def a_spec(command: str = sys.executable, *args: str, **fields: Any) -> ServerSpec:
    return ServerSpec(name="srv", transport=Transport.STDIO, command=command, args=args, **fields)


@asynccontextmanager
async def running(code: str, **fields: Any) -> AsyncIterator[ChildProcess]:
    """Run a small Python program; it is ended in the end."""
    child = ChildProcess(spawn(a_spec(sys.executable, "-S", "-E", "-c", code, **fields)), None)
    try:
        async with asyncio.timeout(PATIENCE):
            yield child
    finally:
        await child.end(0.0)


# The environment ---------------------------------------------------------------------


async def test_only_harmless_variables_are_inherited():
    environ = {"PATH": "/bin", "HOME": "/h", "API_KEY": "secret", "LANG": "C", "TERM": "() { evil; }"}
    assert child_environment(a_spec(), environ) == {"PATH": "/bin", "HOME": "/h", "LANG": "C"}


async def test_named_variables_are_passed_and_the_servers_own_win():
    environ = {"PATH": "/bin", "API_KEY": "secret"}
    spec = a_spec(inherited_names=("API_KEY", "MISSING"), env={"PATH": "/own"})
    assert child_environment(spec, environ) == {"PATH": "/own", "API_KEY": "secret"}


async def test_nothing_is_inherited_if_that_is_asked_for():
    spec = a_spec(inherit_environment=False, inherited_names=("API_KEY",), env={"OWN": "1"})
    assert child_environment(spec, {"PATH": "/bin", "API_KEY": "secret"}) == {"OWN": "1"}


# Starting ----------------------------------------------------------------------------


async def test_a_command_is_found_on_the_path_that_the_server_gets(tmp_path: Path):
    tool = tmp_path / "the-tool"
    tool.write_text("#!/bin/sh\necho found\n")
    with pytest.raises(ConfigurationError, match="is not executable"):
        spawn(a_spec("the-tool", env={"PATH": str(tmp_path)}))
    tool.chmod(0o755)
    child = ChildProcess(spawn(a_spec("the-tool", env={"PATH": str(tmp_path)})), None)
    await child.exited
    assert child.stdout.read() == b"found\n"
    assert await child.end() == 0


async def test_a_relative_command_is_relative_to_the_working_directory(tmp_path: Path):
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\npwd\n")
    tool.chmod(0o755)
    child = ChildProcess(spawn(a_spec("bin/tool", cwd=str(tmp_path))), None)
    await child.exited
    assert os.path.samefile(child.stdout.read().decode().strip(), tmp_path)  # noqa: ASYNC240 - quick
    await child.end()


async def test_a_directory_is_not_executable(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="is not executable"):
        spawn(a_spec(str(tmp_path)))


async def test_too_many_arguments_are_named_as_such():
    with pytest.raises(ConfigurationError, match="too large") as caught:
        spawn(a_spec("true", "x" * 200_000))
    assert caught.value.field == "args"


@pytest.mark.parametrize("fields", [{"args": ("a\0b",)}, {"env": {"A": "a\0b"}}])
async def test_a_nul_character_is_named_as_such(fields: dict[str, Any]):
    spec = ServerSpec(name="srv", transport=Transport.STDIO, command="true", **fields)
    with pytest.raises(ConfigurationError, match="NUL character"):
        spawn(spec)


async def test_a_working_directory_that_is_a_file_is_named_as_such(tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigurationError, match="is no directory") as caught:
        spawn(a_spec("true", cwd=str(file)))
    assert caught.value.field == "cwd"


async def test_a_missing_interpreter_is_not_taken_for_a_missing_command(tmp_path: Path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(ConfigurationError, match="interpreter that its #! line names was not found"):
        spawn(a_spec(str(script)))


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.EPERM, ConfigurationError), (errno.EAGAIN, ServerUnavailableError)]
)
async def test_an_unexpected_refusal_of_the_system_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
):
    def no_more(*args: Any, **options: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(subprocess, "Popen", no_more)
    with pytest.raises(kind, match=f"could not be started.*: {os.strerror(number)}\\."):
        spawn(a_spec("true"))


# Ending ------------------------------------------------------------------------------


async def test_an_exit_is_noticed_and_its_code_is_known_before_the_end():
    async with running("import sys; sys.exit(7)") as child:
        await child.exited
        assert child.exit_code == 7
        assert await child.end() == 7
        assert await child.end() == 7  # again does no harm


async def test_without_a_pidfd_the_exit_is_noticed_by_looking(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "pidfd_open")
    async with running("import sys; sys.stdin.read(); sys.exit(7)") as child:
        assert not child.exited.done()
        child.stdin.close()
        await child.exited
        assert child.exit_code == 7


async def test_a_polite_child_ends_with_its_input():
    async with running("import sys; sys.stdin.read(); sys.exit(3)") as child:
        assert await child.end(PATIENCE) == 3


async def test_a_child_that_ignores_its_input_is_asked_and_then_killed():
    loop = "import time\nwhile True: time.sleep(1)"
    async with running(loop) as child:
        assert await child.end(0.2) == -signal.SIGTERM
    ignoring = f"import signal, os; signal.signal(15, signal.SIG_IGN); os.write(1, b'.')\n{loop}"
    async with running(ignoring) as child:
        await readable(child.stdout.fileno())
        assert await child.end(0.2) == -signal.SIGKILL


async def test_the_whole_group_ends_although_the_leader_left_politely():
    code = (
        "import os, sys, signal\n"
        "pid = os.fork()\n"
        "if pid == 0: signal.alarm(60); signal.pause()\n"
        "os.write(1, b'%d' % pid); sys.stdin.read()"
    )
    async with running(code) as child:
        await readable(child.stdout.fileno())
        grandchild = int(child.stdout.read(100) or b"0")
        assert await child.end(PATIENCE) == 0
    assert leftovers.survivors({grandchild}) == []


async def test_cancelling_the_end_still_kills():
    async with running("import signal; signal.signal(15, signal.SIG_IGN); signal.pause()") as child:
        ending = asyncio.create_task(child.end(PATIENCE))
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        child.kill_now()
    assert leftovers.survivors({child.pid}) == []


async def test_killing_at_once_waits_for_nothing_but_the_kernel():
    async with running("import signal; signal.pause()") as child:
        child.kill_now()
        child.kill_now()
        assert child.exit_code == -signal.SIGKILL
        assert child.stdin.closed
        await child.exited
    assert leftovers.survivors({child.pid}) == []


async def test_whoever_watches_the_pipes_is_told_before_they_are_closed():
    async with running("import sys; sys.stdin.read()") as child:
        seen: list[bool] = []
        child.before_close = lambda: seen.append(child.stdout.closed)
        await child.end(PATIENCE)
        assert seen == [False]
        assert child.stdout.closed


async def test_forgetting_closes_our_ends_and_touches_no_process():
    async with running("import sys; sys.stdin.read(); sys.exit(5)") as child:
        popen = child._popen
        child._unwatch()
        child.forget()
        # Closed as objects: these would close their numbers again otherwise, whosever they were by then.
        assert child.stdin.closed
        assert child.stdout.closed
        assert child.stderr.closed
        popen.returncode = None
        assert popen.wait(PATIENCE) == 5  # it saw the end of its input, and no signal


async def readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    there = loop.create_future()
    loop.add_reader(descriptor, lambda: None if there.done() else there.set_result(None))
    try:
        await there
    finally:
        loop.remove_reader(descriptor)


# The reaper --------------------------------------------------------------------------


def a_group() -> subprocess.Popen[bytes]:
    code = "import signal; signal.signal(15, signal.SIG_IGN); signal.alarm(60); signal.pause()"
    return subprocess.Popen([sys.executable, "-S", "-E", "-c", code], start_new_session=True)


async def test_the_reaper_ends_the_groups_of_an_owner_that_died():
    reaper = Reaper()
    reaper.start()
    told, discarded = a_group(), a_group()
    try:
        reaper.add(told.pid)
        reaper.add(discarded.pid)
        reaper.discard(discarded.pid)
        reaper.start()  # it runs already
        reaper.close()  # as the kernel does when the owner dies
        assert told.wait(PATIENCE) in (-signal.SIGTERM, -signal.SIGKILL)
        assert discarded.poll() is None
    finally:
        discarded.kill()
        discarded.wait()


async def test_a_closed_reaper_does_not_start_again():
    reaper = Reaper()
    reaper.start()
    reaper.close()
    reaper.close()
    reaper.start()
    reaper.add(1)
    assert reaper._process is None


async def test_a_reaper_that_died_is_started_again():
    reaper = Reaper()
    reaper.start()
    first = reaper._process
    assert first is not None
    first.kill()
    first.wait()
    reaper.add(999_999_999)  # nobody listens; no matter
    reaper.discard(999_999_999)
    assert first.stdin is not None
    first.stdin.close()
    reaper.start()
    assert reaper._process is not first
    reaper.close()


async def test_servers_work_without_a_reaper_that_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    reaper = Reaper()
    reaper.start()
    reaper.add(1)
    reaper.close()
    assert "could not be started" in caplog.text
