"""What a model may see and call, pure: names, filters, fixed arguments, schemas, arguments, results.

Nothing here knows a server, a row or a model. ``ToolSelection`` puts the parts together.
"""

from __future__ import annotations

from mcp_client_app.toolsets.arguments import ArgumentChecker, invalid_arguments, parse_arguments
from mcp_client_app.toolsets.binary import Binary
from mcp_client_app.toolsets.fixed_arguments import hide_arguments, merge_arguments
from mcp_client_app.toolsets.names import ToolNames, unknown_tool_text
from mcp_client_app.toolsets.output import (
    Resolve,
    apply_filters,
    best_pattern,
    output_filters_for,
    parse_output_filters,
)
from mcp_client_app.toolsets.providers import ProviderTools, for_anthropic, for_mcp, for_openai
from mcp_client_app.toolsets.rendering import (
    ImagePart,
    RenderedResult,
    Store,
    TextPart,
    error_line,
    render_result,
)
from mcp_client_app.toolsets.rules import (
    FixedArguments,
    ServerRules,
    ToolRules,
    parse_filter,
    parse_fixed_arguments,
)
from mcp_client_app.toolsets.selection import PreparedCall, SelectedTool, ToolSelection, Validation

__all__ = [
    "ArgumentChecker",
    "Binary",
    "FixedArguments",
    "ImagePart",
    "PreparedCall",
    "ProviderTools",
    "RenderedResult",
    "Resolve",
    "SelectedTool",
    "ServerRules",
    "Store",
    "TextPart",
    "ToolNames",
    "ToolRules",
    "ToolSelection",
    "Validation",
    "apply_filters",
    "best_pattern",
    "error_line",
    "for_anthropic",
    "for_mcp",
    "for_openai",
    "hide_arguments",
    "invalid_arguments",
    "merge_arguments",
    "output_filters_for",
    "parse_arguments",
    "parse_filter",
    "parse_fixed_arguments",
    "parse_output_filters",
    "render_result",
    "unknown_tool_text",
]
