"""The programs that are measured, each a process of its own.

What is imported by workers of peers (``protocol``, ``coroutines``) needs nothing but the standard library:
it runs in the peers' environments.
"""
