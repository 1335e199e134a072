"""From what an agent's row says of its model to a model of pydantic-ai.

A model belongs to the loop that first used it: these are made and kept on the agents' loop alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from typing import Any
from urllib.parse import urlsplit

from django.utils.module_loading import import_string
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from mcp_client_app.agents.loop import AgentsLoop
from mcp_client_app.agents.requirements import require_model
from mcp_client_app.client.url_policy import AddressGuard, check_url
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import AgentSpec, UrlPolicy
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models.agent_fields import is_readable_variable

logger = logging.getLogger(__name__)

__all__ = ["model_for"]

_WANTED = re.compile(r"Set the `(\w+)` environment variable or pass it via")
NO_KEY = "no-key"
"""What is sent to a server of one's own if no key is named: clients of providers insist on one."""


async def model_for(spec: AgentSpec, loop: AgentsLoop) -> Model:
    """Return the model of an agent; one per process for each configuration. Call on the agents' loop.

    Raises:
        ConfigurationError: There is no such model or provider, or what it needs is not there.
    """
    require_model(spec)
    path = app_settings.MODELS.get(spec.model)
    if path is None and spec.base_url:
        await _check_address(spec.base_url)
    key = None if path is not None else _key(spec)
    identity = (spec.model, path, spec.base_url, key)
    kept: dict[tuple[Any, ...], Model] | None = loop.kept.get(model_for)
    if kept is None:
        kept = loop.kept[model_for] = {}
        loop.at_close(lambda: _close(kept))
    if identity not in kept:
        model = _from_provider(spec, key) if path is None else _from_project(spec.model, path)
        kept[identity] = model  # before anything is awaited: two runs that begin together share it
        await model.__aenter__()  # keeps its connections open between runs
    return kept[identity]


async def _close(kept: dict[tuple[Any, ...], Model]) -> None:
    while kept:
        _, model = kept.popitem()
        try:
            await model.__aexit__(None, None, None)
        except Exception:
            logger.exception("The model %r could not be closed.", model.model_name)


def _from_project(name: str, path: str) -> Model:
    setting = "MCP_CLIENT_MODELS"
    try:
        make = import_string(path.replace(":", "."))
    except ImportError as error:
        raise ConfigurationError(
            f"{setting} names {path!r} for {name!r}, which cannot be imported: {error}.", field=setting
        ) from error
    model = make() if callable(make) else make
    if not isinstance(model, Model):
        raise ConfigurationError(
            f"{setting} names {path!r} for {name!r}, which makes no model of pydantic-ai.", field=setting
        )
    return model


def _from_provider(spec: AgentSpec, key: str | None) -> Model:
    kind, _, name = spec.model.partition(":")
    if kind == "openai" and spec.base_url:
        kind = "openai-chat"  # what all servers know that speak as OpenAI does
    try:
        provider_class = infer_provider_class(kind)
    except ImportError as error:
        raise ConfigurationError(
            f"The package for models of {kind!r} is not installed; install 'pydantic-ai-slim[{kind}]'.",
            field="model",
        ) from error
    except ValueError:
        raise ConfigurationError(
            f"The provider {kind!r} is not known; write it as in 'openai:gpt-5' or 'anthropic:...'.",
            field="model",
        ) from None
    try:
        return infer_model(f"{kind}:{name}", lambda _: _provider(provider_class, spec, key))
    except UserError as error:
        raise ConfigurationError(
            f"The model {spec.model!r} cannot be used: {_cure(str(error))}", field="model"
        ) from error


def _cure(reason: str) -> str:
    """Return what pydantic-ai wants, in the terms of an agent."""
    if (wanted := _WANTED.match(reason)) is None:
        return reason.partition(" To try Pydantic AI")[0]
    field = "base_url" if wanted[1].endswith("_BASE_URL") else "api_key_variable"
    return f"set the environment variable {wanted[1]}, or fill in the agent's {field}."


def _provider(provider_class: type[Provider[Any]], spec: AgentSpec, key: str | None) -> Provider[Any]:
    arguments: dict[str, Any] = {"api_key": key} if key else {}
    if spec.base_url:
        # With an address of one's own, the provider's default key must not go there.
        arguments = {"base_url": spec.base_url, "api_key": key or NO_KEY}
    try:
        provider = provider_class(**arguments)
    except TypeError as error:
        what = " and ".join("base_url" if name == "base_url" else "api_key_variable" for name in arguments)
        raise ConfigurationError(
            f"The provider of {spec.model!r} does not take {what}; leave it empty.", field="base_url"
        ) from error
    if spec.base_url:
        _forget_headers(provider.client)
    return provider


def _forget_headers(client: Any) -> None:
    """Take out what a provider's package adds to all requests because the environment says so.

    ``ANTHROPIC_CUSTOM_HEADERS`` and the like are credentials of a gateway, or names of an account: they
    go nowhere but to the provider's usual address.
    """
    if getattr(client, "_custom_headers", None):
        client._custom_headers = {}  # noqa: SLF001 (its constructor adds them, and nothing takes them out)
    for name in ("organization", "project"):
        if getattr(client, name, None):
            setattr(client, name, None)


async def _check_address(url: str) -> None:
    """Hold the address of a model, and what its name stands for now, to the URL policy."""
    policy = UrlPolicy(blocked_networks=tuple(app_settings.BLOCKED_NETWORKS))
    try:
        check_url(url, policy)
    except ConfigurationError as error:
        raise ConfigurationError(str(error), field="base_url") from None
    host = urlsplit(url).hostname or ""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return  # a proxy may know the name; else the request says that nobody does
    guard = AddressGuard(host, policy)
    if any(guard.forbids(str(address[0])) for *_, address in found):
        raise ConfigurationError(
            f"The host {host!r} has an address that the URL policy blocks.", field="base_url"
        )


def _key(spec: AgentSpec) -> str | None:
    """Return the key that the agent names, if it names one."""
    name = spec.api_key_variable
    if not name:
        return None
    if not is_readable_variable(name, granted=spec.may_reference_environment):
        raise ConfigurationError(
            f"The variable {name!r} may not be read: add it to MCP_CLIENT_ENV_ALLOW, or have the agent saved "
            "by somebody who may refer to the environment. What MCP_CLIENT_ENV_DENY names is never read.",
            field="api_key_variable",
        )
    value = os.environ.get(name)
    if not value:
        raise ConfigurationError(
            f"The environment variable {name!r} of the agent {spec.name!r} is not set.",
            field="api_key_variable",
        )
    return value
