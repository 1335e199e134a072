"""The ledger of a run's calls: each is written down before it is sent, and what became of it afterwards.

Whoever goes on with a run after a crash finds here what may have happened, and repeats nothing
that may have had an effect.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import InputRequiredError, MCPClientError, RunStateError, ToolError
from mcp_client_app.models import RunCall
from mcp_client_app.services.fingerprints import call_fingerprint
from mcp_client_app.services.run_rows import MAX_OWNER, database, lock, lost, parsed_id, storable
from mcp_client_app.services.toolset_results import ToolsetResult
from mcp_client_app.toolsets import PreparedCall, RenderedResult
from mcp_client_app.toolsets.rendering import ImagePart, TextPart, error_line

logger = logging.getLogger(__name__)

__all__ = ["RunJournal", "recorded_call", "recorded_ids", "recorded_result"]

OK = "ok"
"""The outcome of a call that went well."""


class RunJournal:
    """Writes down one call of a run, for the worker that holds the run.

    Args:
        run_id: The run.
        owner: The worker.
        call_id: The call; unique within the run.
    """

    def __init__(self, run_id: object, owner: str, call_id: str) -> None:
        self._run_id = run_id
        self._owner = owner[:MAX_OWNER]
        self._call_id = call_id
        self._started_at = timezone.now()

    def begin(self, call: PreparedCall, *, is_safe: bool) -> None:
        """Write down that the call is about to be sent.

        Raises:
            RunStateError: The worker does not hold the run any more, or the run is being cancelled;
                or the call was made before, and may have had an effect.
        """
        started_at = timezone.now()
        fields = {
            "server_name": call.tool.server,
            "tool": call.tool.name,
            "fingerprint": call_fingerprint(call.tool, call.given),
            "arguments": storable(call.given),
            "is_safe": is_safe,
            "status": RunCall.Status.STARTED,
            "code": "",
            "result": None,
            "started_at": started_at,
            "finished_at": None,
        }
        with transaction.atomic(using=database()):
            is_held = lock(
                self._run_id,
                lease_owner=self._owner,
                status=RunStatus.RUNNING.value,
                cancel_requested_at=None,
            )
            if not is_held:
                raise lost(self._run_id)
            # While the run is locked nobody else begins one of its calls.
            self._write(fields)
        self._started_at = started_at

    def end(self, call: PreparedCall, result: ToolsetResult | None, error: BaseException | None) -> None:
        """Write down what became of the call. Never raises for want of the database: then it is unknown."""
        error = error or (result.error if result is not None else None)
        status, code = _outcome(result, error)
        try:
            # Of this attempt alone: another worker may have repeated a safe call meanwhile.
            _calls(self._run_id).filter(call_id=self._call_id, started_at=self._started_at).update(
                status=status, code=code, result=_kept(call, result, error), finished_at=timezone.now()
            )
        except DatabaseError as failure:
            logger.error(  # without the traceback: databases quote the row
                "What became of a call of %r in the run %s could not be written down: %s",
                call.tool.server,
                self._run_id,
                type(failure).__name__,
            )

    def _write(self, fields: dict[str, Any]) -> None:
        run_id = parsed_id(self._run_id)
        earlier = _calls(run_id).filter(call_id=self._call_id).first()
        if earlier is None:
            RunCall.objects.using(database()).create(run_id=run_id, call_id=self._call_id, **fields)
        elif earlier.fingerprint == fields["fingerprint"] and _is_repeatable(earlier):
            _calls(run_id).filter(pk=earlier.pk).update(**fields)
        else:
            raise RunStateError(
                f"The call {self._call_id!r} of this run was made before ({earlier.status}); "
                "it is not repeated.",
                run=str(run_id),
                status=earlier.status,
            )


def recorded_call(run_id: object, call_id: str) -> RunCall | None:
    """Return what is known of a call of a run; None if it was never begun."""
    return _calls(run_id).filter(call_id=call_id).first()


def recorded_ids(run_id: object) -> set[str]:
    """Return the calls of a run that were ever begun."""
    return set(_calls(run_id).values_list("call_id", flat=True))


def recorded_result(call: RunCall) -> RenderedResult | None:
    """Return what the model read of a call; None if there was nothing to read."""
    if not isinstance(call.result, Mapping):
        return None
    parts = tuple(
        ImagePart(part["data"], part["mime_type"], part["note"]) if "data" in part else TextPart(part["text"])
        for part in call.result["parts"]
    )
    return RenderedResult(parts, is_error=call.result["is_error"], truncated=call.result["truncated"])


def _calls(run_id: object) -> QuerySet[RunCall]:
    return RunCall.objects.using(database()).filter(run_id=parsed_id(run_id))


def _is_repeatable(call: RunCall) -> bool:
    """Say whether making a call once more does no harm: it is safe, or the server awaits it, with answers."""
    if call.status == RunCall.Status.FAILED:
        return call.code == InputRequiredError.code
    return call.is_safe and call.status != RunCall.Status.DONE


def _outcome(result: ToolsetResult | None, error: BaseException | None) -> tuple[RunCall.Status, str]:
    if error is None:
        if result is not None and result.is_error:
            return RunCall.Status.FAILED, ToolError.code
        return RunCall.Status.DONE, OK
    if not isinstance(error, MCPClientError):
        return RunCall.Status.UNKNOWN, "interrupted"
    is_unknown = error.details().get("outcome") == "unknown"
    return RunCall.Status.UNKNOWN if is_unknown else RunCall.Status.FAILED, error.code


def _kept(call: PreparedCall, result: ToolsetResult | None, error: BaseException | None) -> Any:
    if result is not None:
        return _stored(result.rendered)
    if isinstance(error, MCPClientError) and not isinstance(error, InputRequiredError):
        line = TextPart(error_line(call.tool.public_name, error))
        return _stored(RenderedResult((line,), is_error=True))
    return None


def _stored(rendered: RenderedResult) -> Any:
    parts = [
        {"data": part.data, "mime_type": part.mime_type, "note": part.note}
        if isinstance(part, ImagePart)
        else {"text": part.text}
        for part in rendered.parts
    ]
    return storable({"parts": parts, "is_error": rendered.is_error, "truncated": rendered.truncated})
