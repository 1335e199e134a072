"""The demo's agent with its script: what it says if a tool fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from example_project.demo_agent import load_demo_agent, make_model, scripted_model
from mcp_client_app.agents.api import run_agent
from mcp_client_app.agents.loop import close_agents_loop
from mcp_client_app.testing import fake_server
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager

__all__ = ["add_mcp_server", "mcp_manager"]


@pytest.fixture(autouse=True)
def _loop_closed() -> Iterator[None]:
    yield
    close_agents_loop()


@pytest.mark.django_db(transaction=True)
def test_a_city_without_weather_is_told_in_words(add_mcp_server):
    def forecast(city: str, days: int) -> str:
        raise ValueError(f"no weather for {city}")

    notes: list[str] = []
    files: dict[str, Callable[..., Any]] = {
        "read_file": lambda path: "glue\n",
        "write_file": lambda path, text: notes.append(text),
    }
    add_mcp_server("files", fake_server("files", tools=files))
    add_mcp_server("weather", fake_server("weather", tools=[forecast]))
    load_demo_agent()

    result = run_agent("demo", "Is it sunny in Rome?", model=scripted_model())

    assert result.is_complete
    assert "I could not learn the weather: Error calling mcp tool weather__forecast: " in result.text
    assert "no weather for Rome" in result.text
    assert result.text.startswith(notes[0].strip())


@pytest.mark.parametrize(
    ("variables", "system", "name"),
    [
        ({}, "function", "scripted"),
        ({"EXAMPLE_MODEL": "openai:gpt-5"}, "function", "scripted"),
        ({"OPENAI_API_KEY": "k"}, "openai", "gpt-5-mini"),
        ({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "openai", "default"),
        (
            {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "EXAMPLE_MODEL": "openai-chat:qwen3"},
            "openai",
            "qwen3",
        ),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic", "claude-sonnet-5-5"),
        ({"ANTHROPIC_API_KEY": "k", "EXAMPLE_MODEL": "scripted"}, "function", "scripted"),
    ],
)
def test_what_is_set_chooses_the_model(monkeypatch, variables, system, name):
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "EXAMPLE_MODEL"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)

    model = make_model()

    assert (model.system, model.model_name) == (system, name)
