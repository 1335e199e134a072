"""A backend for runs that keeps what it is given, or refuses it."""

from __future__ import annotations

from mcp_client_app.exceptions import BusyError

__all__ = ["given", "refuse", "take"]

given: list[str] = []


def take(run_id: str) -> None:
    given.append(run_id)


def refuse(run_id: str) -> None:
    raise BusyError("Too many runs.", retry_after=3)
