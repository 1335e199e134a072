"""The shell commands of README and docs are run, as a reader would, in a project made for it.

What cannot be run here is run elsewhere or checked; ``ELSEWHERE`` says where, or why not at all. A
command of a kind that is in neither list fails.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_client_app import services
from mcp_client_app.api.errors import STATUSES
from mcp_client_app.testing import fake_server, serve_asgi
from tests.deployment.sites import KINDS
from tests.project.test_docs import FENCE, PAGES, ROOT, snippets

CELERY = "".join(
    (ROOT / "tests" / "deployment" / f"{name}.py").read_text(encoding="utf-8")
    for name in ("test_celery", "test_runs_on_celery")
)
POOLS = re.findall(r'"(prefork|threads)": \d', CELERY)
SECONDS = 120
"""Limit of one command: never reached unless something hangs."""

EXAMPLE = ROOT / "example_project" / "README.md"
RUN = re.compile(r"(\.venv/bin/)?python manage\.py ")
ELSEWHERE = {
    r"curl ": "README.md by tests/deployment, docs/rest-api.md by tests/api/test_docs.py",
    r"export (API|AUTH)=": "with the curl commands of docs/rest-api.md",
    r"pip install ": "compared with pyproject.toml, below; scripts/check_wheel.py installs the wheel",
    r"(gunicorn|uvicorn|celery) ": "by tests/deployment; with the same flags, as a test below compares",
    r"make bench\b": "takes up to an hour; tests of the harness run parts of it",
    r"make (\w+)$": "targets exist (test_docs.py); .ci/run runs those that are not for people to watch",
}

# Stands in for the published server that the pages start: it is not to be had without a network.
NPX = f"""#!{sys.executable}
import sys
from pathlib import Path
from mcp.server.mcpserver import MCPServer
assert sys.argv[1:3] == ["-y", "@modelcontextprotocol/server-filesystem"], sys.argv
root = Path(sys.argv[3])
assert root.is_dir(), root
server = MCPServer("filesystem")
@server.tool()
def read_file(path: str) -> str:
    return (root / path).read_text()
