"""The demo, step by step: set up, connect, show, call, and perhaps serve."""

from __future__ import annotations

import json
import secrets
import socket
import sys
import time

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from rest_framework.authtoken.models import Token

from example_project import demo_agent, tour
from example_project.bundled import WeatherServer, load_bundled_servers
from example_project.processes import ReadyProcess
from example_project.rest_client import RestClient
from example_project.settings import VAR_DIR
from example_project.tables import table
from mcp_client_app import services
from mcp_client_app.agents.api import stream_agent
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import ServerStatus
from mcp_client_app.runtime import close_mcp_manager, get_mcp_manager

LOGIN = "demo"


def run(*, serve_on: tuple[str, int] | None) -> int:
    """Run the demo and stop all servers; return the exit status.

    Args:
        serve_on: Host and port to serve on after the tour, or None not to serve.
    """
    if serve_on is not None and not _is_free(*serve_on):
        host, port = serve_on
        print(
            f"Port {port} on {host} is taken. Choose another one: make run PORT={port + 1}", file=sys.stderr
        )
        return 2
    _heading("Setting up")
    call_command("migrate", verbosity=0)
    print(f"  database  {settings.DATABASES['default']['NAME']}")
    _make_login()
    loaded = load_bundled_servers(VAR_DIR)
    print(f"  servers   {', '.join(loaded) + ' loaded' if loaded else 'all there already'}")
    print(f"  agent     {demo_agent.NAME} {'loaded' if demo_agent.load_demo_agent() else 'there already'}")
    with WeatherServer() as weather:
        print(f"  weather   {weather.url}")
        manager = get_mcp_manager()
        try:
            all_well = _show(manager)
            all_well &= _show_rest()
            all_well &= _show_agent()
            if serve_on is not None:
                _serve(*serve_on)
        finally:
            close_mcp_manager()
    print(
        "\nEverything worked." if all_well else "\nSomething did not work: see FAILED and the states above."
    )
    return 0 if all_well else 1


def _show(manager: MCPClientManager) -> bool:
    _heading("Connecting")
    started = time.monotonic()

    def report(name: str, status: ServerStatus) -> None:
        print(
            f"  {name:<12}  {status.state:<10}  {time.monotonic() - started:5.2f} s  {status.reason}",
            flush=True,
        )

    statuses = manager.connect_all(on_progress=report)
    _heading("Servers")
    rows = [
        (s.name, s.transport, s.target, s.state, s.tools, s.resources, s.prompts, s.protocol_version or "")
        for s in statuses.values()
    ]
    print(
        table(("server", "transport", "target", "state", "tools", "resources", "prompts", "protocol"), rows)
    )
    _heading("Tools")
    tools = manager.list_tools()
    print(table(("tool", "description"), [(tool.public_name, tool.description or "") for tool in tools]))
    _heading("Calls")
    all_calls_well = tour.walk(tour.STOPS, manager)
    return all_calls_well and all(status.is_ready for status in statuses.values())


def _show_rest() -> bool:
    """Call tools over REST on a server that is a process of its own, as another program would."""
    _heading("REST")
    token, _ = Token.objects.get_or_create(user=get_user_model().objects.get(username=LOGIN))
    # Whatever keys are in the environment: the demo needs no network.
    scripted = {"EXAMPLE_MODEL": demo_agent.SCRIPTED}
    serving = ("-m", "example_project.serving", "--until-stdin-closes")
    with ReadyProcess(*serving, environment=scripted) as server:
        print(f"  served by a process of its own at {server.url}api/mcp/")
        site = tour.RestSite(
            api=RestClient(f"{server.url}api/mcp/", token.key),
            agent=RestClient(f"{server.url}agents/", token.key),
        )
        return tour.walk(tour.REST_STOPS, site)


def _show_agent() -> bool:
    """Let the agent answer a prompt, with a model that follows a script, and print what happens."""
    _heading("An agent")
    print(f"  prompt  {demo_agent.PROMPT}")
    last = ""
    for event in stream_agent(demo_agent.NAME, demo_agent.PROMPT, model=demo_agent.scripted_model()):
        last = event.kind
        if event.kind == "tool.call":
            print(f"  call    {event.data['name']} {json.dumps(event.data['arguments'])}", flush=True)
        elif event.kind == "tool.result":
            said = " ".join(event.data["text"].split())
            print(f"  {event.data['outcome']:<6}  {event.data['name']}: {said}", flush=True)
        elif event.is_last:
            run = services.get_run(event.run_id)
            print(f"  answer  {run.text or run.detail or run.status}")
    return last == "run.completed"


def _make_login() -> None:
    users = get_user_model().objects
    if users.filter(username=LOGIN).exists():
        reset = f".venv/bin/python manage.py changepassword {LOGIN}"
        print(f"  login     {LOGIN}, password as before (another one: {reset})")
        return
    password = secrets.token_urlsafe(12)
    users.create_superuser(LOGIN, password=password)
    print(f"  login     {LOGIN}, password {password} (shown only this once)")


def _serve(host: str, port: int) -> None:
    _heading("Serving")
    print(f"  servers         http://{host}:{port}/")
    print(f"  administration  http://{host}:{port}/admin/ (log in as {LOGIN})")
    print(f"  REST            http://{host}:{port}/api/mcp/ (token: manage.py drf_create_token {LOGIN})")
    print('  an agent        .venv/bin/python manage.py mcp_client run demo "..." (with a key: a real model)')
    print("  Ctrl-C stops everything.\n", flush=True)
    try:
        # In this very process, so that the pages show the connections made above.
        call_command("runserver", f"{host}:{port}", use_reloader=False)
    except (KeyboardInterrupt, SystemExit):
        # runserver ends both ways on Ctrl-C.
        print("\nStopping ...", flush=True)


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _heading(text: str) -> None:
    print(f"\n{text}", flush=True)
