"""The API as its clients see it: users with permissions, and addresses without the common part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from rest_framework.test import APIClient

from mcp_client_app.runtime import close_mcp_manager, row_source

MOUNT = "/api/mcp/"
EDITOR = ("view_serverconfig", "add_serverconfig", "change_serverconfig", "delete_serverconfig")
"""May edit servers; running code is another matter."""


class Api:
    """Requests with JSON bodies, as one user; ``api.get("servers/")`` and the like."""

    def __init__(self, user: User | None, **headers: str) -> None:
        self.client = APIClient()
        self.headers = headers
        self.user = user
        if user is not None:
            self.client.force_login(user)

    def _send(self, method: str, place: str, body: Any = None, **headers: str) -> Any:
        send = getattr(self.client, method)
        data = {"data": body, "format": "json"} if method != "get" else {}
        return send(MOUNT + place, headers={**self.headers, **headers}, **data)

    def get(self, place: str, **headers: str) -> Any:
        return self._send("get", place, **headers)

    def post(self, place: str, body: Any = None, **headers: str) -> Any:
        return self._send("post", place, body, **headers)

    def put(self, place: str, body: Any = None, **headers: str) -> Any:
        return self._send("put", place, body, **headers)

    def patch(self, place: str, body: Any = None, **headers: str) -> Any:
        return self._send("patch", place, body, **headers)

    def delete(self, place: str, **headers: str) -> Any:
        return self._send("delete", place, **headers)

    def call(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> Any:
        """Call a tool."""
        return self.post("tools/call/", {"name": name, "arguments": arguments or {}, **more})


def user_with(*codenames: str, name: str = "somebody") -> User:
    """Make a user with these permissions of the app."""
    user = User.objects.create_user(name)
    found = Permission.objects.filter(content_type__app_label="mcp_client_app", codename__in=codenames)
    assert found.count() == len(codenames), codenames
    user.user_permissions.set(found)
    return user


As = Callable[..., Api]


@pytest.fixture
def _site(transactional_db, settings) -> Iterator[None]:
    """Forget what other tests have left in this process, and close what the test has started."""
    settings.MCP_CLIENT_REAPER = False
    row_source.forget()
    yield
    close_mcp_manager()
    row_source.forget()


@pytest.fixture
def api(_site) -> Api:
    """The API as an administrator."""
    return Api(User.objects.create_superuser("admin"))


@pytest.fixture
def api_as(_site) -> As:
    """The API as a user with the permissions named."""

    def make(*codenames: str, name: str = "somebody", **headers: str) -> Api:
        return Api(user_with(*codenames, name=name), **headers)

    return make


@pytest.fixture
def anonymous(_site) -> Api:
    """The API as nobody."""
    return Api(None)
