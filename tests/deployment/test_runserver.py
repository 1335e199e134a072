"""Django's own server with its autoreloader, which runs the site in a child of a child."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import leftovers
from tests.deployment.sites import Ground, Site, ending, environment
from tests.deployment.watching import eventually, parent, text
from tests.stored import ROOT

SETTINGS = "from example_project.settings import *  # noqa: F403\n"


@contextlib.contextmanager
def runserver(ground: Ground, directory: Path) -> Iterator[Site]:
    """Run ``manage.py runserver`` with settings in ``directory``, whose change makes it reload."""
    shutil.copytree(ground.directory, directory, dirs_exist_ok=True)
    (directory / "reloaded_settings.py").write_text(SETTINGS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (directory / "log.txt").open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "manage.py", "runserver", f"127.0.0.1:{port}"],
            cwd=ROOT,
            env=environment(directory)
            | {"DJANGO_SETTINGS_MODULE": "reloaded_settings", "PYTHONPATH": f"{directory}:{ROOT}"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        with ending(server):
            site = Site(port, ground.token, server, 1, directory)
            eventually(lambda: answers(port))
            yield site


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def change_a_file(site: Site) -> None:
    """Make the autoreloader see a change: it compares times of files."""
    path = site.directory / "reloaded_settings.py"
    later = path.stat().st_mtime + 10
    path.write_text(SETTINGS + "RELOADED = True\n")
    os.utime(path, (later, later))


def running_peers(site: Site) -> set[int]:
    """Return the processes of servers that the site has started."""
    return {
        pid
        for pid in leftovers.descendants(site.master.pid)
        if b"--lifetime" in Path(f"/proc/{pid}/cmdline").read_bytes()
    }


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_reload_doubles_no_server_and_the_end_leaves_none(ground: Ground, tmp_path: Path, end):
    with runserver(ground, tmp_path) as site:
        site.add("peer")
        assert running_peers(site) == set()
        first = text(site.call("peer__pid"))
        served_by = parent(first)
        # The reloader's own process, which only starts the other one, has connected nothing.
        assert served_by != site.master.pid
        assert running_peers(site) == {int(first)}

        change_a_file(site)

        assert leftovers.survivors({int(first), served_by}) == []
        eventually(lambda: answers(site.port))
        second = text(site.call("peer__pid"))
        assert second != first
        assert running_peers(site) == {int(second)}

        started = leftovers.descendants(site.master.pid)
        # What Ctrl-C does reaches all processes of the terminal; a process manager tells the first only.
        os.killpg(site.master.pid, end) if end is signal.SIGINT else site.master.send_signal(end)
        site.master.wait(60)
        assert leftovers.survivors(started) == []
