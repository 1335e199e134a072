"""The documentation speaks of things that exist: its snippets, commands, links and settings."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcp_client_app import exceptions
from mcp_client_app.conf import PREFIX, AppSettings, setting_names

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "example_project").rglob("*.md")],
)
FENCE = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Snippet:
    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def snippets(*languages: str) -> list[Snippet]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            indent, language, body = match.groups()
            lines = [line.removeprefix(indent) for line in body.splitlines()]
            number = text.count("\n", 0, match.start()) + 2
            if language in languages:
                found.append(Snippet(page, number, language, "\n".join(lines) + "\n"))
    return found


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))


def heading_anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ +(.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[ -]+", "-", heading) for heading in plain}


@pytest.mark.parametrize("snippet", snippets("python"), ids=str)
def test_python_snippets_compile(snippet):
    # Top-level await is what an async shell or notebook takes; the pages use it to stay short.
    compile(snippet.text, str(snippet), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("snippet", snippets("json"), ids=str)
def test_json_snippets_are_json(snippet):
    json.loads(snippet.text)


@pytest.mark.parametrize("snippet", snippets("sh", "bash", "shell", "console"), ids=str)
def test_shell_snippets_are_well_formed(snippet):
    result = subprocess.run(["bash", "-n"], input=snippet.text, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_make_targets_that_a_page_names_exist(page):
    named = set(re.findall(r"(?:`|^|&& )make ([a-z]+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert named - make_targets() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    broken = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        destination = (page.parent / path).resolve() if path else page
        if not destination.exists() or (anchor and anchor not in heading_anchors(destination)):
            broken.append(target)
    assert broken == []


def test_the_readme_names_the_two_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make run" in readme
    assert "make test" in readme


def table_rows(page: str) -> list[list[str]]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_table_of_settings_names_every_setting_with_its_default():
    documented = {row[0].strip("`"): row[1] for row in table_rows("configuration.md") if PREFIX in row[0]}
    assert set(documented) == {f"{PREFIX}{name}" for name in setting_names()}
    defaults = {name: vars(AppSettings)[name.removeprefix(PREFIX)] for name in documented}
    stated = {name: ast.literal_eval(text.strip("`")) for name, text in documented.items() if text != "unset"}
    assert stated == {name: default for name, default in defaults.items() if name in stated}


def test_the_table_of_errors_names_every_error_with_its_code():
    # A base that is never raised itself shares the code of its most general leaf.
    bases = {"MCPClientError", "ServerConnectionError"}
    errors = {name: getattr(exceptions, name).code for name in exceptions.__all__ if name not in bases}
    documented = {
        row[1].strip("`"): row[0].strip("`") for row in table_rows("errors.md") if row[1].strip("`") in errors
    }
    assert documented == errors
