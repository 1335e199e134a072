"""The loop that drives an agent, on pydantic-ai, which is loaded on first use only.

``api`` has the verbs: ``run_agent``, ``stream_agent``, ``start_agent`` and their async twins.
"""

from __future__ import annotations
