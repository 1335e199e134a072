"""W3C trace context of the caller, as ``_meta`` of a request (SEP-414).

Taken in the caller's context, because jobs on the loop start in an empty one. Costs
nothing unless the project uses OpenTelemetry.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["with_trace_context"]


def with_trace_context(meta: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return ``meta`` with the ``traceparent`` of the active span; as it is if there is none."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return meta
    span = trace.get_current_span()
    if span is trace.INVALID_SPAN or not span.get_span_context().is_valid:
        return meta
    carrier: dict[str, Any] = {}
    propagate = sys.modules.get("opentelemetry.propagate")
    if propagate is not None:
        propagate.inject(carrier)
    return {**carrier, **(meta or {})}
