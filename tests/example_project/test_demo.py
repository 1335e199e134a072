"""The demo as people run it: a process of its own, twice, and serving."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import leftovers

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 90


def environment(var_dir: Path) -> dict[str, str]:
    ours = ("EXAMPLE_", "DJANGO_", "OPENAI_", "ANTHROPIC_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return inherited | {"EXAMPLE_VAR_DIR": str(var_dir), "PYTHONUNBUFFERED": "1"}


def demo(var_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "example_project.demo", *arguments],
        cwd=ROOT,
        env=environment(var_dir),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@contextmanager
def serving(var_dir: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "example_project.demo", "--serve", "--port", str(port)],
        cwd=ROOT,
        env=environment(var_dir),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read_until(process: subprocess.Popen[bytes], text: str) -> str:
    """Read from the pipe itself: a buffered reader may hold lines that ``select`` knows nothing of."""
    assert process.stdout is not None
    seen = ""
    while text not in seen:
        readable, _, _ = select.select([process.stdout], [], [], SECONDS)
        chunk = os.read(process.stdout.fileno(), 65_536) if readable else b""
        assert chunk, f"{text!r} did not come:\n{seen}"
        seen += chunk.decode()
    return seen


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_the_demo_works_twice_and_the_second_run_keeps_everything(tmp_path):
    first = demo(tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "files, workshop, weather loaded" in first.stdout
    password = re.search(r"login +demo, password (\S+) \(shown only this once\)", first.stdout)
    assert password
    for name in ("files__read_file", "workshop__measure", "weather__forecast"):
        assert name in first.stdout
    assert "served by a process of its own at http://127.0.0.1:" in first.stdout
    for stop in (
        "the tools, over REST",
        "a tool called over REST",
        "an agent that works through REST",
        "a view that has a stored agent run",
    ):
        assert f"ok      {stop}" in first.stdout
    for line in (
        "call    weather__forecast",
        "call    files__read_file",
        "ok      files__write_file: Wrote",
        "answer  You need oak boards, glue, sandpaper, grit 120. Tomorrow Oslo has",
    ):
        assert f"  {line}" in first.stdout
    assert "Tomorrow Oslo has" in (tmp_path / "files" / "notes" / "errand.txt").read_text()
    assert "FAILED" not in first.stdout

    kept = tmp_path / "files" / "notes" / "shopping.txt"
    kept.write_text("changed by somebody")
    second = demo(tmp_path)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "all there already" in second.stdout
    assert "password as before" in second.stdout
    assert kept.read_text() == "changed by somebody"


def test_a_step_that_does_not_work_makes_the_demo_fail(tmp_path):
    assert demo(tmp_path).returncode == 0
    disabled = (
        "import django; django.setup()\n"
        "from mcp_client_app.models import ServerConfig\n"
        "ServerConfig.objects.filter(name='workshop').update(enabled=False)"
    )
    variables = environment(tmp_path) | {"DJANGO_SETTINGS_MODULE": "example_project.settings"}
    subprocess.run([sys.executable, "-c", disabled], cwd=ROOT, env=variables, check=True)
    result = demo(tmp_path)
    assert result.returncode == 1
    assert "FAILED" in result.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_serving_shows_the_servers_until_it_is_stopped_and_leaves_no_process(tmp_path, free_port, number):
    with serving(tmp_path, free_port) as process:
        read_until(process, "Quit the server")
        with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/", timeout=SECONDS) as answer:
            page = answer.read().decode()
        assert "workshop" in page
        assert "ready" in page
        assert "mcp_client run demo" in page
        started = leftovers.descendants(process.pid)
        # Two stdio servers and the HTTP one, at least.
        assert len(started) >= 3
        process.send_signal(number)
        read_until(process, "Everything worked.")
        assert process.wait(SECONDS) == 0
    assert leftovers.survivors(started) == []


def test_a_taken_port_is_explained_before_anything_starts(tmp_path, free_port):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", free_port))
        holder.listen()
        result = demo(tmp_path, "--serve", "--port", str(free_port))
    assert result.returncode == 2
    assert "is taken" in result.stderr
    assert not (tmp_path / "db.sqlite3").exists()
