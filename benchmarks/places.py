"""Where things are: what is built and measured goes into a folder that git ignores."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "benchmarks"
BUILT = ROOT / ".benchmarks"
"""Compiled servers, environments of peers, results."""
BINARIES = BUILT / "bin"
ENVIRONMENTS = BUILT / "envs"
RESULTS = BUILT / "results"
