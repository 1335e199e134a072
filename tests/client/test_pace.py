from __future__ import annotations

import pytest

from mcp_client_app.client.pace import CALM, DEBOUNCE, FREE, LONGEST, Pace


def test_a_few_changes_are_read_at_once():
    pace = Pace()
    assert [pace.next_pause(float(second)) for second in range(FREE)] == [DEBOUNCE] * FREE


def test_ever_more_changes_are_read_ever_later():
    pace, now, pauses = Pace(), 0.0, []
    for _ in range(30):
        pauses.append(pace.next_pause(now))
        now += pauses[-1]  # each reading brings the next change
    assert pauses == sorted(pauses)
    assert pauses[FREE] == 2 * DEBOUNCE
    assert pauses[-1] == LONGEST
    assert now > 300.0  # instead of thirty times the debounce


def test_after_calm_a_change_is_read_at_once_again():
    pace, now = Pace(), 0.0
    for _ in range(30):
        now += pace.next_pause(now)
    assert pace.next_pause(now + CALM - 1) == LONGEST
    assert pace.next_pause(now + LONGEST + 2 * CALM) == pytest.approx(DEBOUNCE)
