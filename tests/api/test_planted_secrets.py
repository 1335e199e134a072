"""Secrets are planted wherever a server can have some; then everything is asked, and nothing may show one."""

from __future__ import annotations

import pytest

from mcp_client_app.models import ServerConfig, ToolCall
from tests.stored import stored

PLANTED = {
    "env": "planted-in-env-4711",
    "headers": "planted-in-headers-4712",
    "path": "planted-in-a-path-4713",
    "query": "planted-in-a-query-4714",
    "extra": "planted-in-extra-4715",
}
SERVERS = ("peer", "crashing", "remote")
OF_A_SERVER = ("", "logs/", "tools/?wait=10")
PLACES = (
    *("servers/", "tools/?wait=10", "resources/?wait=10", "prompts/", "calls/", "export/", "health/"),
    *(f"servers/{name}/{place}" for name in SERVERS for place in OF_A_SERVER),
)


@pytest.mark.parametrize("permissions", ["administrator", "viewer"])
def test_no_answer_shows_a_planted_secret(api, api_as, caplog, permissions):
    """D14."""
    env = {"API_KEY": PLANTED["env"]}
    stored("peer", env=env)
    stored("crashing", "--scenario=exit_at_start=1", env=env)
    ServerConfig.objects.create(
        name="remote",
        transport="streamable_http",
        url=f"http://127.0.0.1:9/{PLANTED['path']}/mcp?key={PLANTED['query']}",
        headers={"Authorization": f"Bearer {PLANTED['headers']}"},
        extra={"apiKey": PLANTED["extra"]},
    )
    verbs = ("connect", "refresh", "test")
    answers = [api.post(f"servers/{name}/{verb}/") for name in SERVERS for verb in verbs]
    answers += [
        api.call("remote__anything"),
        api.call("peer__echo", {"text": "x"}),
        api.post("connect/", {"all": True}),
    ]
    reader = (
        api if permissions == "administrator" else api_as("view_serverconfig", "view_toolcall", "call_tool")
    )
    answers += [reader.get(place) for place in PLACES]

    told = "\n".join([*(answer.content.decode() for answer in answers), caplog.text])
    told += repr(list(ToolCall.objects.values()))
    # Whoever may change servers has to see their addresses.
    shown = () if permissions == "viewer" else ("path", "query")
    assert [place for place, secret in PLANTED.items() if secret in told and place not in shown] == []
