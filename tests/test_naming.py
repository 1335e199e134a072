from __future__ import annotations

import random
import re

import pytest

from mcp_client_app.naming import (
    is_server_name,
    normalise_tool_name,
    public_tool_name,
    slugify_server_name,
    split_public_name,
)

PUBLIC = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@pytest.mark.parametrize("name", ["a", "files", "my-files", "My_Files2", "a-_b", "x" * 40])
def test_these_are_server_names(name: str):
    assert is_server_name(name)
    assert slugify_server_name(name) == name


@pytest.mark.parametrize("name", ["", "1a", "-a", "_a", "a__b", "a_", "a b", "ä", "a\n", "a.b", "x" * 41])
def test_these_are_not_but_can_be_made_so(name: str):
    assert not is_server_name(name)
    assert is_server_name(slugify_server_name(name))


def test_slugs_keep_what_can_be_kept():
    assert slugify_server_name("My Files (local)") == "My-Files-local"
    assert slugify_server_name("café__naïve") == "cafe-naive"
    assert slugify_server_name("3D printer") == "s-3D-printer"
    assert slugify_server_name("検索") != slugify_server_name("検査")


def test_a_plain_name_is_only_prefixed():
    assert public_tool_name("files", "read_file") == "files__read_file"
    assert split_public_name("files__read_file") == ("files", "read_file")
    assert split_public_name("files__a__b") == ("files", "a__b")


def test_a_name_that_had_to_be_changed_ends_in_a_hash():
    assert re.fullmatch(r"files__a_b_c_[0-9a-f]{8}", public_tool_name("files", "a.b/c"))
    assert public_tool_name("files", "a.b") != public_tool_name("files", "a/b")
    assert public_tool_name("files", "a.b") != public_tool_name("files", "a_b")
    long = public_tool_name("s" * 40, "get_users_by_name_and_age")
    assert len(long) == 64
    assert long != public_tool_name("s" * 40, "get_users_by_name_and_ages")


@pytest.mark.parametrize("name", ["read_file", "__x", "1__x", "a b__x", "files__", ""])
def test_what_is_no_public_name_is_not_split(name: str):
    assert split_public_name(name) is None


@pytest.mark.parametrize("seed", range(20))
def test_public_names_are_fit_for_providers_and_lead_back_through_a_catalogue(seed: int):
    chance = random.Random(seed)
    alphabet = "ab_-.:/ é検😀\ud800A1"
    servers = {
        slugify_server_name("".join(chance.choices("abc-_ xé", k=chance.randrange(1, 60)))) for _ in range(20)
    }
    pairs = {
        (server, "".join(chance.choices(alphabet, k=chance.randrange(1, 90))))
        for server in servers
        for _ in range(40)
    }
    catalogue = {public_tool_name(server, tool): (server, tool) for server, tool in pairs}
    assert len(catalogue) == len(pairs)
    for name, pair in catalogue.items():
        assert PUBLIC.match(name)
        assert catalogue[public_tool_name(*pair)] == pair
        split = split_public_name(name)
        # A server name leaves room: what is before the first separator is always the server.
        assert split is not None
        assert split[0] == pair[0]


def test_filters_compare_without_case_and_outer_space():
    assert normalise_tool_name("  Read_FILE\t") == normalise_tool_name("read_file")
    assert normalise_tool_name("STRASSE") == normalise_tool_name("straße")
