from __future__ import annotations

import pytest
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    OutputTokenLimitExceeded,
    UnexpectedModelBehavior,
    UserError,
)

from mcp_client_app.agents.endings import ending_of
from mcp_client_app.datatypes import AgentSpec, RunStatus
from mcp_client_app.exceptions import UnknownAgentError

SPEC = AgentSpec(name="clerk", model="openai:gpt-5")
SECRET = "sk-secret"


def http(status, code=None, kind=None):
    body = {"error": {"message": f"The key {SECRET} is wrong", "code": code, "type": kind}}
    return ModelHTTPError(status, "gpt-5", body, provider_error_code=code, provider_error_type=kind)


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (http(400, "invalid_request_error"), "model_error", "HTTP 400 (invalid_request_error): it refused"),
        (http(400, SECRET), "model_error", "HTTP 400: it refused the request"),
        (http(401, None, "authentication_error"), "model_error", "(authentication_error): check the API key"),
        (http(404), "model_error", "check the name of the model"),
        (http(418), "model_error", "HTTP 418."),
        (http(503), "model_error", "it is in trouble"),
        (
            ModelHTTPError.for_category(
                category=ModelContextWindowExceededError, status_code=400, model_name="gpt-5", body=SECRET
            ),
            "model_error",
            "the conversation is too long",
        ),
        (ModelAPIError("gpt-5", SECRET), "model_error", "could not be reached"),
        (OutputTokenLimitExceeded(SECRET), "model_error", "max_tokens"),
        (ContentFilterError(SECRET), "model_error", "content filter"),
        (UnexpectedModelBehavior(SECRET), "model_error", "no answer that could be used"),
        (UserError("Give a value."), "configuration", "Give a value."),
        (UnknownAgentError("There is no agent 'x'."), "unknown_agent", "no agent 'x'"),
    ],
)
def test_what_ends_a_run_is_told_without_what_a_provider_said(error, code, told):
    ending = ending_of(error, SPEC, 300)

    assert (ending.status, ending.code) == (RunStatus.FAILED, code)
    assert told in ending.detail
    assert SECRET not in ending.detail
