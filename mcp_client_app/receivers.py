"""Row changes reach the manager: after the commit, in this process at once."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from mcp_client_app.models import ServerConfig
from mcp_client_app.services.following import follow_soon

__all__ = ["server_deleted", "server_saved"]


@receiver(post_save, sender=ServerConfig, dispatch_uid="mcp_client_app.server_saved")
def server_saved(sender: type[ServerConfig], *, raw: bool, using: str, **kwargs: Any) -> None:
    """A server was saved: follow it once that is certain. Fixtures are loaded raw and followed by the interval."""
    if not raw:
        transaction.on_commit(partial(follow_soon), using=using)


@receiver(post_delete, sender=ServerConfig, dispatch_uid="mcp_client_app.server_deleted")
def server_deleted(sender: type[ServerConfig], *, using: str, **kwargs: Any) -> None:
    """A server was deleted: end its connection once that is certain."""
    transaction.on_commit(partial(follow_soon), using=using)
