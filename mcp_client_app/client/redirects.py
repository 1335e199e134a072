"""Decides which redirects are followed: those that stay at the server and repeat the request. Pure."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urljoin, urlsplit

from mcp_client_app.datatypes import safe_url
from mcp_client_app.exceptions import AuthRequiredError, MCPClientError, TransportError

__all__ = ["REDIRECTS", "follow", "stays_at"]

REDIRECTS = frozenset({301, 302, 303, 307, 308})

_KEEPS_METHOD = frozenset({307, 308})
_PORTS = {"http": 80, "https": 443}
_LOGIN = re.compile(r"(?i)(?:\b|_)(?:log-?in|sign-?in|oauth2?|authorize|auth|sso|saml2?)(?:\b|_)")


def follow(method: str, url: str, status: int, location: str, *, server: str) -> str:
    """Return where to repeat the request.

    Raises:
        AuthRequiredError: The redirect leads to a login page.
        TransportError: It leads to another server, or would turn the request into a GET.
    """
    try:
        target = urljoin(url, location)
        here, there = urlsplit(url), urlsplit(target)
        stays = _stays(here, there)
    except ValueError:
        raise _not_followed(server, status, "to a malformed URL; mend the URL") from None
    keeps_method = status in _KEEPS_METHOD or method == "GET"
    if stays and keeps_method:
        return target
    raise _explain(server, status, here, there, stays)


def stays_at(url: str, target: str) -> bool:
    """Say whether ``target`` is at the server of ``url``: what was meant for one may be sent to the other."""
    try:
        return _stays(urlsplit(url), urlsplit(target))
    except ValueError:
        return False


def _explain(server: str, status: int, here: SplitResult, there: SplitResult, stays: bool) -> MCPClientError:
    place = safe_url(there.geturl())
    if _LOGIN.search(f"{there.hostname}{there.path}"):
        return AuthRequiredError(
            f"The server {server!r} redirects to a login page at {place}: it asks for (other) credentials.",
            server=server,
            status=status,
        )
    if stays:
        slash = here.path.rstrip("/") == there.path.rstrip("/")
        cure = "add or remove the final slash of the URL" if slash else "mend the URL"
        return _not_followed(server, status, f"within {place} in a way that would lose the request; {cure}")
    if here.scheme == "https" and there.scheme == "http" and here.hostname == there.hostname:
        return _not_followed(
            server,
            status,
            f"to {place}, which would give up TLS; mend the URL, or the server's proxy settings",
        )
    return _not_followed(
        server, status, f"to {place}, which is not followed; if that is the right server, put it into the URL"
    )


def _not_followed(server: str, status: int, where: str) -> TransportError:
    return TransportError(
        f"The server {server!r} redirects (HTTP {status}) {where}.", server=server, status=status, sent=False
    )


def _stays(here: SplitResult, there: SplitResult) -> bool:
    """Say whether two URLs have one origin, or the second differs only by adding TLS."""
    if here.hostname != there.hostname or there.username is not None:
        return False
    if here.scheme == there.scheme:
        return _port(here) == _port(there)
    return (here.scheme, there.scheme, _port(here), _port(there)) == ("http", "https", 80, 443)


def _port(parts: SplitResult) -> int | None:
    return parts.port or _PORTS.get(parts.scheme)
