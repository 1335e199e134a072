"""Fixtures of the tests with whole sites: one database is made, each site gets a copy."""

from __future__ import annotations

import pytest

from tests.deployment.sites import Ground, prepare


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """What every site stands on."""
    return prepare(tmp_path_factory.mktemp("ground"))
