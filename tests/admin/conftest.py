"""Fixtures of the admin's tests: users with chosen permissions, and the process's manager as new."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from mcp_client_app.runtime import close_mcp_manager, row_source
from tests.stored import is_rolled_back

MakeStaff = Callable[..., Client]


@pytest.fixture(autouse=True)
def _as_new(request: pytest.FixtureRequest, settings) -> Iterator[None]:
    """Forget what other tests have left in this process, and close what the test has started."""
    settings.MCP_CLIENT_REAPER = False
    settings.MCP_CLIENT_RECORD_STATES = not is_rolled_back(request)
    row_source.forget()
    yield
    close_mcp_manager()
    row_source.forget()


@pytest.fixture
def staff() -> MakeStaff:
    """Log somebody in: ``staff("view_serverconfig", ...)``; without permissions a user who sees nothing."""

    def make(*codenames: str, name: str = "staff") -> Client:
        user = User.objects.create_user(name, password="x", is_staff=True)
        found = Permission.objects.filter(content_type__app_label="mcp_client_app", codename__in=codenames)
        assert found.count() == len(codenames)
        user.user_permissions.set(found)
        client = Client()
        client.force_login(user)
        return client

    return make
