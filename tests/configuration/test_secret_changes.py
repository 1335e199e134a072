from __future__ import annotations

import pytest

from mcp_client_app.configuration.secrets import SecretChanges, visible_url

STORED = {"Keep": "kept", "Old": "old"}


def whole(values=None, removed=(), *, replace=False, ignore_case=False):
    changes = SecretChanges(values or {}, frozenset(removed), replace)
    return changes.whole(STORED, ignore_case=ignore_case)


def test_without_changes_everything_is_kept():
    assert whole() == {"Keep": None, "Old": None}


def test_values_are_set_and_keys_removed_and_the_rest_is_kept():
    assert whole({"New": "n", "Old": "o"}, ["Keep", "missing"]) == {"New": "n", "Old": "o"}


def test_a_replacement_names_all_keys():
    assert whole({"Keep": None, "New": "n"}, replace=True) == {"Keep": None, "New": "n"}
    assert whole(replace=True) == {}


def test_where_case_makes_no_difference_a_new_spelling_is_the_same_key():
    assert whole({"OLD": "o"}, ignore_case=True) == {"Keep": None, "OLD": "o"}
    assert whole({"OLD": None}, ["keep"], ignore_case=True) == {"Old": None}
    assert whole({"OLD": "o"}) == {"Keep": None, "Old": None, "OLD": "o"}


def test_a_repr_shows_no_values():
    assert "s3cret" not in repr(SecretChanges({"Key": "s3cret"}))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", ""),
        ("https://example.com:8443/key/s3cret?token=s3cret", "https://example.com:8443"),
        ("${TRACKER_URL}", "${TRACKER_URL}"),
        ("https://example.com/${KEY}", "https://example.com"),
    ],
)
def test_a_url_is_shown_without_what_may_be_secret(url, shown):
    assert visible_url(url) == shown
