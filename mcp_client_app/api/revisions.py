"""Optimistic locking: the revision that a client has seen, from the header ``If-Match`` or the body."""

from __future__ import annotations

import re
from typing import Any

from rest_framework.request import Request

from mcp_client_app.exceptions import StaleRevisionError
from mcp_client_app.models.revisions import RevisedModel

__all__ = ["etag", "expected_revision"]

_TAG = re.compile(r'"(\d{1,18})"\Z')


def etag(row: RevisedModel) -> str:
    """Return the entity tag of a row."""
    return f'"{row.revision}"'


def expected_revision(request: Request, body: dict[str, Any] | None = None) -> int | None:
    """Return the revision that a change was made for; None if any will do. The header wins.

    Raises:
        StaleRevisionError: The header holds no tag that a row of ours can have.
    """
    header = request.headers.get("If-Match", "").strip()
    given: int | None = (body or {}).get("revision")
    if not header:
        return given
    if header == "*":
        return None
    tag = _TAG.match(header)
    if tag is None:
        raise StaleRevisionError("The header 'If-Match' holds no tag of ours; load it again.")
    return int(tag[1])
