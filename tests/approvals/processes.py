"""Processes of a site, of which each does one step of a run: models, a backend, a web server."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.stored import ROOT, process_environment

SETTINGS = """
import json, os
from django.conf import settings
settings.MCP_CLIENT_MODELS = {
    "scripted:writer": "tests.approvals.processes.writer",
    "scripted:asker": "tests.agents.scripts.asker",
}
settings.MCP_CLIENT_RUN_BACKEND = "tests.approvals.processes.leave"
settings.MCP_CLIENT_REAPER = False
"""
SERVE = """
from wsgiref.simple_server import make_server
from django.core.wsgi import get_wsgi_application
server = make_server("127.0.0.1", 0, get_wsgi_application())
print(server.server_port, flush=True)
server.serve_forever()
"""
SECONDS = 60


def leave(run_id: str) -> None:
    """Take a run and do nothing: another process executes it."""


def writer() -> Any:
    """Return a model that writes a line into the file that the prompt names, and tells what came of it."""
    # Not before: processes that run no agent do without the library.
    from pydantic_ai.messages import UserPromptPart

    from tests.agents.scripts import asks, call, says, scripted, tool_results

    def write(messages: list[Any], _info: Any) -> Any:
        prompts = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
        return asks(call("files__write", "w1", path=str(prompts[0].content), text="a line"))

    def report(messages: list[Any], _info: Any) -> Any:
        return says(" / ".join(text for _, _, text in tool_results(messages)))

    return scripted(write, report)


@dataclass(frozen=True)
class Site:
    """A web server in a process of its own."""

    port: int
    pid: int

    def post(self, token: str, place: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """Send a request; return status and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
        with contextlib.closing(connection):
            connection.request("POST", f"/api/mcp/{place}", json.dumps(body or {}), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())


@contextlib.contextmanager
def served() -> Iterator[Site]:
    """Serve the site of the test's database."""
    authentication = (
        'settings.MCP_CLIENT_API_AUTHENTICATION = ["rest_framework.authentication.TokenAuthentication"]'
    )
    code = f"import django\ndjango.setup()\n{SETTINGS}\n{authentication}\n{SERVE}"
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env=process_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield Site(int(process.stdout.readline()), process.pid)
        finally:
            process.kill()
