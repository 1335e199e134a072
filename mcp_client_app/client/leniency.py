"""Mends what servers get wrong, on the raw dict, before the SDK's typed layer sees it.

The typed layer refuses a whole listing for one bad entry and a whole result for one
unknown block. Here bad entries are quarantined, unknown blocks replaced, broken optional
fields dropped; each repair is reported in words. The received dict itself is never
changed. Knows the shapes of results and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from mcp_client_app import json_codec
from mcp_client_app.datatypes import StrictOptions
from mcp_client_app.exceptions import ProtocolError

__all__ = ["Repairer", "placeholder"]

Repair = Callable[["Repairer", dict[str, Any], list[str]], dict[str, Any]]


class Repairer:
    """Repairs results for one connection."""

    def __init__(self, server: str, strict: StrictOptions = StrictOptions()) -> None:
        self.server = server
        self.strict = strict
        self.modern = False
        """Set once 2026-07-28 is spoken: output schemas and structured content may have any type then."""

    def repair(self, method: str, result: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Return the result fit for the typed layer, and what was mended.

        Raises:
            ProtocolError: With ``strict.contract_errors``, something had to be mended.
        """
        repair = _REPAIRS.get(method)
        if repair is None:
            return result, []
        notes: list[str] = []
        mended = dict(result)
        if "_meta" in mended and not isinstance(mended["_meta"], dict):
            del mended["_meta"]
            notes.append("_meta was no object")
        _drop_bad_cache_hints(mended)
        mended = repair(self, mended, notes)
        if notes and self.strict.contract_errors:
            raise ProtocolError(
                f"The server {self.server!r} broke the contract of {method!r}: {'; '.join(notes[:5])}.",
                server=self.server,
            )
        return mended, notes


def placeholder(block: Any) -> dict[str, Any]:
    """Stand in for a content block that is unknown or malformed: its JSON, as text."""
    try:
        text = json_codec.dumps(block).decode()
    except TypeError:
        text = repr(block)
    return {"type": "text", "text": text}


# Listings ----------------------------------------------------------------------------


