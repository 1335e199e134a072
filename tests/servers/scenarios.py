"""The table of scenarios: how a raw peer can misbehave, by name.

A scenario is a small function registered with its line of help. It hooks into one of four places: at
the start, on a message that came in, on a result before it is sent, on a reply as it is sent. Its value
is what follows ``=`` on the command line, or its default.
"""

from __future__ import annotations

import argparse

TYPE_CHECKING = False  # as in ``typing``, which costs start-up time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Hook = TypeVar("Hook", bound=Callable[..., Any])

NO_ANSWER = object()
"""What an ``ON_RESULT`` hook returns if nothing is to be sent."""

AT_START: dict[str, Callable[..., Any]] = {}
"""``(peer, value)``: before anything is read."""
ON_MESSAGE: dict[str, Callable[..., Any]] = {}
"""``(peer, value, message)``: true if the message needs no further handling."""
ON_RESULT: dict[str, Callable[..., Any]] = {}
"""``(peer, value, message, result)``: the result to send, or ``NO_ANSWER``; a tool has had its effect."""
ON_REPLY: dict[str, Callable[..., Any]] = {}
"""``(peer, value, message, frames)``: the frames to send."""

DEFAULTS: dict[str, str] = {}
HELP: dict[str, str] = {}


def scenario(
    place: dict[str, Callable[..., Any]], text: str = "", default: str = "", *, of: str = ""
) -> Callable[[Hook], Hook]:
    """Register a function as a scenario under its own name, or as a further hook ``of`` another one."""

    def register(hook: Hook) -> Hook:
        name = of or hook.__name__
        place[name] = hook
        if not of:
            DEFAULTS[name] = default
            HELP[name] = text
        return hook

    return register


def parse(argument: str) -> tuple[str, str]:
    """Read ``NAME`` or ``NAME=VALUE`` from the command line."""
    name, _, value = argument.partition("=")
    if name not in HELP:
        raise argparse.ArgumentTypeError(f"There is no scenario {name!r}.")
    return name, value or DEFAULTS[name]


def table() -> str:
    """Return one line for each scenario, with its default value."""
    names = {name: f"{name}={DEFAULTS[name]}" if DEFAULTS[name] else name for name in sorted(HELP)}
    return "\n".join(f"  {shown:31} {HELP[name]}" for name, shown in names.items())
