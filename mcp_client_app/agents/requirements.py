"""Says what is missing where an agent is to run: the extra ``agents``, or a model."""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from types import ModuleType

from mcp_client_app.datatypes import AgentSpec
from mcp_client_app.exceptions import ConfigurationError

__all__ = ["load", "require_model"]


def load(name: str) -> ModuleType:
    """Import a module of this package that needs pydantic-ai.

    The library costs a second and 60 MB: processes that run no agent do without.

    Raises:
        ConfigurationError: It is not installed.
    """
    if find_spec("pydantic_ai") is None:
        raise ConfigurationError("Agents need pydantic-ai; install 'django-mcp-client-app[agents]'.")
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    return importlib.import_module(f"mcp_client_app.agents.{name}")


def require_model(spec: AgentSpec) -> None:
    """Pass if the agent has a model.

    Raises:
        ConfigurationError: It has none.
    """
    if not spec.model:
        raise ConfigurationError(
            f"The agent {spec.name!r} has no model: it only serves its tools. Give it one.", field="model"
        )
