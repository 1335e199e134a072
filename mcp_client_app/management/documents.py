"""The JSON forms of what the command shows. Keys are part of its interface. No secrets."""

from __future__ import annotations

from typing import Any

from django.utils import translation

from mcp_client_app.datatypes import (
    PromptInfo,
    PromptResult,
    ResourceInfo,
    ResourceResult,
    ResourceTemplateInfo,
    ServerStatus,
    ToolInfo,
    ToolResult,
    Transport,
    safe_url,
)
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig, ServerState
from mcp_client_app.services.agent_problems import agent_problems

__all__ = [
    "agent_document",
    "problems_of",
    "prompt_document",
    "prompt_result_document",
    "resource_document",
    "resource_result_document",
    "server_document",
    "state_document",
    "status_document",
    "target_of",
    "template_document",
    "tool_document",
    "tool_result_document",
]

SET = "set"
"""Stands for a value that exists and is never shown."""


def target_of(server: ServerConfig) -> str:
    """Return what is reached, without arguments, credentials, path and query."""
    if server.transport == Transport.STDIO:
        return server.command
    if server.transport == Transport.IN_PROCESS:
        return server.in_process
    try:
        return server.to_spec().target
    except ConfigurationError:
        # Often a variable that this process does not have; what is written may still tell the host.
        return safe_url(server.url) if "$" not in server.url else "(not resolvable here)"


def server_document(server: ServerConfig) -> dict[str, Any]:
    """Return a stored server."""
    return {
        "name": server.name,
        "label": server.label,
        "description": server.description,
        "source": server.source,
        "transport": server.transport,
        "target": target_of(server),
        "enabled": server.enabled,
        "stopped": server.stopped,
        "env": dict.fromkeys(server.env, SET),
        "headers": dict.fromkeys(server.headers, SET),
        "allowed_tools": server.allowed_tools,
        "blocked_tools": server.blocked_tools,
        "revision": server.revision,
    }


def agent_document(agent: AgentConfig) -> dict[str, Any]:
    """Return a stored agent with its servers."""
    chosen = sorted(agent.agent_servers.all(), key=lambda each: each.server.name.casefold())
    return {
        "name": agent.name,
        "label": agent.label,
        "description": agent.description,
        "enabled": agent.enabled,
        "model": agent.model,
        "base_url": safe_url(agent.base_url) if agent.base_url else "",
        "api_key_variable": agent.api_key_variable,
        "all_servers": agent.all_servers,
        "servers": [_agent_server_document(each) for each in chosen],
        "allowed_tools": agent.allowed_tools,
        "blocked_tools": agent.blocked_tools,
        "approval": agent.approval,
        "groups": sorted(group.name for group in agent.groups.all()),
        "revision": agent.revision,
        "problems": problems_of(agent),
    }


def problems_of(agent: AgentConfig) -> list[str]:
    """Return what is to be looked at, in the language of the command."""
    with translation.override(None):
        return agent_problems(agent)


def _agent_server_document(chosen: AgentServer) -> dict[str, Any]:
    return {
        "server": chosen.server.name,
        "allowed_tools": chosen.allowed_tools,
        "blocked_tools": chosen.blocked_tools,
        "fixed_arguments": {
            tool: dict.fromkeys(arguments, SET) for tool, arguments in chosen.fixed_arguments.items()
        },
        "approval": chosen.approval or None,
        "tool_approvals": chosen.tool_approvals,
    }


def status_document(status: ServerStatus) -> dict[str, Any]:
    """Return how a server stands in this process."""
    return {
        "name": status.name,
        "transport": str(status.transport),
        "target": status.target,
        "enabled": status.enabled,
        "state": str(status.state),
        "reason": status.reason,
        "code": status.code,
        "since": status.since,
        "retry_at": status.retry_at,
        "failures": status.failures,
        "protocol_version": status.protocol_version,
        "server_name": status.server_name,
        "server_version": status.server_version,
        "tools": status.tools,
        "resources": status.resources,
        "resource_templates": status.resource_templates,
        "prompts": status.prompts,
        "warnings": list(status.warnings),
        "exit_code": status.exit_code,
        "stderr_tail": list(status.stderr_tail),
    }


def state_document(state: ServerState) -> dict[str, Any]:
    """Return how a server stands in one of the running processes."""
    return {
        "server": state.server.name,
        "host": state.worker.host,
        "pid": state.worker.pid,
        "seen_at": state.worker.seen_at,
        "principal": state.principal,
        "state": state.state,
        "reason": state.reason,
        "code": state.code,
        "since": state.since,
        "retry_at": state.retry_at,
        "failures": state.failures,
        "protocol_version": state.protocol_version or None,
        "tools": state.tools,
        "resources": state.resources,
        "resource_templates": state.resource_templates,
        "prompts": state.prompts,
    }


def tool_document(tool: ToolInfo) -> dict[str, Any]:
    """Return a tool with its schemas."""
    return {
        "server": tool.server,
        "name": tool.name,
        "public_name": tool.public_name,
        "title": tool.title,
        "description": tool.description,
        "annotations": {
            "title": tool.annotations.title,
            "read_only": tool.annotations.read_only,
            "destructive": tool.annotations.destructive,
            "idempotent": tool.annotations.idempotent,
            "open_world": tool.annotations.open_world,
        },
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "warnings": list(tool.warnings),
    }


def tool_result_document(result: ToolResult) -> dict[str, Any]:
    """Return what a tool gave."""
    return {
        "server": result.server,
        "tool": result.tool,
        "is_error": result.is_error,
        "text": result.text,
        "structured": result.structured,
        "content": list(result.content),
        "warnings": list(result.warnings),
        "truncated": result.truncated,
        "replayed": result.replayed,
    }


def resource_document(resource: ResourceInfo) -> dict[str, Any]:
    """Return a resource, without its contents."""
    return {
        "server": resource.server,
        "uri": resource.uri,
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mime_type": resource.mime_type,
        "size": resource.size,
    }


def template_document(template: ResourceTemplateInfo) -> dict[str, Any]:
    """Return a template for URIs."""
    return {
        "server": template.server,
        "uri_template": template.uri_template,
        "name": template.name,
        "title": template.title,
        "description": template.description,
        "mime_type": template.mime_type,
    }


def resource_result_document(result: ResourceResult) -> dict[str, Any]:
    """Return what reading a resource gave."""
    return {
        "server": result.server,
        "uri": result.uri,
        "contents": list(result.contents),
        "warnings": list(result.warnings),
        "truncated": result.truncated,
    }


def prompt_document(prompt: PromptInfo) -> dict[str, Any]:
    """Return a prompt and what it asks for."""
    return {
        "server": prompt.server,
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": [
            {"name": argument.name, "description": argument.description, "required": argument.required}
            for argument in prompt.arguments
        ],
    }


def prompt_result_document(result: PromptResult) -> dict[str, Any]:
    """Return a prompt, filled in."""
    return {
        "server": result.server,
        "prompt": result.prompt,
        "description": result.description,
        "messages": list(result.messages),
        "warnings": list(result.warnings),
        "truncated": result.truncated,
    }
