"""What goes wrong with a benchmark."""

from __future__ import annotations


class BenchmarkError(Exception):
    """Something cannot be measured; the message says what to do about it."""
