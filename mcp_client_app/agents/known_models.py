"""Whether the provider of a model is known; nobody is asked."""

from __future__ import annotations

from pydantic_ai.providers import infer_provider_class

from mcp_client_app.conf import app_settings

__all__ = ["provider_problem"]


def provider_problem(model: str) -> str | None:
    """Say why there is no such provider here, or return None; ``model`` is ``provider:model``."""
    kind = model.partition(":")[0]
    if not model or model in app_settings.MODELS:
        return None
    try:
        infer_provider_class(kind)
    except ImportError:
        return f"The package for models of {kind!r} is not installed."
    except ValueError:
        return f"The provider {kind!r} is not known."
    return None
