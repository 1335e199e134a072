"""What an agent says about single tools: whether a person has to approve a call, how long a result may be."""

from __future__ import annotations

from collections.abc import Mapping

from mcp_client_app.datatypes import AgentServerSpec, AgentSpec, ApprovalPolicy, ToolFilter, ToolInfo
from mcp_client_app.naming import normalise_tool_name
from mcp_client_app.toolsets.output import best_pattern
from mcp_client_app.toolsets.rules import ServerRules, ToolRules, granted_names

__all__ = ["is_harmless", "needs_approval", "policy_for", "result_limit_for", "rules_of"]

_STRICTEST = (ApprovalPolicy.DENY, ApprovalPolicy.ALWAYS, ApprovalPolicy.WRITES, ApprovalPolicy.NEVER)

_NOTHING = AgentServerSpec(name="")


def rules_of(spec: AgentSpec, own_filters: Mapping[str, ToolFilter]) -> ToolRules:
    """Return the rules of an agent, with the servers' own filters, by name, added to them."""
    own = {name.casefold(): tool_filter for name, tool_filter in own_filters.items()}
    servers = {
        server.name: ServerRules(
            filter=server.filter,
            own_filter=own.get(server.name.casefold(), ToolFilter()),
            fixed_arguments=server.fixed_arguments,
        )
        for server in spec.servers
    }
    if spec.all_servers:
        named = {name.casefold() for name in servers}
        servers |= {
            name: ServerRules(own_filter=tool_filter)
            for name, tool_filter in own_filters.items()
            if name.casefold() not in named
        }
    return ToolRules(
        servers=servers,
        all_servers=spec.all_servers,
        filter=spec.filter,
        fixed_arguments=spec.fixed_arguments,
    )


def policy_for(tool: ToolInfo, spec: AgentSpec) -> ApprovalPolicy:
    """Return when a person has to approve a call of the tool.

    What is said of the tool beats what is said of its server, and that what is said of the agent.
    Of several patterns that fit the strictest counts, unless one is the tool's name.
    """
    server = spec.server(tool.server) or _NOTHING
    known = None if spec.all_servers else [each.name for each in spec.servers]
    levels = (
        (server.tool_approvals, (tool.name, tool.public_name)),
        (spec.tool_approvals, granted_names(tool, known)),
    )
    for level, names in levels:
        found = _strictest(level, names)
        if found is not None:
            return found
    return spec.approval if server.approval is None else server.approval


def _strictest(level: Mapping[str, ApprovalPolicy], names: tuple[str, ...]) -> ApprovalPolicy | None:
    meant = set(map(normalise_tool_name, names))
    exact = [policy for pattern, policy in level.items() if normalise_tool_name(pattern) in meant]
    fitting = exact or [
        policy for pattern, policy in level.items() if ToolFilter(blocked=(pattern,)).blocks(*names)
    ]
    return next((policy for policy in _STRICTEST if policy in fitting), None)


def needs_approval(tool: ToolInfo, policy: ApprovalPolicy, *, trusted: bool) -> bool:
    """Say whether a person has to approve a call; ``trusted`` = the server's annotations count."""
    if policy is ApprovalPolicy.WRITES:
        return not (trusted and tool.annotations.read_only is True)
    return policy is not ApprovalPolicy.NEVER


def is_harmless(tool: ToolInfo, *, trusted: bool) -> bool:
    """Say whether a call may be repeated without harm, by annotations that count."""
    return trusted and bool(tool.annotations.read_only or tool.annotations.idempotent)


def result_limit_for(tool: ToolInfo, spec: AgentSpec) -> int:
    """Return how many characters of a result a model reads."""
    server = spec.server(tool.server) or _NOTHING
    pattern = best_pattern(server.result_limits, tool)
    if pattern is not None:
        return server.result_limits[pattern]
    return server.result_limit if server.result_limit is not None else spec.result_limit
