"""The changelog and the version go together."""

from __future__ import annotations

import re
from pathlib import Path

import mcp_client_app

CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"


def test_the_newest_entry_of_the_changelog_is_this_version():
    entries = re.findall(
        r"^## \[?(\d+\.\d+\.\d+)\]?", CHANGELOG.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert entries[0] == mcp_client_app.__version__


def test_every_entry_has_a_date_or_says_that_it_is_not_released():
    headings = re.findall(r"^## .*$", CHANGELOG.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert headings
    for heading in headings:
        assert re.fullmatch(r"## \[?\d+\.\d+\.\d+\]? - (\d{4}-\d\d-\d\d|unreleased)", heading), heading
