from __future__ import annotations

import pytest

from mcp_client_app.client.url_policy import AddressGuard, check_url
from mcp_client_app.conf import AppSettings
from mcp_client_app.datatypes import UrlPolicy
from mcp_client_app.exceptions import ConfigurationError

METADATA = UrlPolicy(blocked_networks=("169.254.0.0/16", "127.0.0.0/8", "fe80::/10"))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/mcp",
        "host/mcp",
        "",
        "http://",
        "http:///mcp",
        "http://host:port/mcp",
        "http://host:99999/",
        "http://[::1/mcp",
        "http://ho st/mcp",
        "http://host/m\ncp",
        "https://user:secret-9@host/mcp",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_url(url, UrlPolicy(), server="docs")

    assert (caught.value.field, caught.value.server) == ("url", "docs")
    assert "secret" not in str(caught.value)


def test_only_the_schemes_of_the_policy_are_allowed() -> None:
    policy = UrlPolicy(schemes=("https",))

    assert check_url("https://host/mcp", policy).hostname == "host"
    with pytest.raises(ConfigurationError, match="https://"):
        check_url("http://host/mcp", policy)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.169.254.",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.16689662",
        "127.1",
        "１６９.254.169.254",  # noqa: RUF001 - digits that name resolution folds into ASCII
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[::169.254.169.254]",
        "[::ffff:0:169.254.169.254]",
        "[2001:0:a9fe:a9fe::1]",
        "[2001:db8::200:5efe:169.254.169.254]",
        "[fe80::1%25eth0]",
    ],
)
def test_a_blocked_address_is_refused_in_every_spelling(host: str) -> None:
    """D16: also as an IPv6 address that carries it."""
    with pytest.raises(ConfigurationError, match="policy"):
        check_url(f"http://{host}/mcp?key=secret-9", METADATA)


@pytest.mark.parametrize("host", ["169.253.1.1", "[2001:db8::1]", "docs.example", "8.8.8.8"])
def test_other_hosts_pass(host: str) -> None:
    check_url(f"https://{host}:8443/mcp", METADATA)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "10.1.2.3", "[fd00::1]"])
def test_the_default_lets_machines_of_ones_own_pass(host: str) -> None:
    check_url(f"http://{host}:8000/mcp", UrlPolicy(blocked_networks=tuple(AppSettings.BLOCKED_NETWORKS)))


def test_allowed_hosts_are_globs_without_regard_to_case() -> None:
    policy = UrlPolicy(allowed_hosts=("*.Example.org", "localhost"))

    check_url("https://MCP.example.ORG./mcp", policy)
    check_url("http://localhost:8000/mcp", policy)
    with pytest.raises(ConfigurationError, match=r"'example\.org'"):
        check_url("https://example.org/mcp", policy)


def test_an_allowed_host_is_not_held_to_the_blocked_networks() -> None:
    policy = UrlPolicy(blocked_networks=("10.0.0.0/8",), allowed_hosts=("10.1.2.3", "intra.example"))

    check_url("http://10.1.2.3/mcp", policy)
    assert not AddressGuard("intra.example", policy).forbids("10.9.9.9")


def test_the_guard_judges_resolved_addresses() -> None:
    guard = AddressGuard("docs.example", METADATA)

    assert guard.forbids("169.254.169.254")
    assert guard.forbids("fe80::1%3")
    assert guard.forbids("::ffff:127.0.0.1")
    assert not guard.forbids("192.0.2.1")
    assert not guard.forbids("docs.example")
