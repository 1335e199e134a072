"""Declares for one call that its server may ask for input, where each request says so: 2026-07-28."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY

__all__ = ["declaring"]

_SHAPES: dict[str, dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


def declaring(params: Mapping[str, Any], kinds: frozenset[str]) -> dict[str, Any]:
    """Return params whose ``_meta`` declares these kinds, too; params of an older era stay as they are."""
    meta = params.get("_meta")
    if not isinstance(meta, Mapping) or CLIENT_CAPABILITIES_META_KEY not in meta:
        return dict(params)
    declared = {kind: _SHAPES[kind] for kind in sorted(kinds)} | meta[CLIENT_CAPABILITIES_META_KEY]
    return {**params, "_meta": {**meta, CLIENT_CAPABILITIES_META_KEY: declared}}
