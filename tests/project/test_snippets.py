"""The Python of README and docs is run, page by page.

The curl commands are run in ``tests/deployment`` (README) and ``tests/api`` (the page of the REST API).
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from mcp_client_app.agents.loop import close_agents_loop
from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig
from mcp_client_app.runtime import get_mcp_manager
from mcp_client_app.testing import fake_server
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager
from tests.project.test_docs import PAGES, Snippet, snippets
from tests.stored import close_connections

__all__ = ["add_mcp_server", "mcp_manager"]

ROOT = Path(__file__).resolve().parents[2]
WORKSHOP = ROOT / "example_project" / "servers" / "workshop.py"

PYTHON = snippets("python")


def page_of(snippet: Snippet) -> str:
    return snippet.page.relative_to(ROOT).as_posix()


@pytest.fixture
def servers(add_mcp_server: Callable[..., Any]) -> None:
    """Stand in for the servers that the pages name."""
    tools: dict[str, Callable[..., str]] = {
        "read_file": lambda path: f"The text of {path}.",
        "list_directory": lambda path: f"Nothing in {path}.",
        "search_files": lambda path, pattern: f"Nothing about {pattern} in {path}.",
    }
    files = fake_server("files", tools=tools)
    workshop = {"command": sys.executable, "args": [str(WORKSHOP)]}
    add_mcp_server("files", files)
    add_mcp_server("workshop", workshop)


@pytest.fixture
def support(servers: None, settings: Any) -> Iterator[None]:
    """Stand in for the agent that the pages name, and for its model."""
    settings.MCP_CLIENT_MODELS = {"openai:gpt-5": "pydantic_ai.models.test.TestModel"}
    row = AgentConfig.objects.create(name="support", model="openai:gpt-5")
    AgentServer.objects.create(agent=row, server=ServerConfig.objects.get(name="files"))
    yield
    close_agents_loop()


def run(code: str, name: str, namespace: dict[str, Any]) -> None:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    outcome = eval(compile(code, name, "exec", flags=flags), namespace)
    if inspect.iscoroutine(outcome):
        asyncio.run(outcome)
        asyncio.run(close_connections())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", sorted({page_of(snippet) for snippet in PYTHON}))
@pytest.mark.usefixtures("support")
def test_the_python_of_a_page_runs(page):
    """From top to bottom, each block with what the ones before have defined."""
    user = User.objects.create_superuser("ada")
    namespace: dict[str, Any] = {"manager": get_mcp_manager(), "user": user}
    for number, snippet in enumerate(PYTHON):
        if page_of(snippet) == page:
            run(snippet.text, f"{page}, snippet {number}", namespace)
    assert PAGES
