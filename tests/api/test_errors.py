"""Every failure has the one form, whoever finds it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    ValidationError,
)
from django.core.signals import got_request_exception
from django.http import Http404
from django.urls import resolve

from mcp_client_app import exceptions
from mcp_client_app.api.errors import STATUSES, answer_to
from tests.api.conftest import MOUNT

DOCS = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
NOT_ANSWERED = {"error", "tool_failed", "sync_in_async"}
"""The root, a result with ``is_error``, and a mistake of the program."""


def test_every_code_has_its_status():
    codes = {getattr(exceptions, name).code for name in exceptions.__all__}
    assert set(STATUSES) == codes - NOT_ANSWERED


def test_the_documentation_gives_the_same_statuses():
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    documented = {code: int(status) for code, status in rows if code != "tool_failed"}
    assert documented == dict(STATUSES)


def send(api, method: str, place: str, data: bytes = b"", content_type: str = "application/json", **headers):
    return api.client.generic(method, MOUNT + place, data, content_type, headers=headers)


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        ({"method": "POST", "place": "servers/", "data": b"{"}, 400, "parse_error"),
        ({"method": "POST", "place": "servers/", "data": b"\xff"}, 400, "parse_error"),
        ({"method": "POST", "place": "servers/", "data": b'{"name": NaN}'}, 400, "parse_error"),
        ({"method": "POST", "place": "servers/", "data": b"[" * 100_000}, 400, "parse_error"),
        ({"method": "POST", "place": "servers/", "data": b"[]"}, 400, "invalid"),
        ({"method": "POST", "place": "servers/", "data": b"null"}, 400, "invalid"),
        ({"method": "GET", "place": "nowhere/"}, 404, "not_found"),
        ({"method": "POST", "place": "servers/a/b/c"}, 404, "not_found"),
        ({"method": "DELETE", "place": "servers/"}, 405, "method_not_allowed"),
        ({"method": "GET", "place": "tools/call"}, 405, "method_not_allowed"),
        ({"method": "PROPFIND", "place": "servers/"}, 405, "method_not_allowed"),
        ({"method": "GET", "place": "servers/", "accept": "image/png"}, 406, "not_acceptable"),
        (
            {"method": "POST", "place": "servers/", "data": b"x", "content_type": "text/csv"},
            415,
            "unsupported_media_type",
        ),
    ],
)
def test_what_the_framework_finds_has_the_one_form(api, request_, status, code):
    answer = send(api, **request_)

    assert (answer.status_code, answer.data["code"], answer.data["server"]) == (status, code, None)
    assert answer.data["detail"]
    assert answer["Content-Type"] == "application/json"


def test_a_body_that_is_too_large_is_413(api, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    body = b'{"name": "' + b"x" * 1000 + b'"}'
    answer = send(api, "POST", "servers/", body)
    assert (answer.status_code, answer.data["code"]) == (413, "request_too_large")


def test_nobody_is_told_how_to_sign_in(anonymous, settings):
    by_session = anonymous.get("servers/")
    settings.MCP_CLIENT_API_AUTHENTICATION = ["rest_framework.authentication.BasicAuthentication"]
    by_basic = anonymous.get("servers/")

    assert (by_session.status_code, by_session.data["code"]) == (403, "not_authenticated")
    assert "WWW-Authenticate" not in by_session
    assert (by_basic.status_code, by_basic.data["code"]) == (401, "not_authenticated")
    assert by_basic["WWW-Authenticate"].startswith("Basic ")


def test_wrong_credentials_are_told_from_none(anonymous, settings):
    settings.MCP_CLIENT_API_AUTHENTICATION = ["rest_framework.authentication:BasicAuthentication"]
    answer = anonymous.get("servers/", authorization="Basic bm9ib2R5Om5vdGhpbmc=")
    assert (answer.status_code, answer.data["code"]) == (401, "authentication_failed")


def test_a_throttle_says_when_to_come_again(api, settings):
    settings.MCP_CLIENT_API_THROTTLES = [f"{__name__}.Never"]
    answer = api.get("health/")
    assert (answer.status_code, answer.data["code"]) == (429, "throttled")
    assert answer["Retry-After"] == "1235"


def test_a_mistake_of_the_program_tells_nothing_and_is_reported(api, settings, caplog):
    api.client.raise_request_exception = False
    reported = []

    def receiver(**kwargs):
        reported.append(kwargs)

    got_request_exception.connect(receiver)
    try:
        settings.MCP_CLIENT_API_THROTTLES = [f"{__name__}.Failing"]
        answer = api.get("servers/")
    finally:
        got_request_exception.disconnect(receiver)

    assert (answer.status_code, answer.data["code"]) == (500, "error")
    assert "s3cret" not in answer.content.decode()
    assert len(reported) == 1
    assert "s3cret" in caplog.text


def test_an_error_of_ours_without_a_status_is_a_mistake_too():
    answer = answer_to(exceptions.AsyncContextError("internal matters"))
    assert (answer.status, answer.is_expected) == (500, False)
    assert "internal" not in answer.body["detail"].replace("internal reason", "")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (PermissionDenied("Not you."), 403, "permission_denied"),
        (RequestDataTooBig("x"), 413, "request_too_large"),
        (SuspiciousOperation("x"), 400, "bad_request"),
        (ValidationError("Wrong."), 400, "invalid"),
        (Http404(), 404, "not_found"),
    ],
)
def test_errors_of_django_have_the_one_form(error, status, code):
    answer = answer_to(error)
    assert (answer.status, answer.body["code"], answer.is_expected) == (status, code, True)


def test_requests_run_outside_transactions(api):
    view: Any = resolve(f"{MOUNT}tools/call/").func
    assert view._non_atomic_requests == {"default"}


class Never:
    """A throttle class of a project."""

    def allow_request(self, request, view):
        return False

    def wait(self):
        return 1234.5


class Failing:
    """A class of a project that has a mistake."""

    def allow_request(self, request, view):
        raise RuntimeError("s3cret")
