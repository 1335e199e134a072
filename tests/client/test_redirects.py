from __future__ import annotations

import pytest

from mcp_client_app.client.redirects import follow
from mcp_client_app.exceptions import AuthRequiredError, MCPClientError, TransportError


def refusal(method: str, url: str, status: int, location: str) -> MCPClientError:
    with pytest.raises(MCPClientError) as caught:
        follow(method, url, status, location, server="docs")
    assert caught.value.server == "docs"
    assert "secret" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("url", "location", "target"),
    [
        ("http://host/mcp", "/mcp/", "http://host/mcp/"),
        ("http://host/mcp", "docs/1", "http://host/docs/1"),
        ("http://host:80/mcp", "http://HOST/mcp/", "http://HOST/mcp/"),
        ("https://host/mcp?a=1", "?a=2", "https://host/mcp?a=2"),
        ("http://host/mcp", "https://host/mcp", "https://host/mcp"),
    ],
)
@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_that_stays_at_the_server_is_followed(
    url: str, location: str, target: str, status: int
) -> None:
    assert follow("POST", url, status, location, server="docs") == target


@pytest.mark.parametrize("status", [301, 302, 303])
def test_what_would_turn_a_request_into_a_get_is_followed_only_for_a_get(status: int) -> None:
    assert follow("GET", "http://host/mcp", status, "/mcp/", server="docs") == "http://host/mcp/"
    for method in ("POST", "DELETE"):
        assert "final slash" in str(refusal(method, "http://host/mcp", status, "/mcp/"))
    assert "mend the URL" in str(refusal("POST", "http://host/mcp", status, "/secret"))


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("http://host/mcp", "http://other/secret"),
        ("http://host/mcp", "//other/secret"),
        ("http://host/mcp", "http://host:8080/secret"),
        ("http://host:8080/mcp", "https://host/secret"),
        ("http://host/mcp", "https://host:8443/secret"),
        ("http://host/mcp", "http://user:secret@host/mcp"),
        ("http://host/mcp", "ftp://host/secret"),
    ],
)
def test_a_redirect_to_another_server_is_not_followed(url: str, location: str) -> None:
    error = refusal("POST", url, 307, location)

    assert isinstance(error, TransportError)
    assert (error.status, error.sent) == (307, False)


def test_giving_up_tls_is_refused_and_named() -> None:
    """H05."""
    assert "give up TLS" in str(refusal("POST", "https://host/mcp", 307, "http://host/secret"))


def test_a_malformed_location_is_refused() -> None:
    assert "malformed" in str(refusal("POST", "https://host/mcp", 307, "http://[secret/"))


@pytest.mark.parametrize(
    "location",
    [
        "/login",
        "/accounts/log-in/?next=secret",
        "https://sso.example/x",
        "https://id.example/oauth2/authorize",
    ],
)
@pytest.mark.parametrize("status", [302, 303])
def test_a_login_page_means_that_credentials_are_missing(location: str, status: int) -> None:
    error = refusal("POST", "https://host/mcp", status, location)

    assert isinstance(error, AuthRequiredError)
    assert error.status == status


@pytest.mark.parametrize("path", ["/blogin", "/author/1", "/assoc"])
def test_a_path_that_merely_looks_like_a_login_page_is_none(path: str) -> None:
    assert isinstance(refusal("POST", "https://host/mcp", 302, path), TransportError)
