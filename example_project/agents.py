"""Views that work as agents do: find a tool that fits, call it, answer with what it gave.

A model would choose tool and arguments; here the request names words to look for and the
arguments, so that the examples run without one. One view goes through the REST API, as a program
elsewhere would; the others use ``services`` directly, in both kinds of views. The last one leaves
all this to an agent that is stored.

The others take ``POST {"wanted": "forecast", "arguments": {"city": "Oslo"}}`` and a token.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from rest_framework.authentication import TokenAuthentication
from rest_framework.exceptions import APIException, NotAuthenticated, ParseError

from example_project.rest_client import RestClient, RestError
from mcp_client_app import services
from mcp_client_app.api.errors import answer_to
from mcp_client_app.datatypes import ToolInfo, ToolResult
from mcp_client_app.exceptions import MCPClientError, UnknownToolError

AGENT = "example"
"""The agent's name in the audit."""
WAIT = 10.0
"""Seconds to wait for servers that have to be connected before their tools are known."""


@dataclass(frozen=True)
class Wish:
    """Who wants what."""

    user: Any
    token: str
    wanted: str
    arguments: dict[str, Any]


# No cookie signs anybody in here, so that no other site can make a browser call these views.
@csrf_exempt
@require_POST
def over_rest(request: HttpRequest) -> JsonResponse:
    """Work through the REST API of this very site, in the name of the caller.

    The server must be able to answer two requests at once, as every threaded one can.
    """
    try:
        wish = _wish(request)
        api = RestClient(request.build_absolute_uri(reverse("mcp_client:index")), wish.token)
        name = api.find_tool(wish.wanted)
        result = api.post("tools/call/", name=name, arguments=wish.arguments)
    except RestError as error:
        return JsonResponse(error.body, status=error.status)
    except APIException as error:
        return _refusal(error)
    return JsonResponse({"tool": name, "is_error": result["is_error"], "text": result["text"]})


@csrf_exempt
@require_POST
def over_services(request: HttpRequest) -> JsonResponse:
    """Work through the services: the same permissions, audit and time limits without HTTP in between."""
    try:
        wish = _wish(request)
        tool = _pick(services.list_tools(wait=WAIT, user=wish.user).items, wish.wanted)
        result = services.call_tool(tool.public_name, wish.arguments, user=wish.user, agent=AGENT)
    except (MCPClientError, APIException) as error:
        return _refusal(error)
    return _answer(tool, result)


@csrf_exempt
@require_POST
async def over_services_async(request: HttpRequest) -> JsonResponse:
    """Do the same in an async view: every service has an async twin, and no thread waits."""
    try:
        wish = await sync_to_async(_wish)(request)
        listing = await services.alist_tools(wait=WAIT, user=wish.user)
        tool = _pick(listing.items, wish.wanted)
        result = await services.acall_tool(tool.public_name, wish.arguments, user=wish.user, agent=AGENT)
    except (MCPClientError, APIException) as error:
        return _refusal(error)
    return _answer(tool, result)


@csrf_exempt
@require_POST
def stored_agent(request: HttpRequest) -> JsonResponse:
    """Have a stored agent run through the REST API: ``POST {"agent": "demo", "prompt": "..."}``.

    Which model, which servers and which tools are the agent's business; this view only asks.
    """
    try:
        _user, token = _caller(request)
        order = _body(request, "agent", "prompt")
        api = RestClient(request.build_absolute_uri(reverse("mcp_client:index")), token)
        run = api.post(f"agents/{quote(order['agent'], safe='')}/run/", prompt=order["prompt"])
    except RestError as error:
        return JsonResponse(error.body, status=error.status)
    except APIException as error:
        return _refusal(error)
    # "completed" or why not: without an answer, never pretend that there is one.
    return JsonResponse({name: run[name] for name in ("id", "status", "text", "detail", "tool_rounds")})


def _wish(request: HttpRequest) -> Wish:
    user, token = _caller(request)
    body = _body(request, "wanted")
    arguments = body.get("arguments", {})
    if not isinstance(arguments, dict):
        raise ParseError("'arguments' has to be an object.")
    return Wish(user, token, body["wanted"], arguments)


def _caller(request: HttpRequest) -> tuple[Any, str]:
    """Return who calls, and the token."""
    # All that this class reads is a header, which Django's own request has as well.
    found = TokenAuthentication().authenticate(request)  # type: ignore[arg-type]
    if found is None:
        raise NotAuthenticated
    user, token = found
    return user, token.key


def _body(request: HttpRequest, *texts: str) -> dict[str, Any]:
    """Return the JSON of a request, in which these have to be texts."""
    try:
        body = json.loads(request.body)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ParseError("Send a JSON object.")
    for name in texts:
        if not isinstance(body.get(name), str):
            raise ParseError(f"{name!r} has to be a text.")
    return body


def _pick(tools: tuple[ToolInfo, ...], wanted: str) -> ToolInfo:
    for tool in tools:
        if wanted.casefold() in f"{tool.public_name} {tool.description or ''}".casefold():
            return tool
    raise UnknownToolError(f"No tool fits {wanted!r}.")


def _answer(tool: ToolInfo, result: ToolResult) -> JsonResponse:
    return JsonResponse({"tool": tool.public_name, "is_error": result.is_error, "text": result.text})


def _refusal(error: Exception) -> JsonResponse:
    """Answer in the one form that the REST API has for errors."""
    answer = answer_to(error)
    challenge = {"WWW-Authenticate": TokenAuthentication.keyword} if answer.status == 401 else {}
    return JsonResponse(answer.body, status=answer.status, headers=answer.headers | challenge)
