"""Who holds an object: the shortest way to it from what lives as long as the process does."""

from __future__ import annotations

import asyncio
import gc
import sys
import types
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from mcp_client_app.client.connection import Connection
from mcp_client_app.client.http import Response
from mcp_client_app.client.link import Link
from mcp_client_app.exceptions import MCPClientError

MOST_WAYS = 4
"""Ways that are told; those that few objects share come first, for these are the odd ones."""

PASSED_BY: Final[tuple[type, ...]] = (str, bytes, int, *weakref.ProxyTypes)
"""What holds nothing. Asked for by the real type: a proxy would answer for another object, or for none."""

Parents = dict[int, Any]
"""By the identity of an object, the one that it was first found in."""


def ways(objects: Collection[Any]) -> list[str]:
    """Say how each object is reached: one line a kind of way, the rarest first.

    ``objects`` must be held by nobody else, so give it no name.
    """
    parents = _parents({id(each) for each in objects})
    found = [(_way(each, parents), _described(each)) for each in objects]
    shapes = Counter(shape for (shape, _), _ in found)
    rarest = sorted(found, key=lambda each: shapes[each[0][0]])
    told: dict[str, str] = {}
    for (shape, way), what in rarest:
        told.setdefault(shape, f"{shapes[shape]} such: {what}, held by {way}")
    return list(told.values())[:MOST_WAYS]


def _parents(wanted: set[int]) -> Parents:
    """Search in breadth from the roots until everything wanted has been met."""
    missing = set(wanted)
    parents: Parents = {}
    layer: list[Any] = []
    for root in _roots():
        if id(root) not in parents:
            parents[id(root)] = None
            layer.append(root)
    ours = {id(wanted), id(missing), id(parents), id(layer)}
    while layer and missing:
        found = []
        for parent in layer:
            for child in _referents(parent):
                key = id(child)
                if key not in parents and key not in ours and not issubclass(type(child), PASSED_BY):
                    parents[key] = parent
                    missing.discard(key)
                    found.append(child)
        ours.add(id(found))
        layer = found
    return parents


def _roots() -> Iterator[Any]:
    yield from list(sys.modules.values())
    here = sys._getframe()
    for top in sys._current_frames().values():
        frame: types.FrameType | None = top
        while frame is not None:
            if frame.f_globals is not here.f_globals:
                yield frame
            frame = frame.f_back


def _referents(parent: Any) -> Iterable[Any]:
    if isinstance(parent, types.FrameType):  # of one that runs, the collector does not see the variables
        return (*gc.get_referents(parent), *parent.f_locals.values())
    return gc.get_referents(parent)


def _way(target: Any, parents: Parents) -> tuple[str, str]:
    """Return the way's shape (names of classes), and the way in full, the nearest first."""
    if id(target) not in parents:
        return "", f"nothing but {_unreached(target)}"
    steps, shape = [], []
    child, parent = target, parents[id(target)]
    while parent is not None:
        steps.append(_step(parent, child))
        shape.append(type(parent).__name__)
        child, parent = parent, parents[id(parent)]
    return " < ".join(shape), " < ".join(steps)


def _unreached(target: Any) -> str:
    """Say what refers to an object that no way leads to: only C knows what holds that."""
    return ", ".join(sorted({type(each).__name__ for each in gc.get_referrers(target)})) or "C"


def _step(parent: Any, child: Any) -> str:
    """Say what its parent is, and where in it a child is if that has a name."""
    name = _named(parent)
    names: dict[Any, Any] = {}
    if isinstance(parent, dict):
        names = parent
    elif isinstance(parent, types.FrameType):
        names = parent.f_locals
    elif isinstance(parent, types.CoroutineType):
        names = parent.cr_frame.f_locals if parent.cr_frame is not None else {}
    where = next((str(key)[:60] for key, value in names.items() if value is child), "")
    return f"{name}[{where}]" if where else name


def _named(each: Any) -> str:
    name = type(each).__name__
    match each:
        case types.ModuleType():
            return f"module {each.__name__}"
        case types.FrameType():
            return f"frame {each.f_code.co_qualname}:{each.f_lineno}"
        case types.FunctionType() | types.MethodType() | types.CoroutineType():
            return f"{name} {each.__qualname__}"
        case asyncio.Task():
            state = "cancelled" if each.cancelled() else "done" if each.done() else "running"
            return f"{state} task {each.get_name()} {getattr(each.get_coro(), '__qualname__', '')}"
        case Connection():
            return _described(each)
        case MCPClientError():
            return f"{name} {str(each)[:100]!r}"
    return name


def _described(each: Any) -> str:
    """Say which one it is, and how it stands."""
    name = type(each).__name__
    match each:
        case Connection():
            retired = ", retired" if each.retired else ""
            return f"{name} of {each.spec.name} ({each.standing.state.value}{retired})"
        case Link():
            state = "closed" if each.closed.done() else "open"
            return f"{name} of {each.context.spec.name} ({state}: {each.failure})"
        case Response():
            return f"{name} of {each._client.server} ({each._answer.method} {each.status})"
    return name
