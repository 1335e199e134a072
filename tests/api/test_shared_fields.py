from __future__ import annotations

from typing import Any

import pytest
from rest_framework import serializers

from mcp_client_app.api.serializers import agent_calls, calls
from mcp_client_app.api.serializers.shared_fields import SharedFieldsSerializer

FORMS = [
    form
    for module in (calls, agent_calls)
    for form in vars(module).values()
    if isinstance(form, type) and issubclass(form, SharedFieldsSerializer)
]


class Word(SharedFieldsSerializer):
    word = serializers.CharField(max_length=5)


class Sentence(Word):
    end = serializers.CharField(default=".")


def test_fields_are_made_once_for_each_form():
    assert Word().fields is Word(data={"word": "a"}).fields
    assert list(Word().fields) == ["word"]
    assert list(Sentence().fields) == ["word", "end"]


def test_each_instance_judges_its_own_data():
    good, bad = Word(data={"word": "short"}), Word(data={"word": "too long"})

    assert good.is_valid()
    assert not bad.is_valid()
    assert (good.validated_data, good.errors) == ({"word": "short"}, {})
    assert list(bad.errors) == ["word"]
    assert Word(data={"word": "again"}).is_valid()


def test_forms_of_calls_share_their_fields():
    assert {calls.ToolCallRequestSerializer, agent_calls.AgentCallRequestSerializer} <= set(FORMS)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_no_shared_field_asks_for_what_only_its_instance_has(form: type[SharedFieldsSerializer]):
    for field in _all(form().fields.values()):
        assert not isinstance(field, serializers.SerializerMethodField | serializers.HiddenField)
        assert not getattr(field.default, "requires_context", False)
        assert not any(getattr(each, "requires_context", False) for each in field.validators)


def _all(fields: Any) -> Any:
    for field in fields:
        yield field
        if isinstance(field, serializers.Serializer):
            yield from _all(field.fields.values())
        elif child := getattr(field, "child", None):
            yield from _all([child])
