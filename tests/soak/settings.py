"""Settings of the soak: those of the tests, and the servers that run in its own process."""

from __future__ import annotations

from tests.settings import *  # noqa: F403 (the same settings, and one more)

MCP_CLIENT_IN_PROCESS_SERVERS = {"soak": "tests.soak.in_process.make_server"}
