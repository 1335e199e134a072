"""Exit codes, and how errors become them.

The codes are part of the command's interface; ``docs/commands.md`` lists them.
"""

from __future__ import annotations

import enum
from typing import Any, Final

from django.core.exceptions import NON_FIELD_ERRORS, ImproperlyConfigured, ValidationError
from django.core.management.base import CommandError

from mcp_client_app import exceptions
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.management.tables import visible

__all__ = ["ExitCode", "error_document", "exit_code_of", "explained", "failure", "outcome", "usage_error"]


class ExitCode(enum.IntEnum):
    """What the command's exit status means."""

    OK = 0
    FAILED = 1
    """The operation failed: a server could not be reached, a tool reported a failure."""
    USAGE = 2
    """Something has to be changed first: an option, a name, an argument, a configuration."""
    PARTLY = 3
    """Some of it worked."""
    INTERRUPTED = 130
    """Ended by Ctrl-C, as shells say it."""


_TO_BE_CHANGED: Final = (
    exceptions.ConfigurationError,
    exceptions.UnknownAgentError,
    exceptions.UnknownRunError,
    exceptions.RunStateError,
    exceptions.UnknownServerError,
    exceptions.UnknownToolError,
    exceptions.UnknownResourceError,
    exceptions.UnknownPromptError,
    exceptions.AmbiguousToolError,
    exceptions.BadToolNameError,
    exceptions.InvalidArgumentsError,
    exceptions.ToolBlockedError,
    exceptions.PermissionDeniedError,
    exceptions.RunStateError,
)
"""Errors that another try of the same command meets again."""


def usage_error(message: str) -> CommandError:
    """Return the error for a mistake in what was typed."""
    return failure(message, ExitCode.USAGE)


def failure(message: str, code: ExitCode = ExitCode.FAILED) -> CommandError:
    """Return the error that ends the command; what it quotes of a server is harmless on a terminal."""
    return CommandError(visible(message), returncode=code)


def outcome(failed: int, total: int) -> ExitCode:
    """Return the exit code of work that failed for some of ``total`` things."""
    if not failed:
        return ExitCode.OK
    return ExitCode.FAILED if failed >= total else ExitCode.PARTLY


def exit_code_of(error: Exception) -> ExitCode:
    """Return the exit code that an error of a service means."""
    if isinstance(error, exceptions.UnknownToolError) and error.unavailable:
        # It may be the tool of a server that could not be asked.
        return ExitCode.FAILED
    if isinstance(error, (*_TO_BE_CHANGED, ValidationError, ImproperlyConfigured)):
        return ExitCode.USAGE
    return ExitCode.FAILED


def error_document(error: Exception) -> dict[str, Any]:
    """Return an error for machines: ``code``, ``message``, and what is known besides."""
    if isinstance(error, MCPClientError):
        return {
            "code": error.code,
            "message": error.message,
            "server": error.server,
            "details": error.details(),
        }
    if isinstance(error, ValidationError):
        return {"code": "invalid", "message": "Some values are wrong.", "fields": _by_field(error)}
    is_usage = isinstance(error, ImproperlyConfigured) or getattr(error, "returncode", 0) == ExitCode.USAGE
    return {"code": "usage" if is_usage else "failed", "message": str(error)}


def explained(error: Exception) -> str:
    """Return the error for people: with the fields to mend, and the names to choose from."""
    if isinstance(error, ValidationError):
        fields = _by_field(error)
        lines = [f"{field}: {text}" if field else text for field, found in fields.items() for text in found]
        return "\n".join(lines)
    if isinstance(error, exceptions.ServerCrashedError) and error.stderr_tail:
        return "\n".join([str(error), *(f"  stderr: {line}" for line in error.stderr_tail)])
    if isinstance(error, exceptions.ConfigurationError) and error.field:
        return f"{error.field}: {error}"
    return str(error)


def _by_field(error: ValidationError) -> dict[str, list[str]]:
    if not hasattr(error, "error_dict"):
        return {"": list(error.messages)}
    return {"" if field == NON_FIELD_ERRORS else field: found for field, found in error.message_dict.items()}
