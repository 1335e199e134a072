from __future__ import annotations

import os.path
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig
from mcp_client_app.services.output_filters import code_filter, stored_filter

pytestmark = pytest.mark.usefixtures("names")


@pytest.fixture
def names(settings: Any) -> None:
    settings.MCP_CLIENT_OUTPUT_FILTERS = {
        "base": "os.path:basename",
        "os.path.join": "os.path.dirname",
        "gone": "os.path.no_such_function",
        "flat": "os.path.sep",
    }


def test_a_key_of_the_setting_is_its_callable_for_everybody():
    assert stored_filter("base") is os.path.basename
    assert code_filter("base") is os.path.basename
    assert code_filter("os.path.join") is os.path.dirname


def test_only_code_may_give_paths():
    assert code_filter("os.path.split") is os.path.split
    with pytest.raises(ConfigurationError, match=r"'os.path.split' is no key of MCP_CLIENT_OUTPUT_FILTERS"):
        stored_filter("os.path.split")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gone", "'os.path.no_such_function' cannot be imported"),
        ("flat", "'os.path.sep' cannot be called"),
        ("no_such_module.function", "cannot be imported"),
        ("unknown", "'unknown' is no key of MCP_CLIENT_OUTPUT_FILTERS"),
    ],
)
def test_what_cannot_be_had_is_named(name: str, why: str):
    with pytest.raises(ConfigurationError, match=why):
        code_filter(name)


def row(filters: Any) -> AgentServer:
    return AgentServer(agent=AgentConfig(name="a"), server=ServerConfig(name="s"), output_filters=filters)


def test_a_row_may_name_keys_and_what_is_built_in():
    row({"t*": ["base", {"pick": "$.a"}, {"cut": 9}], "u": ["drop_binary"]}).clean()


@pytest.mark.parametrize(
    ("filters", "place"),
    [
        ({"t": ["base", "os.system"]}, "output_filters.t[1]: 'os.system' is no key"),
        ({"t": [{"pick": "items"}]}, "output_filters.t[0].pick must be a path"),
        ({"t": {"cut": 5}}, "output_filters.t must be a list"),
        ([], "output_filters must map"),
    ],
)
def test_a_row_names_no_other_code_and_errors_name_the_place(filters: Any, place: str):
    with pytest.raises(ValidationError) as caught:
        row(filters).clean()
    (message,) = caught.value.message_dict["output_filters"]
    assert message.startswith(place)
