"""What the settings tell the core."""

from __future__ import annotations

import contextlib
import threading

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from mcp_client_app import __version__
from mcp_client_app.datatypes import defer_input
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.runtime import get_mcp_manager
from mcp_client_app.runtime.options import input_handlers, manager_options, with_database_closed


def test_by_default_the_client_introduces_itself_by_its_own_name():
    options = manager_options()

    assert (options.client_name, options.client_version) == ("django-mcp-client-app", __version__)


def test_a_project_may_give_its_own_name(settings):
    settings.MCP_CLIENT_CLIENT_INFO = {"name": "shop"}

    options = manager_options()

    assert (options.client_name, options.client_version) == ("shop", "")


def test_settings_arrive_in_the_options(settings):
    settings.MCP_CLIENT_BLOCKED_NETWORKS = ["10.0.0.0/8"]
    settings.MCP_CLIENT_ALLOWED_HOSTS = ["*.example"]
    settings.MCP_CLIENT_MAX_STARTS = 3
    settings.MCP_CLIENT_ALLOW_STDIO = False
    settings.MCP_CLIENT_TRUST_ENV = True
    settings.MCP_CLIENT_LINK = "stock"
    settings.MCP_CLIENT_REAPER = False

    options = manager_options()

    assert options.url_policy.blocked_networks == ("10.0.0.0/8",)
    assert options.url_policy.allowed_hosts == ("*.example",)
    assert (options.max_starts, options.allow_stdio, options.trust_env) == (3, False, True)
    assert (options.default_link, options.reaper) == ("stock", False)


def test_a_setting_of_the_wrong_type_is_told(settings):
    settings.MCP_CLIENT_MAX_STARTS = "many"

    with pytest.raises(ImproperlyConfigured, match="MCP_CLIENT_MAX_STARTS"):
        manager_options()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fails", [False, True])
def test_a_callback_leaves_no_database_connection_behind(fails):
    left_open = []

    def callback() -> None:
        connection.ensure_connection()
        if fails:
            raise ValueError

    def run() -> None:
        with contextlib.suppress(ValueError):
            with_database_closed(callback)
        left_open.append(connection.connection)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert left_open == [None]


def test_the_handlers_of_the_settings_are_those_of_the_manager(settings):
    settings.MCP_CLIENT_INPUT_HANDLERS = {
        "elicitation": "tests.services.test_inputs.ask",
        "roots": "mcp_client_app.datatypes:defer_input",
    }

    assert get_mcp_manager().input_handlers == input_handlers()
    assert input_handlers()["roots"] is defer_input


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("no.such.module.name", "cannot be imported"),
        ("mcp_client_app.datatypes.nothing", "cannot be imported"),
        ("mcp_client_app.datatypes.SHARED", "cannot be called"),
    ],
)
def test_a_handler_that_is_not_there_is_named(settings, path, problem):
    settings.MCP_CLIENT_INPUT_HANDLERS = {"elicitation": path}

    with pytest.raises(ConfigurationError, match=problem) as caught:
        get_mcp_manager()

    assert path in str(caught.value)
    assert caught.value.field == "MCP_CLIENT_INPUT_HANDLERS"
