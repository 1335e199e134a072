"""Row changes reach the manager: after the commit, in this process at once. Agents notice their servers'."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from mcp_client_app.models import AgentServer, ServerConfig
from mcp_client_app.models.agent_servers import raise_revisions
from mcp_client_app.services.following import follow_soon

__all__ = ["agent_server_deleted", "agent_server_saved", "server_deleted", "server_saved"]


@receiver(post_save, sender=ServerConfig, dispatch_uid="mcp_client_app.server_saved")
def server_saved(sender: type[ServerConfig], *, raw: bool, using: str, **kwargs: Any) -> None:
    """Follow a saved server once that is certain; the interval does it for those loaded from fixtures."""
    if not raw:
        transaction.on_commit(follow_soon, using=using)


@receiver(post_delete, sender=ServerConfig, dispatch_uid="mcp_client_app.server_deleted")
def server_deleted(sender: type[ServerConfig], *, using: str, **kwargs: Any) -> None:
    """End the connection of a deleted server once that is certain."""
    transaction.on_commit(follow_soon, using=using)


@receiver(post_save, sender=AgentServer, dispatch_uid="mcp_client_app.agent_server_saved")
def agent_server_saved(
    sender: type[AgentServer], *, instance: AgentServer, raw: bool, using: str, **kwargs: Any
) -> None:
    """Raise the agent's revision; a fixture brings the agent's own."""
    if not raw:
        raise_revisions(using, [instance.agent_id])


@receiver(post_delete, sender=AgentServer, dispatch_uid="mcp_client_app.agent_server_deleted")
def agent_server_deleted(
    sender: type[AgentServer], *, instance: AgentServer, using: str, **kwargs: Any
) -> None:
    """Raise the agent's revision, also where the server itself was deleted."""
    raise_revisions(using, [instance.agent_id])
