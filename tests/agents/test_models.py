from __future__ import annotations

import asyncio

import pytest
from openai._models import FinalRequestOptions
from pydantic_ai.models.test import TestModel

from mcp_client_app.agents.api import run_agent
from mcp_client_app.agents.loop import get_agents_loop
from mcp_client_app.agents.models import NO_KEY, model_for
from mcp_client_app.datatypes import AgentSpec, RunStatus
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models import AgentRun
from tests.servers.model_apis import Failure, ModelApi, Turn
from tests.stored import run_process

LOCAL = "http://127.0.0.1:11434/v1"
SECRET = "sk-default-of-the-provider"


@pytest.fixture(autouse=True)
def _default_keys(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", SECRET)


def make(**fields):
    loop = get_agents_loop()
    return loop.run(lambda: model_for(AgentSpec(name="clerk", **fields), loop))


@pytest.mark.parametrize("model", ["openai:gpt-5", "openai-chat:gpt-5", "openai-responses:gpt-5"])
def test_openais_default_key_never_goes_to_an_address_of_ones_own(model):
    client = make(model=model, base_url=LOCAL).client

    assert client.api_key == NO_KEY
    assert str(client.base_url).rstrip("/") == LOCAL


def test_anthropics_default_keys_never_go_to_an_address_of_ones_own():
    client = make(model="anthropic:claude-sonnet-5-5", base_url="http://127.0.0.1:9/").client

    assert list(client.auth_headers.values()) == [f"Bearer {NO_KEY}"]
    assert SECRET not in str(client.auth_headers) + str(client.default_headers)


@pytest.mark.parametrize(
    "model", ["openai:x", "openai-responses:x", "anthropic:claude-sonnet-4-5", "ollama:llama"]
)
def test_headers_of_the_environment_never_go_to_an_address_of_ones_own(model, monkeypatch):
    headers = f"Authorization: Bearer {SECRET}\nX-Gateway-Token: {SECRET}"
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_CUSTOM_HEADERS", headers)
        monkeypatch.setenv(f"{provider}_ORG_ID", SECRET)
        monkeypatch.setenv(f"{provider}_PROJECT_ID", SECRET)
    elsewhere = make(model=model, base_url=LOCAL).client
    request = elsewhere._build_request(FinalRequestOptions(method="post", url="/x"))
    assert SECRET not in str(request.headers.multi_items())
    assert f"Bearer {NO_KEY}" in request.headers["authorization"]


def test_headers_of_the_environment_go_to_the_usual_address(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Gateway-Token: abc")
    assert make(model="anthropic:claude-sonnet-4-5").client.default_headers["X-Gateway-Token"] == "abc"


def test_a_key_that_is_named_goes_there(monkeypatch):
    monkeypatch.setenv("MY_KEY", "mine")
    client = make(model="openai:llama", base_url=LOCAL, api_key_variable="MY_KEY").client

    assert client.api_key == "mine"


def test_without_an_address_the_default_key_counts():
    assert make(model="openai:gpt-5").client.api_key == SECRET


def test_a_server_of_ones_own_is_spoken_to_as_all_such_servers_understand():
    assert type(make(model="openai:llama", base_url=LOCAL)).__name__ == "OpenAIChatModel"
    assert type(make(model="openai-responses:llama", base_url=LOCAL)).__name__ == "OpenAIResponsesModel"


def test_a_local_provider_needs_no_key():
    assert str(make(model="ollama:qwen3", base_url=LOCAL).client.base_url).rstrip("/") == LOCAL


def test_a_model_is_made_once_for_each_configuration(monkeypatch):
    monkeypatch.setenv("MY_KEY", "mine")
    first = make(model="openai:llama", base_url=LOCAL, api_key_variable="MY_KEY")
    assert make(model="openai:llama", base_url=LOCAL, api_key_variable="MY_KEY") is first

    monkeypatch.setenv("MY_KEY", "another")
    assert make(model="openai:llama", base_url=LOCAL, api_key_variable="MY_KEY") is not first
    assert make(model="openai:llama", base_url=LOCAL) is not first


def test_runs_that_begin_together_share_a_model_and_no_other_is_left_open():
    loop = get_agents_loop()
    spec = AgentSpec(name="clerk", model="openai:llama", base_url=LOCAL)

    async def together():
        return await asyncio.gather(*(model_for(spec, loop) for _ in range(3)))

    first, *others = loop.run(together)
    assert all(other is first for other in others)


def test_models_are_closed_with_the_loop():
    loop = get_agents_loop()
    client = make(model="openai:llama", base_url=LOCAL).client
    assert not client.is_closed()

    loop.close()

    assert client.is_closed()


@pytest.mark.parametrize(
    ("fields", "field", "told"),
    [
        ({}, "model", "no model"),
        ({"model": "nowhere:x"}, "model", "'nowhere' is not known"),
        ({"model": "openai:x", "api_key_variable": "NOT_THERE"}, "api_key_variable", "'NOT_THERE'"),
        ({"model": "openai:x", "base_url": "http://169.254.169.254/"}, "base_url", "URL policy"),
        ({"model": "groq:x"}, "model", "groq"),
    ],
)
def test_what_cannot_be_a_model_says_which_field(fields, field, told):
    with pytest.raises(ConfigurationError) as caught:
        make(**fields)
    assert caught.value.field == field
    assert told in str(caught.value)


def test_a_name_leads_to_no_blocked_address_either(settings):
    fields = {"model": "openai:x", "base_url": "http://localhost:9/v1"}
    make(**fields)
    settings.MCP_CLIENT_BLOCKED_NETWORKS = ["127.0.0.0/8", "::1/128"]
    with pytest.raises(
        ConfigurationError, match="'localhost' has an address that the URL policy blocks"
    ) as caught:
        make(**fields)
    assert caught.value.field == "base_url"


@pytest.mark.parametrize("host", ["nowhere.invalid", "x" * 70])
def test_a_name_that_nobody_knows_is_left_to_the_request(host):
    assert make(model="openai:x", base_url=f"http://{host}/v1").client.api_key == NO_KEY


def test_a_missing_key_names_its_variable(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigurationError) as caught:
        make(model="openai:gpt-5")
    assert "OPENAI_API_KEY" in str(caught.value)


def test_a_denied_variable_is_not_read(settings, monkeypatch):
    settings.MCP_CLIENT_ENV_DENY = ["MY_*"]
    monkeypatch.setenv("MY_KEY", "mine")
    with pytest.raises(ConfigurationError) as caught:
        make(model="openai:x", api_key_variable="MY_KEY")
    assert "MCP_CLIENT_ENV_DENY" in str(caught.value)


def test_a_variable_is_read_only_if_the_agent_may(agent, settings, monkeypatch):
    monkeypatch.setenv("MY_KEY", "mine")
    row = agent(model="openai:x", base_url="http://127.0.0.1:1/v1", api_key_variable="MY_KEY")
    refused = run_agent("clerk", "Go.")
    assert (refused.code, "'MY_KEY' may not be read" in refused.detail) == ("configuration", True)

    settings.MCP_CLIENT_ENV_ALLOW = ["MY_*"]
    assert run_agent("clerk", "Go.").code == "model_error"
    settings.MCP_CLIENT_ENV_ALLOW = []
    row.may_reference_environment = True
    row.save()
    assert run_agent("clerk", "Go.").code == "model_error"


def test_no_repr_of_an_agent_holds_secrets_of_its_settings():
    spec = AgentSpec(
        name="clerk",
        base_url=f"{LOCAL}?key={SECRET}",
        model_settings={"extra_headers": {"Authorization": SECRET}},
    )
    assert SECRET not in repr(spec)


def own_model():
    return TestModel(custom_output_text="mine")


def no_model():
    return "none"


def test_a_model_of_the_project(settings):
    settings.MCP_CLIENT_MODELS = {"own:one": f"{__name__}.own_model"}
    assert isinstance(make(model="own:one"), TestModel)


@pytest.mark.parametrize(("path", "told"), [("no_model", "makes no model"), ("gone", "cannot be imported")])
def test_what_is_no_model_of_the_project_is_told(settings, path, told):
    settings.MCP_CLIENT_MODELS = {"own:one": f"{__name__}.{path}"}
    with pytest.raises(ConfigurationError) as caught:
        make(model="own:one")
    assert caught.value.field == "MCP_CLIENT_MODELS"
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("model", "variable", "field"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY", "api_key_variable"),
        ("anthropic:claude-sonnet-5-5", "ANTHROPIC_API_KEY", "api_key_variable"),
        ("ollama:llama3", "OLLAMA_BASE_URL", "base_url"),
    ],
)
def test_what_a_provider_lacks_is_told_in_the_words_of_an_agent(monkeypatch, model, variable, field):
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigurationError) as caught:
        make(model=model)
    assert str(caught.value) == (
        f"The model {model!r} cannot be used: set the environment variable {variable}, "
        f"or fill in the agent's {field}."
    )


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_a_provider_that_fails_fails_the_run_and_is_not_quoted(agent, status, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    failure = Failure(status, "bad key sk-very-secret", {"retry-after": "0", "x-should-retry": "false"})
    with ModelApi([failure] * 9, key="sk-very-secret") as api:
        fields = {"api_key_variable": "MY_KEY", "may_reference_environment": True}
        agent(model="openai:gpt-5", base_url=api.openai_url, **fields)
        result = run_agent("clerk", "Go.")

    assert (result.status, result.code) == (RunStatus.FAILED, "model_error")
    assert f"HTTP {status}" in result.detail
    row = AgentRun.objects.get()
    assert "sk-very" not in f"{row.detail}{row.messages}{list(row.events.values_list('data', flat=True))}"


def test_a_provider_that_is_not_there_fails_the_run(agent):
    agent(model="openai:gpt-5", base_url="http://127.0.0.1:1/v1")
    result = run_agent("clerk", "Go.")

    assert (result.status, result.code) == (RunStatus.FAILED, "model_error")
    assert "could not be reached" in result.detail


def test_the_default_key_does_not_reach_the_wire(agent):
    with ModelApi([Turn("Hello.")], key=NO_KEY) as api:
        agent(model="openai:gpt-5", base_url=api.openai_url)
        assert run_agent("clerk", "Go.").text == "Hello."


def test_an_agent_without_a_model_is_refused_before_there_is_a_run(agent):
    agent(model="")
    with pytest.raises(ConfigurationError) as caught:
        run_agent("clerk", "Go.")
    assert caught.value.field == "model"
    assert not AgentRun.objects.exists()


def test_without_pydantic_ai_the_extra_is_named(agent, monkeypatch):
    agent()
    monkeypatch.setattr("mcp_client_app.agents.requirements.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError) as caught:
        run_agent("clerk", "Go.")
    assert "[agents]" in str(caught.value)
    assert caught.value.field is None  # no field of the agent, and no setting, is wrong


def test_nothing_of_it_is_loaded_before_an_agent_runs():
    code = (
        "import sys;"
        "import mcp_client_app.agents.api, mcp_client_app.agents.executor, mcp_client_app.tasks;"
        "print([name for name in ('pydantic_ai', 'openai', 'anthropic') if name in sys.modules])"
    )
    assert run_process(code).strip() == "[]"
