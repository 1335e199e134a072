"""Errors and exit codes."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.management import CommandError

from mcp_client_app import exceptions
from mcp_client_app.management.failures import (
    ExitCode,
    error_document,
    exit_code_of,
    explained,
    failure,
    outcome,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (exceptions.UnknownServerError(), 2),
        (exceptions.UnknownToolError(), 2),
        (exceptions.UnknownToolError(unavailable=["files"]), 1),
        (exceptions.DuplicateServerError(), 2),
        (exceptions.InvalidArgumentsError(), 2),
        (exceptions.ToolBlockedError(), 2),
        (ValidationError("wrong"), 2),
        (ImproperlyConfigured("wrong"), 2),
        (exceptions.ServerCrashedError(), 1),
        (exceptions.RequestTimeoutError(), 1),
        (exceptions.ProtocolError(), 1),
    ],
)
def test_what_has_to_be_changed_first_is_told_from_what_failed(error, code):
    assert exit_code_of(error) == code


@pytest.mark.parametrize(
    ("failed", "total", "code"),
    [(0, 3, ExitCode.OK), (0, 0, ExitCode.OK), (3, 3, ExitCode.FAILED), (1, 3, ExitCode.PARTLY)],
)
def test_a_part_that_failed_is_told_from_all(failed, total, code):
    assert outcome(failed, total) is code


def test_the_message_of_a_server_cannot_drive_the_terminal():
    assert str(failure("\x1b[2Jboo\nmore")) == "�[2Jboo\nmore"


def test_wrong_fields_are_named_each_on_its_line():
    error = ValidationError({"url": ["Enter a URL.", "Too long."], "cwd": ["No."], "__all__": ["Hm."]})
    assert explained(error).splitlines() == ["url: Enter a URL.", "url: Too long.", "cwd: No.", "Hm."]


def test_a_crash_is_explained_with_what_the_process_said():
    error = exceptions.ServerCrashedError("It ended.", stderr_tail=["no module x", "bye"])
    assert explained(error) == "It ended.\n  stderr: no module x\n  stderr: bye"


def test_machines_get_code_message_and_details():
    error = exceptions.ServerCrashedError("It ended.", server="files", exit_code=7)
    document = error_document(error)
    assert (document["code"], document["message"], document["server"]) == (
        "server_crashed",
        "It ended.",
        "files",
    )
    assert document["details"]["exit_code"] == 7
    assert error_document(ValidationError({"url": ["No."]}))["fields"] == {"url": ["No."]}
    assert error_document(CommandError("Hm.", returncode=2))["code"] == "usage"
