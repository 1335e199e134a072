"""Rows that people call by a name, unique without regard to case."""

from __future__ import annotations

from collections.abc import Collection

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from mcp_client_app.models.revisions import RevisedModel

__all__ = ["NamedModel"]


class NamedModel(RevisedModel):
    """A row with a column ``name``; its only constraint across columns is that of the name's case."""

    class Meta:
        abstract = True

    def validate_constraints(self, exclude: Collection[str] | None = None) -> None:
        """Show a name that differs by case alone where people can mend it."""
        try:
            super().validate_constraints(exclude=exclude)
        except ValidationError as error:
            errors = error.error_dict
            raise ValidationError(
                {("name" if key == NON_FIELD_ERRORS else key): errors[key] for key in errors}
            ) from None
