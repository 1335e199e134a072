"""A small realistic project around ``mcp_client_app``: what ``manage.py`` and ``make run`` use."""
