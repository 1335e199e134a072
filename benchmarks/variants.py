"""Who is measured in calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.places import ROOT

__all__ = [
    "BASELINE",
    "LEGACY",
    "LEVELS",
    "MODERN",
    "PEERS",
    "VARIANTS",
    "Variant",
    "baseline_of",
    "before",
    "chosen",
]

BASELINE = "sdk"
LEVELS = (1, 8, 10, 32, 50, 100)
"""How many callers at once; the baseline is measured at each, everybody else at some."""
BASELINES = {"crowd": "one server", "rest": "no-op", "audit": "off", "agents": "pydantic-ai, plain functions"}
"""Of the suites that are not compared with the SDK."""
THREADS = (1, 8, 32, 100)
COROUTINES = (1, 10, 50, 100)
LEGACY, MODERN = "2025-11-25", "2026-07-28"


@dataclass(frozen=True)
class Variant:
    """One way of calling a tool."""

    name: str
    label: str
    module: str
    arguments: tuple[str, ...] = ()
    levels: tuple[int, ...] = COROUTINES
    environment: str = ""
    """Whose requirements it needs; empty = ours."""
    eras: tuple[str, ...] = (MODERN, LEGACY)
    """What it can speak."""
    extra: bool = False
    """Left out of quick runs."""
    per_call: bool = False
    """Connects for each call."""
    checkout: Path = ROOT
    """Whose code is measured."""


PEERS = (
    Variant("fastmcp", "FastMCP's client", "fastmcp_client", environment="fastmcp", extra=True),
    Variant(
        "openai-agents",
        "openai-agents' MCP server",
        "openai_agents",
        environment="openai-agents",
        eras=(MODERN,),  # it takes the newer one that it finds
        extra=True,
    ),
    Variant(
        "langchain",
        "langchain-mcp-adapters, default",
        "langchain_adapters",
        levels=(1, 10),
        environment="langchain-mcp-adapters",
        eras=(LEGACY,),  # built on the SDK before 2.0
        extra=True,
        per_call=True,
    ),
    Variant(
        "naive", "async_to_sync, connect for each call", "naive", levels=(1, 8), extra=True, per_call=True
    ),
)

VARIANTS = (
    Variant(BASELINE, "SDK ClientSession, own loop", "sdk", levels=LEVELS),
    Variant("ours-loop", "ours, coroutine on the loop thread", "ours", ("loop",)),
    Variant("ours-async", "ours, coroutine on another loop", "ours", ("async",)),
    Variant("ours-sync", "ours, from threads", "ours", ("sync",), THREADS),
    Variant("ours-loop-uvloop", "ours with uvloop, loop thread", "ours", ("loop", "uvloop"), extra=True),
    Variant("ours-async-uvloop", "ours with uvloop, another loop", "ours", ("async", "uvloop"), extra=True),
    Variant("ours-sync-uvloop", "ours with uvloop, threads", "ours", ("sync", "uvloop"), THREADS, extra=True),
    *PEERS,
)


def baseline_of(suite: str) -> str:
    """Return whom the figures of a suite are compared with."""
    return BASELINES.get(suite, BASELINE)


def chosen(names: Sequence[str] | None, *, quick: bool) -> list[Variant]:
    """Return the variants that were asked for, the baseline always among them."""
    if names is None:
        return [variant for variant in VARIANTS if not (quick and variant.extra)]
    known = {variant.name: variant for variant in VARIANTS}
    return [known[name] for name in dict.fromkeys([BASELINE, *names])]


def before(variants: Sequence[Variant], checkout: Path) -> list[Variant]:
    """Return those of ours once more, as another checkout has them."""
    label = "before: {}"
    return [
        replace(each, name=f"before-{each.name}", label=label.format(each.label), checkout=checkout)
        for each in variants
        if each.module == "ours"
    ]
