"""What the providers' APIs demand of names and schemas of tools, as far as reports of refusals tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

DRAFT = "https://json-schema.org/draft/2020-12/schema"
AT_ROOT = ("oneOf", "anyOf", "allOf", "enum", "not")
IN_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
IN_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
IN_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
NOT_STRICT = ("default", "oneOf", "allOf", "not")

OPENAI_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
ANTHROPIC_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}\Z")


class RefusedError(Exception):
    """The provider answers with 400."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


def demand(condition: object, message: str, param: str | None = None) -> None:
    """Refuse the request unless the condition holds."""
    if not condition:
        raise RefusedError(message, param)


def tools_of(body: Mapping[str, Any], names: list[str]) -> None:
    """Hold the list of tools, and what is said of it, to the rules that all share."""
    if "tools" not in body:
        for key in ("tool_choice", "parallel_tool_calls"):
            demand(body.get(key) is None, f"'{key}' is only allowed when 'tools' are specified.", key)
        return
    demand(body["tools"], "[] is too short - 'tools'", "tools")
    demand(len(set(names)) == len(names), "tools: Tool names must be unique.", "tools")


def openai_function(function: Mapping[str, Any], place: str) -> str:
    """Check a function of OpenAI's, whichever API it is for; return its name."""
    name = function.get("name")
    demand(
        isinstance(name, str) and OPENAI_NAME.match(name),
        f"Invalid '{place}.name': string does not match pattern. "
        "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        f"{place}.name",
    )
    description = function.get("description") or ""
    demand(
        isinstance(description, str) and len(description) <= 1024,
        f"Invalid '{place}.description': string too long. Expected a string with maximum length 1024.",
        f"{place}.description",
    )
    schema = function.get("parameters", {"type": "object", "properties": {}})
    try:
        _openai_schema(schema, strict=bool(function.get("strict")))
    except RefusedError as error:
        message = f"Invalid schema for function '{name}': {error.message}"
        raise RefusedError(message, f"{place}.parameters") from None
    return str(name)


def _openai_schema(schema: Any, *, strict: bool) -> None:
    _sound(schema)
    kind = schema.get("type")
    demand(kind == "object", f"schema must be a JSON Schema of 'type: \"object\"', got 'type: {kind!r}'.")
    for key in AT_ROOT:
        demand(
            key not in schema,
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top "
            "level.",
        )
    for place, node in nodes(schema):
        kinds = node.get("type")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if "object" in kinds:
            demand("properties" in node, f"In context={place}, object schema missing properties.")
        if "array" in kinds:
            demand("items" in node, f"In context={place}, array schema missing items.")
        if strict and "object" in kinds:
            demand(
                node.get("additionalProperties") is False,
                f"In context={place}, 'additionalProperties' is required to be supplied and to be false.",
            )
            demand(
                set(node.get("required", [])) == set(node.get("properties", {})),
                f"In context={place}, 'required' is required to be supplied and to be an array including "
                "every key in properties.",
            )
        for key in NOT_STRICT if strict else ():
            demand(key not in node, f"In context={place}, '{key}' is not permitted.")


def anthropic_schema(schema: Any, place: str) -> None:
    """Check an ``input_schema``."""
    try:
        _sound(schema)
    except RefusedError as error:
        message = (
            f"{place}.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
            f"(https://json-schema.org/draft/2020-12). {error.message}"
        )
        raise RefusedError(message) from None
    demand(schema.get("type") == "object", f"{place}.input_schema.type: Input should be 'object'")
    for key in ("oneOf", "allOf", "anyOf"):
        demand(
            key not in schema,
            f"{place}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        )
    for key in schema.get("properties", {}):
        demand(
            ANTHROPIC_KEY.match(key),
            f"{place}.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'",
        )


def nodes(schema: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield every schema within a schema, with its place."""
    if not isinstance(schema, Mapping):
        return
    yield place, schema
    for key in IN_MAPS:
        for name, inner in (schema.get(key) or {}).items():
            yield from nodes(inner, (*place, key, name))
    for key in IN_LISTS:
        for number, inner in enumerate(schema.get(key) or ()):
            yield from nodes(inner, (*place, key, str(number)))
    for key in IN_ONE:
        yield from nodes(schema.get(key), (*place, key))


def _sound(schema: Any) -> None:
    demand(isinstance(schema, Mapping), f"{schema!r} is not of type 'object', 'boolean'.")
    try:
        jsonschema_rs.meta.validate({**schema, "$schema": DRAFT})
        for _, node in nodes(schema):
            demand("$schema" not in node or node is schema, "$schema may only stand at the root.")
            reference = node.get("$ref", "#")
            demand(
                isinstance(reference, str) and reference.startswith("#"),
                f"reference can only point to definitions of this schema, not to {reference!r}.",
            )
        jsonschema_rs.validator_for({**schema, "$schema": DRAFT}, offline=True)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise RefusedError(str(error).partition("\n")[0]) from None
