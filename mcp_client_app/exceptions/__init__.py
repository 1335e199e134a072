"""Every error that this app raises.

::

    MCPClientError                    base: .code (stable), .server (name or None)
    ├─ ConfigurationError             configuration       a stored or given configuration cannot work
    │  ├─ DuplicateServerError        duplicate_server    the name is taken
    │  └─ DuplicateAgentError         duplicate_agent     the name is taken
    ├─ UnknownServerError             unknown_server      no such server, or it is disabled
    ├─ UnknownToolError               unknown_tool        the server offers no such tool
    ├─ UnknownResourceError           unknown_resource
    ├─ UnknownPromptError             unknown_prompt
    ├─ AmbiguousToolError             ambiguous_tool      several servers offer the bare name
    ├─ BadToolNameError               bad_tool_name       not a name that a tool can have
    ├─ InvalidArgumentsError          invalid_arguments   the arguments do not fit the schema
    ├─ ToolBlockedError               tool_blocked        a filter forbids the tool
    ├─ InputRequiredError             input_required      the server asks for something before it goes on
    ├─ InvalidInputError              invalid_input       an answer does not fit what the server asked for
    ├─ CallInProgressError         call_in_progress    the call of this idempotency key still runs
    ├─ KeyReusedError              key_reused          the idempotency key belongs to another request
    ├─ StaleRevisionError             stale_revision      somebody else has changed it since
    ├─ PermissionDeniedError          permission_denied   the user may not do this
    ├─ UnknownAgentError              unknown_agent       no such agent, or not for this user
    ├─ UnknownRunError                unknown_run         no such run or approval, or it is somebody else's
    ├─ ApprovalRequiredError          approval_required   a person has to approve the call first
    ├─ ApprovalError                  approval_invalid    decided, used, expired, or for another call
    ├─ RunStateError                  run_state           the run is not in a state for this
    ├─ BackendUnavailableError        backend_unavailable what executes runs cannot be reached
    ├─ ModelError                     model_error         the model's provider failed or refused
    ├─ ServerConnectionError          server_unavailable  the link; base of the following
    │  ├─ ServerUnavailableError      server_unavailable  refused, gave up, waits before the next try
    │  ├─ NotConnectedError           not_connected       stopped on purpose
    │  ├─ ServerCrashedError          server_crashed      the process ended
    │  ├─ ConnectionLostError         connection_lost     broke while a request was in flight
    │  ├─ ManagerClosedError          manager_closed      the manager has been shut down
    │  ├─ TransportError              transport_error     the transport failed or answered nonsense
    │  └─ AuthRequiredError           auth_required       the *server* answered 401 or 403
    ├─ RequestTimeoutError            timeout             no answer in time
    ├─ ProtocolError                  protocol_error      the server answered with a JSON-RPC error
    ├─ ResultTooLargeError            result_too_large    the answer exceeds the limit
    ├─ BusyError                      busy                too many calls wait for this server
    ├─ ThrottledError                 throttled           the server or a throttle asks to slow down
    ├─ ToolError                      tool_failed         the tool ran and reported a failure
    └─ AsyncContextError              sync_in_async       a sync verb was called on an event loop

Rules: the docstring of a class is its default message; data are attributes; instances
survive ``pickle`` and ``copy``; no message holds a secret. Classes that GAIA's interface
promises as builtins derive from these builtins, too.
"""

from __future__ import annotations

from mcp_client_app.exceptions.agents import (
    ApprovalError,
    ApprovalRequiredError,
    BackendUnavailableError,
    DuplicateAgentError,
    InvalidHistoryError,
    ModelError,
    RunStateError,
    UnknownAgentError,
    UnknownRunError,
)
from mcp_client_app.exceptions.base import MCPClientError
from mcp_client_app.exceptions.calls import (
    AsyncContextError,
    BusyError,
    ProtocolError,
    RequestTimeoutError,
    ResultTooLargeError,
    ThrottledError,
    ToolError,
)
from mcp_client_app.exceptions.configuration import (
    ConfigurationError,
    DuplicateServerError,
)
from mcp_client_app.exceptions.inputs import InputRequiredError, InvalidInputError
from mcp_client_app.exceptions.links import (
    AuthRequiredError,
    ConnectionLostError,
    ManagerClosedError,
    NotConnectedError,
    ServerConnectionError,
    ServerCrashedError,
    ServerUnavailableError,
    TransportError,
)
from mcp_client_app.exceptions.requests import (
    AmbiguousToolError,
    BadToolNameError,
    CallInProgressError,
    InvalidArgumentsError,
    KeyReusedError,
    PermissionDeniedError,
    StaleRevisionError,
    ToolBlockedError,
    UnknownPromptError,
    UnknownResourceError,
    UnknownServerError,
    UnknownToolError,
)

__all__ = [
    "AmbiguousToolError",
    "ApprovalError",
    "ApprovalRequiredError",
    "AsyncContextError",
    "AuthRequiredError",
    "BackendUnavailableError",
    "BadToolNameError",
    "BusyError",
    "CallInProgressError",
    "ConfigurationError",
    "ConnectionLostError",
    "DuplicateAgentError",
    "DuplicateServerError",
    "InputRequiredError",
    "InvalidArgumentsError",
    "InvalidHistoryError",
    "InvalidInputError",
    "KeyReusedError",
    "MCPClientError",
    "ManagerClosedError",
    "ModelError",
    "NotConnectedError",
    "PermissionDeniedError",
    "ProtocolError",
    "RequestTimeoutError",
    "ResultTooLargeError",
    "RunStateError",
    "ServerConnectionError",
    "ServerCrashedError",
    "ServerUnavailableError",
    "StaleRevisionError",
    "ThrottledError",
    "ToolBlockedError",
    "ToolError",
    "TransportError",
    "UnknownAgentError",
    "UnknownPromptError",
    "UnknownResourceError",
    "UnknownRunError",
    "UnknownServerError",
    "UnknownToolError",
]
