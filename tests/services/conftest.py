"""Fixtures of the tests of the services: a manager over the test's rows, users, a server in process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from mcp_client_app.testing import fake_server
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager

__all__ = ["add_mcp_server", "mcp_manager"]

MakeUser = Callable[..., User]


@pytest.fixture
def make_user(db: None) -> MakeUser:
    """Make users: ``make_user("call_tool", "view_serverconfig")``."""

    def make(*permissions: str, **fields: Any) -> User:
        user = User.objects.create(username=f"user{User.objects.count()}", **fields)
        found = Permission.objects.filter(content_type__app_label="mcp_client_app", codename__in=permissions)
        assert len(found) == len(permissions)
        user.user_permissions.set(found)
        return user

    return make


def shop() -> Any:
    """Return a server with something of everything."""

    def price(article: str) -> dict[str, Any]:
        return {"article": article, "price": 3}

    def fail(message: str) -> str:
        raise ValueError(message)

    def echo(text: str) -> str:
        return text

    return fake_server(
        "shop",
        tools={"price": price, "fail": fail, "echo": echo},
        resources={"shop://hours": "9 to 5", "shop://{article}/label": lambda article: f"Label of {article}"},
        prompts={"greet": lambda name: f"Greet {name}."},
        instructions="Buy something.",
    )


@pytest.fixture
def the_shop(add_mcp_server: Callable[..., Any]) -> Any:
    """The row of a server named ``shop``."""
    return add_mcp_server("shop", shop())
