from __future__ import annotations

import pytest
from django.core import serializers
from django.db import transaction
from django.utils import timezone

from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import close_mcp_manager, get_mcp_manager, row_source, started_manager
from tests.stored import stored

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _as_new(settings):
    settings.MCP_CLIENT_REAPER = False
    settings.MCP_CLIENT_REVISION_INTERVAL = 3600
    row_source.forget()
    yield
    close_mcp_manager()
    row_source.forget()


def test_saving_and_deleting_reach_the_manager_after_the_commit():
    manager = get_mcp_manager()
    assert manager.list_servers() == []

    with transaction.atomic():
        row = stored("one")
        assert manager.list_servers() == []
    assert manager.list_servers() == ["one"]

    with transaction.atomic():
        row.delete()
        assert manager.list_servers() == ["one"]
    assert manager.list_servers() == []


def test_a_manager_is_not_made_to_follow_a_change():
    stored("one")

    assert started_manager() is None


def test_a_loaded_fixture_is_left_to_the_interval(settings):
    manager = get_mcp_manager()
    assert manager.list_servers() == []
    dump = serializers.serialize("json", [ServerConfig(name="one", command="x", updated_at=timezone.now())])

    for loaded in serializers.deserialize("json", dump):
        loaded.save()
    assert manager.list_servers() == []

    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    assert manager.list_servers() == ["one"]


def test_a_wrong_setting_does_not_cost_the_change(settings, caplog):
    stored("one")
    get_mcp_manager().connect("one")
    settings.MCP_CLIENT_CALL_TIMEOUT = "soon"

    ServerConfig.objects.get().stop()

    assert ServerConfig.objects.get().stopped
    assert "could not be followed at once" in caplog.text
