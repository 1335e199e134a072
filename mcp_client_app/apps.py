"""The app's entry in ``INSTALLED_APPS``. Nothing connects, starts or loads the SDK here."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

__all__ = ["MCPClientConfig"]


class MCPClientConfig(AppConfig):
    """Registers checks and, where they are, receivers."""

    name = "mcp_client_app"
    label = "mcp_client_app"
    verbose_name = _("MCP client")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Both need the models, which are not loaded yet when this module is.
        from mcp_client_app import checks  # noqa: F401

        if find_spec(f"{self.name}.receivers"):
            import_module(f"{self.name}.receivers")
