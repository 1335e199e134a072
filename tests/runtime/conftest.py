"""Fixtures of the tests of the runtime: the process's own manager, as new for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcp_client_app.runtime import close_mcp_manager, row_source
from tests.stored import is_rolled_back


@pytest.fixture(autouse=True)
def _as_new(request: pytest.FixtureRequest, settings) -> Iterator[None]:
    """Forget what other tests have left in this process, and close what the test has started."""
    settings.MCP_CLIENT_REAPER = False
    settings.MCP_CLIENT_RECORD_STATES = not is_rolled_back(request)
    row_source.forget()
    yield
    close_mcp_manager()
    row_source.forget()
