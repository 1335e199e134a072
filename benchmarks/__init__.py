"""Measures the client against the SDK and its peers: ``make bench``; see ``docs/performance.md``."""
