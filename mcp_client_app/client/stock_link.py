"""placeholder"""

from __future__ import annotations

from mcp_client_app.client.session_link import SessionLink


class StockLink(SessionLink):
    kind = "stock"
