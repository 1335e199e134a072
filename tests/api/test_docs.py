"""The commands in ``docs/rest-api.md`` do what they say, against the example's workshop."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_client_app import services
from mcp_client_app.agents.loop import close_agents_loop
from mcp_client_app.models import ServerConfig

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "rest-api.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```sh\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def run(script: str, url: str) -> str:
    """Run the commands as a reader would, failing on the first that fails."""
    credentials = base64.b64encode(b"admin:secret").decode()
    result = subprocess.run(
        ["bash", "-euc", script.replace("curl -s", "curl -s --fail-with-body")],
        env={
            "PATH": os.environ["PATH"],
            "API": f"{url}/api/mcp",
            "AUTH": f"Authorization: Basic {credentials}",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture
def _loop_closed() -> Iterator[None]:
    yield
    close_agents_loop()


@pytest.mark.usefixtures("_loop_closed")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_page_work(api, live_server, settings):
    api.user.set_password("secret")
    api.user.save()
    ServerConfig.objects.create(
        name="workshop",
        transport="stdio",
        command=sys.executable,
        args=[str(ROOT / "example_project" / "servers" / "workshop.py")],
    )
    services.connect("workshop")

    (
        setting,
        listing,
        call,
        keyed,
        stream,
        others,
        connecting,
        changing,
        agents,
        tools,
        runs,
        following,
        transfer,
    ) = SNIPPETS

    assert run(setting, live_server.url) == ""
    assert '"public_name":"workshop__add"' in run(listing, live_server.url)
    assert '"text":"5.0"' in run(call, live_server.url)
    assert '"text":"once"' in run(keyed + keyed, live_server.url)
    assert run(stream, live_server.url).count("event: progress") == 3
    told = run(others, live_server.url)
    assert "a stool" in told
    assert '"values":["English"]' in told
    assert run(connecting, live_server.url).count('"state":"ready"') == 2
    assert '"X-Team":{"set":true' in run(changing, live_server.url)
    assert ServerConfig.objects.get(name="tracker").headers == {"X-Key": "a new secret", "X-Team": "garden"}
    told = run(agents, live_server.url)
    assert '"fixed_arguments":{"add":{"b":{"set":true}}}' in told
    assert '"max_rounds":12' in told
    told = run(tools, live_server.url)
    assert '"type":"function"' in told
    assert '"content":"3.0"' in told
    settings.MCP_CLIENT_MODELS = {"openai:gpt-5": "tests.api.models.teller"}
    assert run(runs, live_server.url).count('"text":"It is 5."') == 2
    assert run(following, live_server.url).count("event: run.completed") == 1
    assert '"action":"create"' in run(transfer, live_server.url)
