"""Whether the provider of a model is known; nobody is asked."""

from __future__ import annotations

from django.utils.translation import gettext as _
from pydantic_ai.providers import infer_provider_class

from mcp_client_app.conf import app_settings

__all__ = ["provider_problem"]


def provider_problem(model: str) -> str | None:
    """Say why there is no such provider here, in the language of the thread, or return None.

    Args:
        model: ``provider:model``, or a name from ``MCP_CLIENT_MODELS``.
    """
    kind = model.partition(":")[0]
    if not model or model in app_settings.MODELS:
        return None
    try:
        infer_provider_class(kind)
    except ImportError:
        return _("The package for models of %(name)r is not installed: pydantic-ai-slim[%(name)s].") % {
            "name": kind
        }
    except ValueError:
        return _("The provider %(name)r is not known; write the model as in 'openai:gpt-5'.") % {"name": kind}
    return None
