"""What aiohttp's failures mean, in words for people. Opens nothing."""

from __future__ import annotations

import errno

import aiohttp

from mcp_client_app.client.http_setup import why_refused

__all__ = ["BlockedAddressError", "how_broken", "why_unreachable"]


class BlockedAddressError(OSError):
    """The policy forbids the address. An ``OSError``, so that other addresses of the name are tried."""

    def __init__(self) -> None:
        # One text for all: aiohttp keeps the class only if all failures read alike.
        super().__init__(errno.EPERM, "The URL policy blocks this address")


def why_unreachable(error: Exception) -> str | None:
    """Say why no connection came about; None if there was one."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "has a host name that could not be resolved"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        return f"has a TLS certificate that is not valid: {getattr(cause, 'verify_message', '') or cause}"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        reason = getattr(error.os_error, "reason", None) or "handshake failed"
        return f"does not agree on TLS ({str(reason).replace('_', ' ').lower()})"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"is behind a proxy that refused the connection (HTTP {error.status})"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"is behind a proxy that {why_refused(error.os_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return why_refused(error.os_error)
    if isinstance(error, RuntimeError):
        # No thread can be started for the look-up of the name any more.
        return "was not tried, because this process is ending"
    return None


def how_broken(error: Exception) -> str:
    """Say what went wrong on a connection that had come about."""
    if isinstance(error, aiohttp.ClientPayloadError):
        return "broke off in the middle of its answer"
    if "content-encoding" in str(error):
        return "compressed its answer in a way that it was not asked for"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "closed the connection without an answer"
    if isinstance(error, aiohttp.ClientResponseError):
        return "answered with malformed HTTP"
    if isinstance(error, ValueError):
        return "was not asked: the request cannot be written as HTTP"
    return "reset the connection"
