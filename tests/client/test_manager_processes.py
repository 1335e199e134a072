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


@pytest.mark.parametrize(
    ("end", "options"),
    [("pass", ()), ("raise SystemExit(0)", ("--scenario=ignore_eof_and_term",))],
    ids=["polite", "stubborn"],
)
def test_a_program_that_never_closes_leaves_no_process(run: Run, end: str, options: tuple[str, ...]):
    """D10: whatever the program did to its threads, and whatever the server ignores."""
    script = run(f"call('hi'); {end}", *options)
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


def test_a_program_killed_hard_leaves_nothing_of_the_group(run: Run, tmp_path: Path):
    # The peer ignores the end of its input, and its child never reads it: only the reaper can end them.
    child = tmp_path / "child"
    script = run(
        "call('hi'); sys.stdin.read()", "--scenario=ignore_eof_and_term", f"--scenario=grandchild={child}"
    )
    assert script.read_line() == "hi"
    group = {*script.pids, int(child.read_text())}
    reaper = leftovers.descendants(script.process.pid) - group
    script.process.kill()
    script.process.wait(PATIENCE)
    assert len(reaper) == 1
    assert leftovers.survivors(group | reaper) == []


# Fork --------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_forked_children_use_processes_of_their_own_and_the_parent_goes_on(run: Run, end: str):
    """D01, D02."""
    script = run(
        f"""
        call('parent')
        parents_pid = manager.status('srv').pid

        def wait_for(child):
            assert os.waitpid(child, 0)[1] == 0
            call('parent again')
            status = manager.status('srv')
            assert (status.pid, status.connects) == (parents_pid, 1)

        unused = os.fork()
        if unused == 0:
            {end}
        wait_for(unused)
        using = os.fork()
        if using == 0:
            call('child')
            assert manager.status('srv').pid != parents_pid
            {end}
        wait_for(using)
        closing = os.fork()
        if closing == 0:
            call('another')
            manager.close()
            {end}
        wait_for(closing)
        """
    )
    assert script.finish().split("\n") == [
        "parent",
        "parent again",
        "child",
        "parent again",
        "another",
        "parent again",
        "",
    ]
    assert len(script.pids) == 3
    assert leftovers.survivors(set(script.pids)) == []


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


# Without resources -------------------------------------------------------------------


def test_a_process_without_descriptors_fails_to_start_servers_until_it_has_some(run: Run):
    # Not the server's configuration is wrong: the next attempt may succeed.
    script = run(
        """
        import resource
        call('before')
        manager.disconnect('srv')
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = max(int(number) for number in os.listdir('/proc/self/fd'))
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + 1, hard))
        try:
            manager.connect('srv')
        except Exception as error:
            print(error.code, manager.status('srv').state, flush=True)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        manager.connect('srv')
        call('after')
        """
    )
    assert script.finish().split("\n") == ["before", "server_unavailable backing_off", "after", ""]
    assert leftovers.survivors(set(script.pids)) == []
