"""The command ``mcp_client``: its verbs by concept, and how they speak to terminals and to machines.

An entry point without rules of its own: it reads the command line, calls ``services`` and
shows what comes back.
"""
