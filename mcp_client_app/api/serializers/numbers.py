"""Numbers, stricter than REST framework's."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

__all__ = ["SecondsField"]


class SecondsField(serializers.FloatField):
    """A number of seconds. The limits of its values do not help against numbers that no float can hold."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool):  # a number to Python, a slip to whoever wrote it
            self.fail("invalid")
        try:
            return super().to_internal_value(data)
        except OverflowError:
            self.fail("invalid")
