"""A reusable Django app that makes a project a first-class MCP client.

The package itself imports nothing, so that ``import mcp_client_app`` costs nothing and
the connection core stays usable without Django. Start at ``services`` (what can be
done), ``datatypes`` and ``exceptions`` (what goes in and out), ``runtime`` (where the
process-wide manager lives).
"""

__version__ = "0.1.0"
