from __future__ import annotations

import json
import pickle

import pytest
from django.core import serializers
from django.forms import modelform_factory

from mcp_client_app.models import ServerConfig
from mcp_client_app.models.fields import SecretMap

SECRET = "hunter2"


def test_a_secret_map_shows_its_keys_and_hides_its_values():
    secrets = SecretMap({"TOKEN": SECRET, "nested": {"a": SECRET}})

    for text in (repr(secrets), str(secrets), f"{secrets}", f"{secrets!r}", repr([secrets])):
        assert SECRET not in text
        assert "TOKEN" in text


def test_a_secret_map_is_a_dictionary_to_everybody_else():
    secrets = SecretMap({"TOKEN": SECRET})

    assert secrets == {"TOKEN": SECRET}
    assert json.loads(json.dumps(secrets)) == secrets
    assert pickle.loads(pickle.dumps(secrets)) == secrets


def test_a_row_never_carries_a_plain_dictionary():
    row = ServerConfig(name="a", env={"TOKEN": SECRET})
    row.headers = {"X": SECRET}

    assert SECRET not in repr(row.__dict__)
    assert row.env["TOKEN"] == SECRET


def test_a_mutable_default_is_not_shared():
    ServerConfig(name="a").env["TOKEN"] = SECRET

    assert ServerConfig(name="b").env == {}


@pytest.mark.django_db
def test_a_row_from_the_database_hides_its_secrets_too():
    ServerConfig.objects.create(name="a", command="x", env={"TOKEN": SECRET}, headers={})

    row = ServerConfig.objects.defer("env").get()
    assert row.env == {"TOKEN": SECRET}
    row.refresh_from_db()
    assert SECRET not in repr(row.__dict__)
    assert SECRET not in repr(list(ServerConfig.objects.values("env")))


@pytest.mark.django_db
def test_a_fixture_keeps_the_values():
    ServerConfig.objects.create(name="a", command="x", env={"TOKEN": SECRET})
    text = serializers.serialize("json", ServerConfig.objects.all(), use_natural_primary_keys=True)
    ServerConfig.objects.all().delete()

    for item in serializers.deserialize("json", text):
        item.save()

    assert ServerConfig.objects.get_by_natural_key("a").env == {"TOKEN": SECRET}


def test_a_model_form_never_echoes_secrets():
    form = modelform_factory(ServerConfig, exclude=())(instance=ServerConfig(name="a", env={"TOKEN": SECRET}))

    assert "env" not in form.fields
    assert SECRET not in form.as_p()
