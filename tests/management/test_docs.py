"""``docs/commands.md`` names the verbs, options and exit codes that there are, and no others."""

from __future__ import annotations

import argparse
import re

import pytest

from mcp_client_app.management.commands.mcp_client import Command
from mcp_client_app.management.failures import ExitCode
from tests.management.conftest import ROOT

PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
OF_EVERY_VERB = {"--help", "--json"}


def verbs() -> dict[str, argparse.ArgumentParser]:
    parser = Command().create_parser("manage.py", "mcp_client")
    [action] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(action.choices)


def options(parser: argparse.ArgumentParser) -> set[str]:
    """Return the options that the help shows."""
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return {name for action in shown for name in action.option_strings if name.startswith("--")}


def sections() -> dict[str, str]:
    """Return the text of each verb's section; verbs may share one."""
    found: dict[str, str] = {}
    for section in PAGE.split("\n### ")[1:]:
        heading, _, text = section.partition("\n")
        text = re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0]
        found |= dict.fromkeys(re.findall(r"`(\w+)`", heading), text)
    return found


def test_every_verb_has_its_section_in_the_page_and_no_other_has():
    assert set(sections()) == set(verbs())


@pytest.mark.parametrize("verb", verbs())
def test_the_options_of_a_verb_are_those_of_the_page(verb):
    documented = set(re.findall(r"--[a-z][a-z-]+", sections()[verb]))
    assert documented - OF_EVERY_VERB == options(verbs()[verb]) - OF_EVERY_VERB


def test_every_verb_has_json_and_a_sentence_of_help():
    for name, parser in verbs().items():
        assert "--json" in options(parser), name
        assert re.fullmatch(r"[A-Z].*\.", parser.description or ""), name


def test_the_exit_codes_of_the_page_are_those_of_the_command():
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, flags=re.MULTILINE)] == sorted(ExitCode)


def test_the_verbs_that_other_pages_use_exist():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "example_project").rglob("*.md")]
    used = {
        verb
        for page in pages
        for verb in re.findall(r"manage\.py mcp_client ([a-z]+)", page.read_text(encoding="utf-8"))
    }
    assert used - set(verbs()) == set()
