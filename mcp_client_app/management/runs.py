"""The verbs ``runs`` and ``reap``: what agents have done, and tidying up behind them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from json import dumps
from typing import Any
from uuid import UUID

from mcp_client_app import services
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import UnknownRunError
from mcp_client_app.management.console import Console
from mcp_client_app.management.failures import usage_error
from mcp_client_app.management.tables import Column
from mcp_client_app.management.verbs import Verbs
from mcp_client_app.models import AgentRun, Approval, RunCall
from mcp_client_app.moments import local
from mcp_client_app.services.run_feed import feed
from mcp_client_app.services.run_settling import Settled

__all__ = ["add_verbs"]

LATEST = 20
_GOING_ON = (Settled.RESUMED, Settled.HANDED_OUT)


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verbs."""
    verb = verbs.add("runs", show_runs, help="show the runs of agents, or one of them with its calls")
    verb.add_argument("run_id", metavar="RUN", nargs="?", help="the id of a run: this one only, with details")
    verb.add_argument("--agent", help="those of this agent")
    verb.add_argument(
        "--status", choices=[status.value for status in RunStatus], help="those that stand there"
    )
    verb.add_argument("--limit", type=_count, default=LATEST, help=f"the latest so many ({LATEST})")
    verb.add_argument("--cancel", action="store_true", help="end the run")

    verb = verbs.add("reap", reap, help="settle runs that nobody works on any more, and delete what is old")
    verb.add_argument(
        "--older-than", type=_days, metavar="DAYS", help="also delete runs that ended longer ago"
    )


# Looking ---------------------------------------------------------------------------------


def show_runs(options: argparse.Namespace, console: Console) -> None:
    """Show runs, latest first; or one, which may be cancelled before."""
    if options.run_id is not None:
        _show_one(options, console)
        return
    if options.cancel:
        raise usage_error("RUN: --cancel needs the id of the run to end.")
    runs = list(services.list_runs(agent=options.agent, status=options.status, limit=options.limit))
    if console.as_json:
        console.document({"runs": [_document(run) for run in runs]})
        return
    console.table(
        [
            Column("RUN"),
            Column("STATUS", paint=console.paint),
            Column("AGENT"),
            Column("USER"),
            Column("CREATED"),
            Column("ROUNDS"),
            Column("PROMPT", can_shrink=True),
        ],
        [
            (run.pk, run.status, run.agent_name, run.username, _when(run), run.tool_rounds, run.prompt)
            for run in runs
        ],
        empty="There are no such runs.",
    )


def _show_one(options: argparse.Namespace, console: Console) -> None:
    run = services.cancel_run(options.run_id) if options.cancel else services.get_run(options.run_id)
    calls = list(run.calls.order_by("started_at", "pk"))
    pending = services.approval_state(run.pk).pending if run.state.is_paused else ()
    if console.as_json:
        parts = {"calls": [_call_document(call) for call in calls], "waits_for": _waiting_documents(pending)}
        console.document({"run": _document(run) | parts})
        return
    console.line(f"{run.agent_name}: {run.status}{f' ({run.code})' if run.code else ''}")
    for text in (run.detail, _going(run)):
        if text:
            console.line(text)
    console.heading("Prompt")
    console.line(run.prompt)
    _show_waiting(pending, console)
    if calls:
        console.heading("Calls")
        console.table(
            [Column("TOOL"), Column("STATUS", paint=console.paint), Column("OUTCOME"), Column("SAFE")],
            [
                (f"{call.server_name}: {call.tool}", call.status, call.code, "yes" if call.is_safe else "no")
                for call in calls
            ],
            empty="",
        )
    if run.text:
        console.heading("Answer")
        console.text(run.text)


def _show_waiting(pending: Sequence[Approval], console: Console) -> None:
    if not pending:
        return
    console.heading("Waits for")
    console.table(
        [Column("APPROVAL"), Column("KIND"), Column("TOOL"), Column("ARGUMENTS", can_shrink=True)],
        [
            (row.pk, row.get_kind_display(), f"{row.server_name}: {row.tool}", dumps(row.arguments))
            for row in pending
        ],
        empty="",
    )


def _going(run: AgentRun) -> str:
    if run.state is not RunStatus.RUNNING:
        return ""
    asked = " Somebody has asked to cancel it." if run.cancel_requested_at else ""
    return f"{run.lease_owner} works on it.{asked}"


# Tidying up ------------------------------------------------------------------------------


def reap(options: argparse.Namespace, console: Console) -> None:
    """Settle and delete; runs that go on in this process, go on before it ends."""
    report = services.reap(older_than=options.older_than)
    going_on = [run_id for run_id, what in report.runs.items() if what in _GOING_ON]
    if going_on and app_settings.RUN_BACKEND == "thread":
        with console.progress(len(going_on)) as progress:
            for run_id in going_on:
                progress.waiting(f"going on with {run_id} ...")
                _wait_for(run_id)
    counts = {
        "approvals": report.approvals,
        "deleted_runs": report.deleted_runs,
        "deleted_approvals": report.deleted_approvals,
        "deleted_receipts": report.deleted_receipts,
    }
    if console.as_json:
        console.document({"runs": {run_id: str(what) for run_id, what in report.runs.items()}, **counts})
        return
    if report.runs or report.is_empty:
        console.table(
            [Column("RUN"), Column("DONE", paint=console.paint)],
            [(run_id, str(what)) for run_id, what in report.runs.items()],
            empty="There is nothing to do.",
        )
    for name, count in counts.items():
        if count:
            console.line(f"{name.replace('_', ' ')}: {count}")


def _wait_for(run_id: str) -> None:
    """Wait until a run comes to rest, which threads of this process execute."""
    with feed.watch(UUID(run_id)) as watch:
        try:
            while services.get_run(run_id).state in (RunStatus.QUEUED, RunStatus.RUNNING):
                watch.get(None)
        except UnknownRunError:
            pass  # somebody has deleted it


# Words and documents -----------------------------------------------------------------------


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError("Give a whole number, 1 or more.")
    return value


def _days(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    # Written so that NaN fails, too.
    if not 0 <= value < 100_000:
        raise argparse.ArgumentTypeError("Give a number of days.")
    return value


def _when(run: AgentRun) -> str:
    return local(run.created_at).strftime("%Y-%m-%d %H:%M:%S")


def _document(run: AgentRun) -> dict[str, Any]:
    return {
        "id": run.pk,
        "agent": run.agent_name,
        "user": run.username or None,
        "status": run.status,
        "code": run.code or None,
        "detail": run.detail or None,
        "prompt": run.prompt,
        "text": run.text,
        "tool_rounds": run.tool_rounds,
        "usage": run.usage,
        "seconds_used": run.seconds_used,
        "attempts": run.attempts,
        "worker": run.lease_owner or None,
        "cancel_requested_at": run.cancel_requested_at,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }


def _waiting_documents(pending: Sequence[Approval]) -> list[dict[str, Any]]:
    return [
        {
            "approval": row.pk,
            "kind": row.kind,
            "call_id": row.call_id,
            "server": row.server_name,
            "tool": row.tool,
            "arguments": row.arguments,
            "expires_at": row.expires_at,
        }
        for row in pending
    ]


def _call_document(call: RunCall) -> dict[str, Any]:
    return {
        "call_id": call.call_id,
        "server": call.server_name,
        "tool": call.tool,
        "arguments": call.arguments,
        "status": call.status,
        "code": call.code or None,
        "is_safe": call.is_safe,
        "started_at": call.started_at,
        "finished_at": call.finished_at,
    }
