"""A backend for runs that keeps what it is given, or refuses it."""

from __future__ import annotations

from mcp_client_app import services
from mcp_client_app.exceptions import BackendUnavailableError, BusyError

__all__ = ["begin_unconfirmed", "given", "refuse", "take"]

given: list[str] = []


def take(run_id: str) -> None:
    given.append(run_id)


def refuse(run_id: str) -> None:
    raise BusyError("Too many runs.", retry_after=3)


def begin_unconfirmed(run_id: str) -> None:
    """A worker has the run before the broker could say so."""
    services.claim(run_id, "worker")
    raise BackendUnavailableError("The connection was lost.")