server.run("stdio")
"""


def commands(text: str) -> list[str]:
    """Split a snippet into commands, without comments."""
    found, begun = [], ""
    for line in text.replace("\\\n", " ").splitlines():
        begun = f"{begun} {line}"
        try:
            words = shlex.split(begun, comments=True, posix=False)
        except ValueError:
            continue  # a quotation goes on in the next line
        found.append(" ".join(words))
        begun = ""
    return [command for command in found if command]


SHELL = [(snippet.page, command) for snippet in snippets("sh") for command in commands(snippet.text)]
RUNNABLE = sorted({page for page, command in SHELL if RUN.match(command)})


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_every_command_is_run_or_has_a_reason_why_not():
    left = [
        f"{name(page)}: {command}"
        for page, command in SHELL
        if not RUN.match(command) and not any(re.match(kind, command) for kind in ELSEWHERE)
    ]
    assert left == []
    unused = [kind for kind in ELSEWHERE if not any(re.match(kind, command) for _, command in SHELL)]
    assert unused == []


def test_snippets_are_of_kinds_that_are_run():
    languages = {match[2] for page in PAGES for match in FENCE.finditer(page.read_text(encoding="utf-8"))}
    assert languages <= {"sh", "python", "json"}


def test_what_is_installed_is_what_is_published():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        re.match(r"pip install '?([\w-]+)(?:\[([\w,]+)\])?'?$", command)
        for _, command in SHELL
        if "pip " in command
    ]
    assert wanted
    for match in wanted:
        assert match is not None
        assert match[1] == project["name"]
        assert set((match[2] or "").split(",")) - {""} <= set(project["optional-dependencies"])


def test_servers_and_workers_are_started_with_the_flags_that_are_tested():
    tested = {
        "gunicorn": KINDS["gunicorn"].command,
        "uvicorn": KINDS["uvicorn-2"].command,
        "celery": (
            *("--app", "--queues=mcp_client"),  # tests have queues of their own
            *re.findall(r"--[a-z-]+=\w+", CELERY),
            *(f"--pool={pool}" for pool in POOLS),
        ),
    }
    for program, flags in tested.items():
        started = [command for _, command in SHELL if command.startswith(f"{program} ")]
        assert started
        for command in started:
            assert {word for word in command.split() if word.startswith("--")} <= set(flags)


class Reader:
    """Does what the pages say, on this machine."""

    def __init__(self, home: Path, tracker: str) -> None:
        self.files = home / "files"
        self.project = home / "project"
        self._tracker = tracker
        programs = home / "bin"
        for directory in (self.files, self.project, programs):
            directory.mkdir()
        (self.files / "notes.txt").write_text("oak and ash")
        (programs / "npx").write_text(NPX)
        (programs / "npx").chmod(0o755)
        self.environment = {
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "EXAMPLE_VAR_DIR": str(home),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONWARNINGS": "error",
            "TRACKER_TOKEN": "x",
        } | {key: value for key, value in os.environ.items() if key.startswith("COVERAGE")}
        [document] = [each.text for each in snippets("json") if "mcpServers" in each.text]
        (home / "mcp.json").write_text(self._here(document))

    def make_project(self) -> bytes:
        """Start a project and install the app as the quickstart says; returns its database."""
        self.run("python -m django startproject site_of_mine .", self.project)
        [apps] = [
            each.text
            for each in snippets("python")
            if each.page.name == "quickstart.md" and "INSTALLED" in each.text
        ]
        settings = self.project / "site_of_mine" / "settings.py"
        added = apps.replace("INSTALLED_APPS = [", "INSTALLED_APPS += [")
        settings.write_text(f"{settings.read_text()}\n{added}")
        self.run("python manage.py migrate", self.project)
        return (self.project / "db.sqlite3").read_bytes()

    def follow(self, page: Path, directory: Path) -> None:
        """Run the commands of a page in order, and look at what they print."""
        for command in [command for where, command in SHELL if where == page and RUN.match(command)]:
            printed = self.run(command, directory)
            if " call " in command:
                assert "oak and ash" in printed
            if "--json" in command:
                assert json.loads(printed)
            if "--dry-run" in command:
                assert "Nothing was changed" in printed

    def run(self, command: str, directory: Path) -> str:
        """Run one command; returns what it printed."""
        result = subprocess.run(
            ["bash", "-euc", self._here(command)],
            cwd=directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    def _here(self, text: str) -> str:
        """Return a text of the pages with the addresses of this machine."""
        places = {
            "https://tracker.example.com/mcp": self._tracker,
            "/srv/files": str(self.files),
            ".venv/bin/python": "python",
        }
        for place, ours in places.items():
            text = text.replace(place, ours)
        return text


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    tracker = fake_server("tracker", tools={"issues": lambda: "none"})
    with serve_asgi(tracker.streamable_http_app()) as url:
        yield Reader(tmp_path_factory.mktemp("reader"), f"{url}/mcp")


@pytest.fixture(scope="module")
def new_database(reader: Reader) -> bytes:
    return reader.make_project()


@pytest.mark.parametrize("page", [page for page in RUNNABLE if page != EXAMPLE], ids=name)
def test_the_commands_of_a_page_work_one_after_the_other(page, reader, new_database):
    (reader.project / "db.sqlite3").write_bytes(new_database)

    reader.follow(page, reader.project)


def test_a_new_copy_of_the_example_works_without_a_warning(reader):
    reader.run("python manage.py check --deploy", ROOT)
    assert "No changes detected" in reader.run("python manage.py makemigrations --check --dry-run", ROOT)
    reader.run("python manage.py migrate", ROOT)
    assert "no servers yet" in reader.run("python manage.py mcp_client status", ROOT)

    reader.follow(EXAMPLE, ROOT)


# JSON -----------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("snippet", [each for each in snippets("json") if "mcpServers" in each.text], ids=str)
def test_configurations_can_be_imported(snippet):
    report = services.import_servers(snippet.text, dry_run=True)

    assert report.created
    assert [(entry.action, entry.notices, entry.error) for entry in report.entries] == [
        ("create", (), None) for _ in report.entries
    ]


@pytest.mark.parametrize(
    "snippet", [each for each in snippets("json") if "mcpServers" not in each.text], ids=str
)
def test_answers_have_the_form_and_a_code_of_an_error(snippet):
    answer = json.loads(snippet.text)

    assert answer["code"] in STATUSES
    assert {"detail", "server"} <= set(answer)
