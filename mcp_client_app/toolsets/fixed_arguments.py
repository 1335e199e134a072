"""Arguments that the operator has fixed: hidden from models, merged into calls, never overridden."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any

from mcp_client_app.toolsets.schema_tree import Schema, move_references, references, resolved, schemas

__all__ = ["hide_arguments", "merge_arguments"]

DEEPEST = 20
"""Combinators within each other in which arguments are hidden."""


def merge_arguments(arguments: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is sent: the model's arguments, with the fixed ones in place of its own."""
    return {**arguments, **copy.deepcopy(dict(fixed))}


def hide_arguments(schema: Mapping[str, Any], names: Collection[str]) -> Mapping[str, Any]:
    """Return the schema without these arguments: as it is if there are none, else a changed copy.

    They go from ``properties`` and ``required``, at the root and in combinators there. What else
    refers to their schemas still finds these.

    Raises:
        SchemaTooLargeError: The schema is too deep to be walked.
    """
    if not names:
        return schema
    root = resolved(schema, schema)
    shown = _Hiding(root, frozenset(names)).hidden(root, 0)
    return _keep_targets(root, shown, names)


class _Hiding:
    """Walks a root and its combinators; what several branches refer to is changed once."""

    def __init__(self, root: Mapping[str, Any], names: frozenset[str]) -> None:
        self.root = root
        self.names = names
        self.done: dict[str, Schema | None] = {"#": None}
        """By reference; None for what is being worked on: only what refers to itself comes to see it."""

    def hidden(self, node: Schema, depth: int) -> Schema:
        node = dict(node)
        _shorten(node, self.names)
        # A condition on what the model does not see would mislead it; calls are held to it all the same.
        for key, dependents in (("if", ("then", "else")), ("not", ())):
            if key in node and self._concerns(node[key]):
                for gone in (key, *dependents):
                    node.pop(gone, None)
        for key in ("allOf", "anyOf", "oneOf"):
            if isinstance(node.get(key), list):
                node[key] = [self._branch(branch, depth + 1) for branch in node[key]]
        for key in ("then", "else"):
            if key in node:
                node[key] = self._branch(node[key], depth + 1)
        return node

    def _branch(self, branch: Any, depth: int) -> Any:
        if depth > DEEPEST or not self._concerns(branch):
            return branch
        reference = branch.get("$ref")
        if not isinstance(reference, str):
            return self.hidden(branch, depth)
        if reference not in self.done:
            self.done[reference] = None
            self.done[reference] = self.hidden(resolved({"$ref": reference}, self.root), depth)
        known = self.done[reference]
        if known is None:
            return branch
        beside = {key: value for key, value in branch.items() if key != "$ref"}
        return {**known, **self.hidden(beside, depth)} if beside else known

    def _concerns(self, node: Any) -> bool:
        if not isinstance(node, Mapping):
            return False
        if isinstance(node.get("$ref"), str):
            target = resolved(node, self.root)
            return bool(target.keys() - {"$ref", "$defs", "definitions"})
        return any(self.names & _named(inner) or "$ref" in inner for inner in schemas(node))


def _shorten(node: Schema, names: frozenset[str]) -> None:
    """Take the names out of the keywords that list them; ``node`` is ours."""
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        node["properties"] = {name: item for name, item in properties.items() if name not in names}
    required = [name for name in _texts(node.get("required")) if name not in names]
    dependent = node.get("dependentRequired")
    if isinstance(dependent, Mapping):
        # What depends on a fixed argument is required: the fixed one is always there.
        extra = [item for name, items in dependent.items() if name in names for item in _texts(items)]
        required += [item for item in extra if item not in names]
        node["dependentRequired"] = {
            name: [item for item in _texts(items) if item not in names]
            for name, items in dependent.items()
            if name not in names
        }
    if required or "required" in node:
        node["required"] = list(dict.fromkeys(required))
    for key in ("minProperties", "maxProperties"):
        if isinstance(node.get(key), int):
            node[key] = max(0, node[key] - len(names))


def _named(node: Mapping[str, Any]) -> set[str]:
    properties = node.get("properties")
    named = set(properties) if isinstance(properties, Mapping) else set()
    return named | set(_texts(node.get("required")))


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _keep_targets(root: Mapping[str, Any], shown: Schema, names: Collection[str]) -> Schema:
    """Move schemas of hidden arguments to where other arguments' references to them can point."""
    properties = root.get("properties")
    moved: Schema = {}
    for name in names:
        place = "#/properties/" + name.replace("~", "~0").replace("/", "~1")
        if isinstance(properties, Mapping) and name in properties:
            used = [ref for ref in references(shown) if ref == place or ref.startswith(f"{place}/")]
            if used:
                moved[place] = properties[name]
    if not moved:
        return shown
    definitions = dict(shown["$defs"]) if isinstance(shown.get("$defs"), Mapping) else {}
    targets: dict[str, str] = {}
    for number, (place, schema) in enumerate(moved.items()):
        key = f"hidden_{number}"
        while key in definitions:
            key += "_"
        definitions[key] = schema
        targets[place] = f"#/$defs/{key}"

    def move(reference: str) -> str:
        for place, target in targets.items():
            if reference == place or reference.startswith(f"{place}/"):
                return target + reference[len(place) :]
        return reference

    return move_references({**shown, "$defs": definitions}, move)
