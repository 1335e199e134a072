"""The saboteur itself: one that breaks fails the soak, which still comes to its end."""

from __future__ import annotations

from pathlib import Path

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.sources import StaticSource
from tests.soak.fleet import Fleet
from tests.soak.saboteur import Saboteur
from tests.soak.score import Score


def test_nobody_waits_for_a_saboteur_that_has_ended(tmp_path: Path):
    score = Score()
    # Without servers its first deed fails.
    saboteur = Saboteur(MCPClientManager(StaticSource([])), Fleet(tmp_path), score, seed=1)
    saboteur.start()
    for _ in range(2):
        saboteur.rest()
        saboteur.go_on()
    saboteur.end()

    (complaint,) = score.complaints
    assert complaint.startswith("the saboteur has ended: Traceback")
