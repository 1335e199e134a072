"""Decides which addresses may be talked to. Pure: resolves no name, opens no socket.

A policy is asked twice, since a name can resolve to anything: ``check_url`` reads the URL,
``AddressGuard`` judges each address just before a socket for it is made.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import re
import socket
import unicodedata
from urllib.parse import SplitResult, urlsplit

from mcp_client_app.datatypes import UrlPolicy, safe_url
from mcp_client_app.exceptions import ConfigurationError

__all__ = ["AddressGuard", "check_url"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")
_CARRYING = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96")))
"""IPv6 networks whose last 32 bits are an IPv4 address: NAT64, its local form, translated."""
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


class AddressGuard:
    """Knows whether the host of one URL may be reached at a given address."""

    def __init__(self, host: str, policy: UrlPolicy) -> None:
        exempt = policy.allowed_hosts is not None and _is_named(host, policy.allowed_hosts)
        blocked = () if exempt else policy.blocked_networks
        self._blocked = tuple(ipaddress.ip_network(network, strict=False) for network in blocked)

    def forbids(self, host: str) -> bool:
        """Say whether ``host`` is an address, in whatever spelling, that may not be reached."""
        address = _literal(host)
        if address is None or not self._blocked:
            return False
        return any(
            form in network
            for form in _forms(address)
            for network in self._blocked
            if form.version == network.version
        )


def check_url(url: str, policy: UrlPolicy, *, server: str | None = None) -> SplitResult:
    """Return the parts of ``url`` if the policy lets it through.

    Raises:
        ConfigurationError: Field ``url``: malformed, or scheme, host or address are not allowed.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _refused("The URL is malformed.", server) from None
    if _BLANK.search(url):
        raise _refused("The URL holds white space or control characters; remove them.", server)
    if parts.scheme not in policy.schemes:
        schemes = " or ".join(f"{scheme}://" for scheme in policy.schemes)
        raise _refused(f"The URL must begin with {schemes}.", server)
    if not host:
        raise _refused("The URL names no host.", server)
    if parts.username is not None:
        raise _refused("The URL holds credentials; put them into a header.", server)
    if policy.allowed_hosts is not None and not _is_named(host, policy.allowed_hosts):
        raise _refused(f"The host {host!r} is not among the hosts that the URL policy allows.", server)
    if AddressGuard(host, policy).forbids(host):
        raise _refused(f"The URL policy blocks the address of {safe_url(url)!r}.", server)
    return parts


def _is_named(host: str, globs: tuple[str, ...]) -> bool:
    name = host.rstrip(".").casefold()
    return any(fnmatch.fnmatchcase(name, glob.casefold()) for glob in globs)


def _literal(host: str) -> Address | None:
    """Read an address as the system's resolver would, which takes ``0x7f.1`` and ``2130706433``, too."""
    text = unicodedata.normalize("NFKC", host).strip("[]").rstrip(".")
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(text))
    except (OSError, ValueError):
        return None


def _forms(address: Address) -> list[Address]:
    """Return the address and the IPv4 address that it carries, if any."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    number = int(address)
    carried = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    is_compatible = 0xFFFF < number <= 0xFFFF_FFFF  # below are "::" and "::1"
    is_isatap = number >> 32 & 0xFFFF_FFFF in _ISATAP
    if is_compatible or is_isatap or any(address in network for network in _CARRYING):
        carried.append(ipaddress.IPv4Address(number & 0xFFFF_FFFF))
    return [address, *(each for each in carried if each is not None)]


def _refused(message: str, server: str | None) -> ConfigurationError:
    return ConfigurationError(message, server=server, field="url")
