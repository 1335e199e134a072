"""The verb ``run``: an agent at work, told while it works."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from mcp_client_app import services
from mcp_client_app.agents.api import stream_agent
from mcp_client_app.agents.result import AgentResult
from mcp_client_app.agents.streams import RunEvent
from mcp_client_app.management.console import Console
from mcp_client_app.management.failures import ExitCode, failure, usage_error
from mcp_client_app.management.progress import ProgressLine
from mcp_client_app.management.verbs import Verbs
from mcp_client_app.models import AgentRun
from mcp_client_app.toolsets.text import shorten

__all__ = ["add_verbs"]

LONGEST = 160
"""Characters of arguments or a result in a line that says what happens."""


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verb."""
    verb = verbs.add(
        "run",
        run_agent,
        help="have an agent answer a prompt",
        epilog="The answer goes to standard output, what happens on the way to standard error.",
    )
    verb.add_argument("agent", metavar="AGENT")
    verb.add_argument("prompt", metavar="PROMPT", help="what to say to it, or '-' for standard input")
    verb.add_argument(
        "--continue", dest="continued", metavar="RUN", help="the id of a run to go on from: its conversation"
    )
    verb.add_argument("--deps", metavar="JSON", help="an object of values that the instructions refer to")


def run_agent(options: argparse.Namespace, console: Console) -> None:
    """Run an agent, and show its answer."""
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    if not prompt.strip():
        raise usage_error("The prompt is empty: say something to the agent.")
    history = list(services.get_run(options.continued).messages) if options.continued else None
    run_id = ""
    with console.progress() as progress:
        progress.waiting(f"asking {options.agent} ...")
        for event in stream_agent(options.agent, prompt, history=history, deps=_deps(options.deps)):
            run_id = event.run_id
            _tell(event, progress)
    _show(services.get_run(run_id), console)


def _deps(text: str | None) -> Any:
    if text is None:
        return None
    try:
        deps = json.loads(text)
    except ValueError as error:
        raise usage_error(f"--deps: this is no JSON: {error}.") from None
    if not isinstance(deps, dict):
        raise usage_error("--deps: give a JSON object.")
    return deps


def _tell(event: RunEvent, progress: ProgressLine) -> None:
    data = event.data
    match event.kind:
        case "tool.call":
            arguments = json.dumps(data["arguments"], ensure_ascii=False)
            progress.show(f"calls {data['name']} {shorten(arguments, LONGEST)}")
        case "tool.progress":
            progress.waiting(f"{data['name']}: {data['progress']:g} {data['message'] or ''}".rstrip())
        case "tool.result":
            progress.show(f"{data['outcome']}: {data['name']}: {shorten(data['text'], LONGEST)}")


def _show(run: AgentRun, console: Console) -> None:
    pending = services.approval_state(run.pk).pending if run.state.is_paused else ()
    result = AgentResult.of(run, tuple(str(each.pk) for each in pending))
    if console.as_json:
        console.document(_document(result))
    elif result.text:
        console.text(result.text)
    if result.is_complete:
        return
    if run.state.is_paused:
        for each in pending:
            console.note(f"{each.get_kind_display()}: {each.tool}, {each.pk}")
        said = f"The run {run.pk} waits for people: {run.status}. It goes on when they have decided,"
        raise failure(f"{said} in the admin or over REST.", ExitCode.PARTLY)
    raise failure(f"The run {run.pk} has no answer: {result.detail or run.status}")


def _document(result: AgentResult) -> dict[str, Any]:
    return {
        "run": result.run_id,
        "agent": result.agent,
        "status": result.status.value,
        "code": result.code,
        "detail": result.detail,
        "text": result.text,
        "tool_rounds": result.tool_rounds,
        "usage": dict(result.usage),
        "approvals": list(result.approvals),
    }
