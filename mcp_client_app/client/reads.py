"""The manager's verbs that only read, as coroutines on its loop: resources, prompts, completions.

A read may be repeated once after a loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from mcp_client_app.client import convert
from mcp_client_app.client.caller import Caller
from mcp_client_app.client.calls import Answer, Deadline, send_round
from mcp_client_app.client.catalogue import Catalogue
from mcp_client_app.client.decoding import aside
from mcp_client_app.client.inputs import is_input_required
from mcp_client_app.client.pool import ConnectionPool
from mcp_client_app.client.rounds import Continuation, Rounds
from mcp_client_app.datatypes import SHARED, Completion, PromptResult, ResourceResult
from mcp_client_app.exceptions import (
    MCPClientError,
    ProtocolError,
    UnknownPromptError,
    UnknownResourceError,
)

__all__ = ["complete", "get_prompt", "known_catalogue", "read_resource", "send_read"]


async def read_resource(
    pool: ConnectionPool,
    server: str,
    uri: str,
    timeout: float | None,
    caller: Caller | None,
    continuation: Continuation | None,
    *,
    principal: str = SHARED,
) -> ResourceResult:
    """Read a resource."""
    limit = pool.connection(server, principal).spec.max_result_size
    try:
        answer = await send_read(
            pool,
            server,
            "resources/read",
            {"uri": uri},
            timeout,
            f"reading {uri!r}",
            principal,
            caller,
            continuation,
        )
    except UnknownResourceError as error:
        error.uri = uri
        raise
    build = partial(convert.resource_result, limit=limit)
    return await aside(answer.exchange.size, build, server, uri, answer.result, answer.exchange)


async def get_prompt(
    pool: ConnectionPool,
    server: str,
    name: str,
    arguments: Mapping[str, str],
    timeout: float | None,
    caller: Caller | None,
    continuation: Continuation | None,
    *,
    principal: str = SHARED,
) -> PromptResult:
    """Fill in a prompt."""
    limit = pool.connection(server, principal).spec.max_result_size
    params = {"name": name, "arguments": dict(arguments)}
    try:
        answer = await send_read(
            pool,
            server,
            "prompts/get",
            params,
            timeout,
            f"the prompt {name!r}",
            principal,
            caller,
            continuation,
        )
    except UnknownPromptError as error:
        error.prompt = name
        raise
    except ProtocolError as error:
        # Some servers call it an internal error of theirs; the catalogue knows better.
        catalogue = known_catalogue(pool, server, principal)
        if catalogue is None or any(prompt.name == name for prompt in catalogue.prompts):
            raise
        raise UnknownPromptError(
            f"The server {server!r} offers no prompt {name!r}.", server=server, prompt=name
        ) from error
    build = partial(convert.prompt_result, limit=limit)
    return await aside(answer.exchange.size, build, server, name, answer.result, answer.exchange)


async def complete(
    pool: ConnectionPool,
    server: str,
    ref: Mapping[str, str],
    argument: str,
    value: str,
    context: Mapping[str, str] | None,
    timeout: float | None,
    *,
    principal: str = SHARED,
) -> Completion:
    """Ask for suggestions for an argument."""
    params: dict[str, Any] = {"ref": dict(ref), "argument": {"name": argument, "value": value}}
    if context:
        params["context"] = {"arguments": dict(context)}
    answer = await send_read(
        pool, server, "completion/complete", params, timeout, "the completion", principal
    )
    return convert.completion(answer.result)


async def send_read(
    pool: ConnectionPool,
    server: str,
    method: str,
    params: Mapping[str, Any],
    timeout: float | None,
    what: str,
    principal: str,
    caller: Caller | None = None,
    continuation: Continuation | None = None,
) -> Answer:
    """Send a request that may be repeated after a loss."""
    answer = Answer()
    spec = pool.connection(server, principal).spec
    seconds = timeout if timeout is not None else spec.call_timeout
    rounds = Rounds(pool.host.desk, spec.name, principal, None, caller)
    answer.declared = rounds.declared

    send_with = partial(send_round, pool, spec.name, method, params, answer, principal, True, None)
    async with Deadline(spec.name, seconds, answer, what):
        first = await send_with(continuation.params() if continuation is not None else {})
        if is_input_required(first):
            await rounds.go_on(first, send_with)
    return answer


def known_catalogue(pool: ConnectionPool, server: str, principal: str) -> Catalogue | None:
    """Return what a server that has answered offers, if it is still there.

    Whatever became of its row in the meantime, the answer counts.
    """
    try:
        return pool.connection(server, principal).catalogue
    except MCPClientError:
        return None
