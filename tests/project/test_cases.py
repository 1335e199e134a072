"""Each case of the list of what breaks in practice is named by a test that pins its right behaviour.

A case is known by its id, such as ``H11``; tests name it in their docstring.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

CASES: dict[str, str] = {
    "H": "01 03 04 05 06 07 08 09 10 11 12 14 15 16 19 20 22 23 24 25 26 27 28",
    "C": "01 02 03 04 06 07 09 10 11 12 13 14 16 17 18 19 20 21 23",
    "D": "01 02 03 04 06 07 08 09 10 11 12 13 14 16 17 19 20 22",
}
"""Numbers by group: HTTP and SSE; configuration and import; Django, threads and security."""

_ID = re.compile(r"\b([A-Z])(\d\d)\b")


@pytest.mark.parametrize("group", sorted(CASES))
def test_every_case_is_named_by_a_test(group: str) -> None:
    named = {
        match[2]
        for path in TESTS.rglob("test_*.py")
        if path != Path(__file__)
        for match in _ID.finditer(path.read_text("utf-8"))
        if match[1] == group
    }

    assert [number for number in CASES[group].split() if number not in named] == []