def _tools(repairer: Repairer, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    return _listing(result, "tools", notes, lambda item: _tool(repairer, item, notes))


def _tool(repairer: Repairer, item: dict[str, Any], notes: list[str]) -> str | None:
    name = item.get("name")
    if problem := _bad_name(name):
        return problem
    label = f"tool {name!r}"
    schema = item.get("inputSchema")
    if not isinstance(schema, dict):
        return f"{label}: its inputSchema is no object"
    if schema.get("type") != "object":
        return f"{label}: its inputSchema is not of type object"
    output = item.get("outputSchema")
    if "outputSchema" in item and (
        not isinstance(output, dict) or (not repairer.modern and output.get("type") != "object")
    ):
        del item["outputSchema"]
        notes.append(f"{label}: its outputSchema is unusable and was left out")
    _drop(item, label, notes, description=str, title=str, annotations=dict, _meta=dict, icons=list)
    annotations = item.get("annotations")
    if annotations is not None:
        item["annotations"] = hints = dict(annotations)
        _drop(hints, label, notes, title=str, **dict.fromkeys(_HINTS, bool))
    _icons(item, label, notes)
    return None


_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def _resources(_: Repairer, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    return _listing(result, "resources", notes, lambda item: _resource(item, "uri", notes))


def _templates(_: Repairer, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    return _listing(result, "resourceTemplates", notes, lambda item: _resource(item, "uriTemplate", notes))


def _resource(item: dict[str, Any], key: str, notes: list[str]) -> str | None:
    if not isinstance(item.get(key), str) or not item[key]:
        return f"a resource without {key}"
    label = f"resource {item[key]!r}"
    if not isinstance(item.get("name"), str):
        item["name"] = item[key]
    _drop(
        item, label, notes, description=str, title=str, mimeType=str, annotations=dict, _meta=dict, icons=list
    )
    if isinstance(item.get("size"), bool) or not isinstance(item.get("size", 0), int):
        del item["size"]
        notes.append(f"{label}: its size is no integer")
    _block_annotations(item)
    _icons(item, label, notes)
    return None


def _prompts(_: Repairer, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    return _listing(result, "prompts", notes, lambda item: _prompt(item, notes))


def _prompt(item: dict[str, Any], notes: list[str]) -> str | None:
    if problem := _bad_name(item.get("name")):
        return problem.replace("tool", "prompt", 1)
    label = f"prompt {item['name']!r}"
    _drop(item, label, notes, description=str, title=str, arguments=list, _meta=dict, icons=list)
    arguments = []
    for argument in item.get("arguments") or []:
        if isinstance(argument, dict) and isinstance(argument.get("name"), str):
            argument = dict(argument)
            _drop(argument, label, notes, description=str, title=str, required=bool)
            arguments.append(argument)
        else:
            notes.append(f"{label}: an argument without a name was left out")
    if "arguments" in item:
        item["arguments"] = arguments
    _icons(item, label, notes)
    return None


def _listing(
    result: dict[str, Any], key: str, notes: list[str], mend: Callable[[dict[str, Any]], str | None]
) -> dict[str, Any]:
    items = result.get(key)
    if not isinstance(items, list):
        notes.append(f"{key} was no list")
        items = []
    kept = []
    for item in items:
        if not isinstance(item, dict):
            notes.append(f"an entry of {key} is no object")
            continue
        item = {name: value for name, value in item.items() if value is not None or name == "inputSchema"}
        if problem := mend(item):
            notes.append(problem)
        else:
            kept.append(item)
    result[key] = kept
    cursor = result.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        notes.append("nextCursor was no string")
    if not isinstance(cursor, str) or not cursor:
        result.pop("nextCursor", None)
    return result


# Results -----------------------------------------------------------------------------


def _call(repairer: Repairer, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    if result.get("resultType") == "input_required":
        return result
    content = result.get("content")
    if content is None:
        if repairer.strict.result_content:
            raise ProtocolError(
                f"The server {repairer.server!r} sent a tool result without content.", server=repairer.server
            )
        content = []
        if "structuredContent" not in result:
            notes.append("the result has no content")
    elif not isinstance(content, list):
        notes.append("content was no list")
        content = [content if isinstance(content, dict) else {"type": "text", "text": str(content)}]
    result["content"] = [_block(block, notes) for block in content]
    if not isinstance(result.get("isError", False), bool):
        result["isError"] = bool(result["isError"])
        notes.append("isError was no boolean")
    structured = result.get("structuredContent")
    if "structuredContent" in result and not repairer.modern and not isinstance(structured, dict):
        del result["structuredContent"]
        if structured is not None:
            notes.append("structuredContent was no object")
    return result


def _read(_: Repairer, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    if result.get("resultType") == "input_required":
        return result
    contents = result.get("contents")
    kept = []
    for item in contents if isinstance(contents, list) else []:
        if not isinstance(item, dict) or not isinstance(item.get("uri"), str):
            notes.append("a content without uri was left out")
            continue
        item = dict(item)
        if not isinstance(item.get("blob"), str) and not isinstance(item.get("text"), str):
            item["text"] = "" if item.get("text") is None else str(item["text"])
            item.pop("blob", None)
            notes.append("a content had neither text nor blob")
        _drop(item, "content", notes, mimeType=str, _meta=dict)
        kept.append(item)
    if not isinstance(contents, list):
        notes.append("contents was no list")
    result["contents"] = kept
    return result


def _get_prompt(_: Repairer, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    if result.get("resultType") == "input_required":
        return result
    messages = result.get("messages")
    kept = []
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            notes.append("a message without a known role was left out")
            continue
        content = message.get("content")
        if isinstance(content, str):
            content = {"type": "text", "text": content}
        kept.append({**message, "content": _block(content, notes)})
    if not isinstance(messages, list):
        notes.append("messages was no list")
    result["messages"] = kept
    _drop(result, "prompt", notes, description=str)
    return result


def _complete(_: Repairer, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    completion = result.get("completion")
    if not isinstance(completion, dict):
        notes.append("completion was no object")
        completion = {}
    completion = dict(completion)
    values = completion.get("values")
    strings = [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
    completion["values"] = strings[:100]
    _drop(completion, "completion", notes, total=int, hasMore=bool)
    result["completion"] = completion
    return result


def _block(block: Any, notes: list[str]) -> dict[str, Any]:
    """Return the block if the typed layer takes it, else its placeholder."""
    if not isinstance(block, dict):
        notes.append("a content block was no object")
        return {"type": "text", "text": block} if isinstance(block, str) else placeholder(block)
    required = _BLOCKS.get(str(block.get("type")))
    if required is None:
        notes.append(f"a content block of unknown type {str(block.get('type'))[:40]!r}")
        return placeholder(block)
    block = dict(block)
    if "text" in required and isinstance(block.get("text"), int | float):
        block["text"] = str(block["text"])
    for name in required:
        if name == "resource":
            inner = block.get("resource")
            fits = (
                isinstance(inner, dict)
                and isinstance(inner.get("uri"), str)
                and (isinstance(inner.get("text"), str) or isinstance(inner.get("blob"), str))
            )
        else:
            fits = isinstance(block.get(name), str)
        if not fits:
            notes.append(f"a content block of type {block['type']!r} without {name}")
            return placeholder(block)
    _drop(block, "content", notes, annotations=dict, _meta=dict)
    _block_annotations(block)
    return block


_BLOCKS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": ("resource",),
}


# The handshake -----------------------------------------------------------------------


def _initialize(repairer: Repairer, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    version = result.get("protocolVersion")
    if version not in KNOWN_PROTOCOL_VERSIONS and not repairer.strict.version_negotiation:
        notes.append(f"the server names the unknown protocol version {str(version)[:20]!r}")
        result["protocolVersion"] = LATEST_HANDSHAKE_VERSION
    info = result.get("serverInfo")
    info = dict(info) if isinstance(info, dict) else {}
    for key, default in (("name", "unknown"), ("version", "unknown")):
        if not isinstance(info.get(key), str):
            info[key] = default
            notes.append(f"serverInfo has no {key}")
    _drop(info, "serverInfo", notes, title=str, websiteUrl=str, description=str, icons=list)
    _icons(info, "serverInfo", notes)
    result["serverInfo"] = info
    return _discover(repairer, result, notes)


def _discover(_: Repairer, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    capabilities = result.get("capabilities")
    if not isinstance(capabilities, dict):
        notes.append("capabilities was no object")
        capabilities = {}
    result["capabilities"] = {
        name: value if isinstance(value, dict) else {}
        for name, value in capabilities.items()
        if isinstance(value, dict) or value is True
    }
    _drop(result, "server", notes, instructions=str)
    return result


_REPAIRS: dict[str, Repair] = {
    "initialize": _initialize,
    "server/discover": _discover,
    "tools/list": _tools,
    "resources/list": _resources,
    "resources/templates/list": _templates,
    "prompts/list": _prompts,
    "tools/call": _call,
    "resources/read": _read,
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
}


# Pieces ------------------------------------------------------------------------------


def _bad_name(name: Any) -> str | None:
    if not isinstance(name, str) or not name.strip():
        return "a tool without a name"
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        return f"tool {name!r}: its name holds control characters"
    return None


def _drop(item: dict[str, Any], label: str, notes: list[str], **kinds: type) -> None:
    """Remove optional fields of a wrong type; null means absent."""
    for name, kind in kinds.items():
        if name not in item:
            continue
        value = item[name]
        if value is None:
            del item[name]
        elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            del item[name]
            notes.append(f"{label}: its {name} is no {_KINDS[kind]} and was left out")


_KINDS = {str: "string", dict: "object", list: "list", bool: "boolean", int: "integer"}


def _icons(item: dict[str, Any], label: str, notes: list[str]) -> None:
    icons = item.get("icons")
    if icons is None:
        return
    good = [icon for icon in icons if isinstance(icon, dict) and isinstance(icon.get("src"), str)]
    if len(good) < len(icons):
        notes.append(f"{label}: an icon without src was left out")
    item["icons"] = good


def _block_annotations(item: dict[str, Any]) -> None:
    """Drop annotations of content that the typed layer would refuse; they are hints only."""
    annotations = item.get("annotations")
    if not isinstance(annotations, dict):
        return
    audience, priority = annotations.get("audience"), annotations.get("priority")
    good = dict(annotations)
    if audience is not None and not (
        isinstance(audience, list) and all(role in ("user", "assistant") for role in audience)
    ):
        del good["audience"]
    if priority is not None and not (
        isinstance(priority, int | float) and not isinstance(priority, bool) and 0 <= priority <= 1
    ):
        del good["priority"]
    if not isinstance(good.get("lastModified", ""), str):
        del good["lastModified"]
    item["annotations"] = good


def _drop_bad_cache_hints(result: dict[str, Any]) -> None:
    ttl = result.get("ttlMs")
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl < 0):
        result["ttlMs"] = 0
    if result.get("cacheScope", "private") not in ("private", "public"):
        del result["cacheScope"]
