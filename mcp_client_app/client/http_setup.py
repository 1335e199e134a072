"""What an HTTP client is made of: TLS, headers, proxy, sockets."""

from __future__ import annotations

import errno
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.naming import is_reserved_header

__all__ = ["checked_headers", "find_proxy", "new_socket", "shared_tls_context", "why_refused"]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

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
        ConfigurationError: A name is no header name or one that is not the row's to set, or a value
            holds a line break or another control character.
    """
    for name, value in headers.items():
        if not _NAME.match(name):
            raise ConfigurationError(f"{name!r} is no header name.", server=server, field="headers")
        if is_reserved_header(name):
            raise ConfigurationError(
                f"The header {name!r} is set by the client itself; remove it.",
                server=server,
                field=f"headers.{name}",
            )
        if _CONTROL.search(value):
            raise ConfigurationError(
                f"The value of the header {name!r} holds a line break or another control character.",
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


def new_socket(family: int, kind: int, protocol: int) -> socket.socket:
    """Make a socket that notices a peer that vanished without a word.

    Within two minutes, also on an idle event stream, which no timer of ours ends.
    """
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock


def why_refused(error: OSError) -> str:
    """Say why a connection did not come about, as the rest of a sentence."""
    if isinstance(error, ConnectionRefusedError) or error.errno == errno.ECONNREFUSED:
        return "refused the connection"
    if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return "is unreachable from here"
    if error.errno == errno.ETIMEDOUT:
        return "did not answer"
    if isinstance(error, ConnectionResetError):
        return "closed the connection at once"
    return f"failed ({error.strerror or type(error).__name__})"
