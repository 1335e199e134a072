"""Users, and a backend that only notes which runs it is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from tests.approvals import cases


@pytest.fixture(autouse=True)
def _backend(settings) -> Iterator[None]:
    settings.MCP_CLIENT_RUN_BACKEND = cases.BACKEND
    cases.handed_over.clear()
    yield
    cases.handed_over.clear()


@pytest.fixture
def ann(db) -> User:
    """Whose calls they are."""
    return cases.user("ann")


@pytest.fixture
def boss(db) -> User:
    """May decide about everybody's calls."""
    return cases.user("boss", "decide_approval")
