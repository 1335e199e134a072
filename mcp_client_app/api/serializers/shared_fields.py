"""Forms whose fields are made once, for bodies that are read with every call."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.utils.functional import cached_property
from rest_framework import serializers
from rest_framework.utils.serializer_helpers import BindingDict

__all__ = ["SharedFieldsSerializer"]


class SharedFieldsSerializer(serializers.Serializer[Any]):
    """All instances use the same fields.

    REST framework copies a form's fields for each instance, so that an instance may change its own; that
    was a quarter of a request that calls a tool. So instances of such a form must not change their fields,
    and these must not ask for the form's context, data or ``partial``: they see those of a form without any.
    """

    @cached_property
    def fields(self) -> BindingDict:
        return _fields_of(type(self))

    def own_fields(self) -> BindingDict:
        """Return fields of this instance alone."""
        fields: BindingDict = super().fields
        return fields


@cache
def _fields_of(form: type[SharedFieldsSerializer]) -> BindingDict:
    return form().own_fields()
