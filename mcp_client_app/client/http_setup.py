"""What an HTTP client is made of before it opens a connection: TLS, headers, proxy."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from mcp_client_app.exceptions import ConfigurationError

__all__ = ["checked_headers", "find_proxy", "shared_tls_context"]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_BREAK = re.compile(r"[\r\n\0]")

_lock = threading.Lock()
_shared: ssl.SSLContext | None = None


def shared_tls_context() -> ssl.SSLContext:
    """Return the one TLS context of the process: making one takes 20 ms and half a megabyte."""
    global _shared
    with _lock:
        if _shared is None:
            context = ssl.create_default_context()
            context.set_alpn_protocols(["http/1.1"])
            _shared = context
        return _shared


def checked_headers(headers: Mapping[str, str], *, server: str | None = None) -> dict[str, str]:
    """Return the headers if they can be sent.

    Raises:
        ConfigurationError: A name is no header name, or a value holds a line break or NUL.
    """
    for name, value in headers.items():
        if not _NAME.match(name):
            raise ConfigurationError(f"{name!r} is no header name.", server=server, field="headers")
        if _BREAK.search(value):
            raise ConfigurationError(
                f"The value of the header {name!r} holds a line break or NUL.",
                server=server,
                field=f"headers.{name}",
            )
    return dict(headers)


def find_proxy(scheme: str, host: str, *, server: str | None = None) -> str | None:
    """Return the proxy that the environment names for a host, or None.

    Raises:
        ConfigurationError: The proxy does not speak HTTP.
    """
    if proxy_bypass(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if proxy is not None and urlsplit(proxy).scheme not in ("http", "https"):
        raise ConfigurationError(
            "The proxy that the environment names is no HTTP proxy; change the environment or turn "
            "MCP_CLIENT_TRUST_ENV off.",
            server=server,
        )
    return proxy
