"""The frozen values that cross layers: what goes into the core and what comes out.

Standard library only. SDK types never leave ``client``; rows never enter it. Mappings
inside these values are shared, not copied: treat them as read-only.
"""

from __future__ import annotations

from mcp_client_app.datatypes.agents import AgentServerSpec, AgentSpec, ApprovalPolicy, RunStatus
from mcp_client_app.datatypes.inputs import (
    InputAnswer,
    InputHandler,
    InputKind,
    InputRequest,
    defer_input,
)
from mcp_client_app.datatypes.observations import (
    LogMessage,
    ServerStatus,
    StderrLine,
)
from mcp_client_app.datatypes.offers import (
    Listing,
    PromptArgument,
    PromptInfo,
    ResourceInfo,
    ResourceTemplateInfo,
    ToolAnnotations,
    ToolInfo,
)
from mcp_client_app.datatypes.options import (
    ManagerOptions,
    UrlPolicy,
)
from mcp_client_app.datatypes.results import (
    Completion,
    Progress,
    PromptResult,
    ResourceResult,
    ToolResult,
)
from mcp_client_app.datatypes.specs import (
    ServerSpec,
    StrictOptions,
    ToolFilter,
    safe_url,
)
from mcp_client_app.datatypes.states import (
    SHARED,
    ConnectionState,
    ProtocolMode,
    Transport,
)

__all__ = [
    "SHARED",
    "AgentServerSpec",
    "AgentSpec",
    "ApprovalPolicy",
    "Completion",
    "ConnectionState",
    "InputAnswer",
    "InputHandler",
    "InputKind",
    "InputRequest",
    "Listing",
    "LogMessage",
    "ManagerOptions",
    "Progress",
    "PromptArgument",
    "PromptInfo",
    "PromptResult",
    "ProtocolMode",
    "ResourceInfo",
    "ResourceResult",
    "ResourceTemplateInfo",
    "RunStatus",
    "ServerSpec",
    "ServerStatus",
    "StderrLine",
    "StrictOptions",
    "ToolAnnotations",
    "ToolFilter",
    "ToolInfo",
    "ToolResult",
    "Transport",
    "UrlPolicy",
    "defer_input",
    "safe_url",
]
