"""Forks, exits and crashes of the process that uses the manager, in programs of their own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import leftovers
from tests.client import scripts
from tests.client.peers import PATIENCE
from tests.client.scripts import Script

Run = Callable[..., Script]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Start a program in a directory of its own; killed in the end if it still runs."""
    started: list[Script] = []

    def start(body: str, *peer_options: str, **options: str) -> Script:
        started.append(scripts.start(tmp_path, body, *peer_options, **options))
        return started[-1]

    yield start
    for script in started:
        script.process.kill()
        script.process.communicate()


# Exit --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--scenario=ignore_eof_and_term",)], ids=["polite", "stubborn"])
def test_a_program_that_never_closes_leaves_no_process(run: Run, options: tuple[str, ...]):
    script = run("call('hi')", *options)
    assert script.finish() == "hi\n"
    assert leftovers.survivors(set(script.pids)) == []


def test_a_program_that_ends_by_an_exception_leaves_no_process(run: Run):
    script = run("call('hi'); raise SystemExit(0)")
    assert script.finish() == "hi\n"
    assert leftovers.survivors(set(script.pids)) == []


def test_a_program_that_ends_during_a_call_leaves_no_process_and_does_not_hang(run: Run):
    script = run(
        """
        call('hi')
        calling = threading.Thread(target=lambda: manager.call_tool('srv__hang'), daemon=True)
        threading.excepthook = lambda args: None
        calling.start()
        while not manager.status('srv').calls_in_flight:
            manager.list_tools('srv')
        """
    )
    assert script.finish() == "hi\n"
    assert leftovers.survivors(set(script.pids)) == []


def test_a_program_killed_hard_leaves_no_process(run: Run):
    # The peer ignores the end of its input: only the reaper can end it.
    script = run("call('hi'); sys.stdin.read()", "--scenario=ignore_eof_and_term")
    assert script.read_line() == "hi"
    helpers = leftovers.descendants(script.process.pid) - set(script.pids)
    script.process.kill()
    script.process.wait(PATIENCE)
    assert leftovers.survivors(set(script.pids)) == []
    assert len(helpers) == 1
    assert leftovers.survivors(helpers) == []


def test_a_program_killed_hard_leaves_nothing_of_the_group(run: Run, tmp_path: Path):
    child = tmp_path / "child"
    script = run("call('hi'); sys.stdin.read()", f"--scenario=grandchild={child}")
    assert script.read_line() == "hi"
    grandchild = int(child.read_text())
    script.process.kill()
    script.process.wait(PATIENCE)
    assert leftovers.survivors({grandchild}) == []


def test_the_reaper_can_be_left_out(run: Run):
    script = run("call('hi'); sys.stdin.read()", manager_options="reaper=False")
    assert script.read_line() == "hi"
    assert leftovers.descendants(script.process.pid) == set(script.pids)
    script.process.communicate("", timeout=PATIENCE)
    assert leftovers.survivors(set(script.pids)) == []


def test_after_an_orderly_close_the_reaper_leaves_too(run: Run):
    script = run("call('hi'); manager.close(); print('closed', flush=True); sys.stdin.read()")
    assert [script.read_line(), script.read_line()] == ["hi", "closed"]
    assert leftovers.descendants(script.process.pid) == set()
    script.finish()


# Fork --------------------------------------------------------------------------------

FORKED = """
call('parent')
parents_pid = manager.status('srv').pid
child = os.fork()
if child == 0:
    {child}
    {end}
_, status = os.waitpid(child, 0)
assert status == 0, status
call('parent again')
assert manager.status('srv').pid == parents_pid
assert manager.status('srv').connects == 1
"""


@pytest.mark.parametrize("end", ["manager.close(); os._exit(0)", "os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_uses_a_process_of_its_own_and_the_parent_goes_on(run: Run, end: str):
    body = FORKED.format(child="call('child'); assert manager.status('srv').pid != parents_pid", end=end)
    script = run(body)
    assert script.finish() == "parent\nchild\nparent again\n"
    assert len(script.pids) == 2
    assert leftovers.survivors(set(script.pids)) == []


def test_a_forked_child_that_never_uses_the_manager_harms_nobody(run: Run):
    script = run(FORKED.format(child="pass", end="sys.exit(0)"))
    assert script.finish() == "parent\nparent again\n"
    assert len(script.pids) == 1


def test_while_a_child_lives_the_parents_servers_still_end_with_their_input(run: Run):
    # The child holds no copy of the pipe: closing it is what ends the server, at once.
    script = run(
        """
        call('parent')
        server = manager.status('srv').pid
        ready, go = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            os.write(ready[1], b'.')
            os.read(go[0], 1)
            os._exit(0)
        os.read(ready[0], 1)
        manager.disconnect('srv')
        print(manager.status('srv').exit_code)
        os.write(go[1], b'.')
        os.waitpid(child, 0)
        """
    )
    assert script.finish() == "parent\n0\n"


def test_the_reaper_notices_the_parents_death_although_a_child_lives(run: Run):
    script = run(
        """
        call('parent')
        child = os.fork()
        if child == 0:
            os.setsid()
            signal.pause()
        print(child, flush=True)
        sys.stdin.read()
        """,
        "--scenario=ignore_eof_and_term",
    )
    assert script.read_line() == "parent"
    child = int(script.read_line())
    script.process.kill()
    script.process.wait(PATIENCE)
    try:
        assert leftovers.survivors(set(script.pids)) == []
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_fork_while_other_threads_call_harms_neither_side(run: Run):
    script = run(
        """
        threads = [threading.Thread(target=call, args=(f'{number}',)) for number in range(8)]
        call('warm')
        for thread in threads:
            thread.start()
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            call('child')
            os._exit(0)
        for thread in threads:
            thread.join()
        _, status = os.waitpid(child, 0)
        assert status == 0
        """
    )
    assert sorted(script.finish().split()) == [*"01234567", "warm"]
    assert leftovers.survivors(set(script.pids)) == []


# Surroundings ------------------------------------------------------------------------


def test_standard_streams_without_descriptors_are_no_obstacle(run: Run):
    script = run(
        """
        import io
        out = sys.stdout
        sys.stdin, sys.stderr = io.StringIO(), io.StringIO()
        call('hi')
        manager.close()
        """
    )
    assert script.finish() == "hi\n"


def test_a_host_that_reaps_all_children_is_no_obstacle(run: Run):
    script = run(
        """
        def reap(*_):
            while True:
                try:
                    if os.waitpid(-1, os.WNOHANG)[0] == 0:
                        return
                except ChildProcessError:
                    return
        signal.signal(signal.SIGCHLD, reap)
        call('one')
        os.kill(manager.status('srv').pid, signal.SIGKILL)
        while manager.status('srv').is_ready:
            pass
        call('two')
        manager.close()
        """
    )
    assert script.finish() == "one\ntwo\n"
    assert leftovers.survivors(set(script.pids)) == []


def test_uvloop_does_the_same(run: Run):
    pytest.importorskip("uvloop")
    script = run(
        """
        assert manager.call_tool('srv__big', {'bytes': 3_000_000}).text == 'x' * 3_000_000
        call('hi')
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            call('child')
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        call('still')
        """,
        manager_options="use_uvloop=True",
    )
    assert script.finish() == "hi\nstill\n"
    assert leftovers.survivors(set(script.pids)) == []


def test_importing_the_core_starts_nothing(run: Run):
    script = run("print(threading.active_count())")
    assert script.finish() == "1\n"
