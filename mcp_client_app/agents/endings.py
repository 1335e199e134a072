"""How runs end: from what ended one to a status, a code, and a sentence without secrets.

What providers say is not quoted: some repeat the key, or what was sent.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    OutputTokenLimitExceeded,
    RunCancelled,
    RunTimedOut,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.messages import ModelResponse

from mcp_client_app.datatypes import AgentSpec, RunStatus
from mcp_client_app.exceptions import MCPClientError, ModelError

logger = logging.getLogger(__name__)

__all__ = ["CANCELLED", "Ending", "RoundsUsedUpError", "ending_of", "require_whole"]

CANCELLED = "The run was cancelled."

_CODE = re.compile(r"[a-z][a-z_]{1,49}\Z")
"""A word for machines: nothing else of an answer is repeated."""
_HINTS = {
    400: "it refused the request",
    401: "check the API key",
    402: "check the account",
    403: "the API key may not do this",
    404: "check the name of the model, and the base URL",
    413: "the conversation is too long for it",
    429: "its limits are used up; try again later",
}


class RoundsUsedUpError(Exception):
    """The model asks for tools once more than it may."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended."""

    status: RunStatus
    code: str = ""
    detail: str = ""


def ending_of(error: Exception, spec: AgentSpec, seconds: float) -> Ending:
    """Return how a run ended that this error has ended."""
    limit = RunStatus.LIMIT_REACHED
    if isinstance(error, RoundsUsedUpError):
        return Ending(
            limit,
            "max_rounds",
            f"After {spec.max_rounds} rounds with tools the model asked for more; those calls were not made.",
        )
    if isinstance(error, RunTimedOut):
        return Ending(limit, "time_limit", f"The run was not done within {seconds:g} seconds.")
    if isinstance(error, UsageLimitExceeded):
        return Ending(limit, "token_limit", f"The run has used more than {spec.token_limit} tokens.")
    if isinstance(error, RunCancelled):
        return Ending(RunStatus.CANCELLED, "", CANCELLED)
    if isinstance(error, MCPClientError):
        return Ending(RunStatus.FAILED, error.code, str(error))
    return Ending(RunStatus.FAILED, *_failure(error, spec.model))


def require_whole(answer: ModelResponse) -> None:
    """Raise if an answer breaks off: what was said of it is no answer.

    Raises:
        OutputTokenLimitExceeded: At the model's own limit.
        ContentFilterError: Where the provider's filter has stopped it.
    """
    if answer.finish_reason == "length":
        raise OutputTokenLimitExceeded("The answer breaks off.")
    if answer.finish_reason == "content_filter":
        raise ContentFilterError("The answer breaks off.")


def _failure(error: Exception, model: str) -> tuple[str, str]:
    code = ModelError.code
    if isinstance(error, ModelHTTPError):
        return (
            code,
            f"The provider of the model {model!r} answered with HTTP {error.status_code}{_why(error)}.",
        )
    if isinstance(error, ModelAPIError):
        return code, f"The provider of the model {model!r} could not be reached, or did not answer."
    if isinstance(error, OutputTokenLimitExceeded):
        return code, "The model's answer was cut off at its own limit of tokens; raise 'max_tokens'."
    if isinstance(error, ContentFilterError):
        return code, "The provider's content filter kept the model's answer back."
    if isinstance(error, UnexpectedModelBehavior):
        return code, "The model gave no answer that could be used."
    if isinstance(error, UserError):
        return "configuration", f"The agent cannot be run like this: {str(error)[:300]}"
    logger.error("An unexpected error ended a run of the model %r.", model, exc_info=error)
    return "error", f"An unexpected error ended the run ({type(error).__name__})."


def _why(error: ModelHTTPError) -> str:
    """Return what may be told of a refusal: its code, if it looks like one, and what to do."""
    told = next((each for each in (error.provider_error_code, error.provider_error_type) if each), None)
    named = f" ({told})" if told and _CODE.match(told) else ""
    if isinstance(error, ModelContextWindowExceededError):
        hint = _HINTS[413]
    else:
        hint = _HINTS.get(error.status_code) or ("it is in trouble" if error.status_code >= 500 else "")
    return f"{named}: {hint}" if hint else named
