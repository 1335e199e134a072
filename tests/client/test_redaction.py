from __future__ import annotations

import json
from html import escape
from urllib.parse import quote, quote_plus

import pytest

from mcp_client_app.client.redaction import Redactor
from mcp_client_app.datatypes import ServerSpec, Transport


def stdio(**env: str) -> Redactor:
    return Redactor(ServerSpec(name="srv", transport=Transport.STDIO, command="x", env=env))


def http(url: str, **headers: str) -> Redactor:
    spec = ServerSpec(name="srv", transport=Transport.STREAMABLE_HTTP, url=url, headers=headers)
    return Redactor(spec)


def test_every_value_of_the_environment_is_a_secret():
    redact = stdio(API_KEY="hunter2hunter2", OTHER="correct horse")
    assert redact("key hunter2hunter2, pass 'correct horse'") == "key ***, pass '***'"


def test_a_secret_within_another_one_leaves_nothing_of_the_longer_one():
    redact = stdio(SHORT="secret", LONG="secret-and-more")
    assert redact("it is secret-and-more") == "it is ***"


def test_of_a_text_that_was_cut_not_even_half_a_secret_is_left():
    redact = stdio(API_KEY="hunter2hunter2")
    assert redact.beginning("whole hunter2hunter2 and a half: hunter2hun") == "whole *** and a half: ***"
    assert redact.beginning("nothing of it") == "nothing of it"
    assert stdio().beginning("no secrets at all") == "no secrets at all"


def test_short_values_are_left_for_they_would_mask_ordinary_text():
    assert stdio(FLAG="1", MODE="true")("1 is true") == "1 is true"


def test_a_token_is_a_secret_with_and_without_its_scheme():
    redact = http("https://host/mcp", Authorization="Bearer abcdef123456")
    assert redact("Bearer abcdef123456") == "***"
    assert redact("token=abcdef123456") == "token=***"


def test_password_query_and_long_segments_of_the_url_are_secrets():
    url = "https://user:passw0rd@host/v1/0123456789abcdef0123/mcp?key=qu%C3%A4ry-key&x=1"
    redact = http(url)
    text = "passw0rd 0123456789abcdef0123 qu%C3%A4ry-key quäry-key v1 mcp"
    assert redact(text) == "*** *** *** *** v1 mcp"


def test_special_characters_of_secrets_mean_themselves():
    assert stdio(KEY="a.c+d(e)")("a.c+d(e) abccdde") == "*** abccdde"


def test_without_secrets_and_with_an_unreadable_url_text_is_left_alone():
    assert stdio()("as it is") == "as it is"
    assert http("http://[broken")("as it is") == "as it is"


@pytest.mark.parametrize(
    "write",
    [
        json.dumps,
        lambda text: json.dumps(text, ensure_ascii=False),
        lambda text: json.dumps(text).replace("/", "\\/"),
        repr,
        escape,
        quote,
        quote_plus,
    ],
)
def test_a_secret_is_known_however_it_is_written(write):
    secret = 'a "b" \\ c/ü'
    assert stdio(TOKEN=secret)(f"<{write(secret)}>").strip("<>'\"") == "***"
