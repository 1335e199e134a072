"""Forms that overwrite nobody's change unseen."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib.admin.models import LogEntry
from django.core.exceptions import ValidationError
from django.db import router
from django.utils.timesince import timesince
from django.utils.translation import gettext

from mcp_client_app.admin.fields import VersionField
from mcp_client_app.admin.versions import changed_since, revision_in, version_of
from mcp_client_app.models.revisions import RevisedModel

if TYPE_CHECKING:
    RevisedModelForm = forms.ModelForm[Any]
else:
    RevisedModelForm = forms.ModelForm

__all__ = ["VersionedForm"]


class VersionedForm(RevisedModelForm):
    """A form of a row with a revision. What was changed meanwhile is told, and nothing is saved."""

    changed_by: ClassVar[Any]
    """Says that ``who`` has changed the row ``age`` ago."""
    was_changed: ClassVar[Any]
    """Says that it was changed ``age`` ago."""
    secret_fields: ClassVar[Collection[str]] = ()
    """Fields whose new value is not told."""

    version = VersionField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["version"] = version_of(self.instance, **self.more_of(self.instance))

    def clean(self) -> dict[str, Any]:
        """Judge what concerns the form as a whole."""
        cleaned = super().clean() or self.cleaned_data
        if self.instance.pk:
            self._check_version(str(cleaned.get("version", "")))
        return cleaned

    def more_of(self, row: Any) -> dict[str, Any]:
        """Return what belongs to the row besides its fields, by the name of what shows it."""
        return {}

    def label_of(self, name: str) -> Any:
        """Return what people call a part of the form."""
        field = self.fields.get(name)
        return name if field is None else field.label or name

    def _check_version(self, version: str) -> None:
        model: type[RevisedModel] = type(self.instance)
        manager = model._default_manager  # noqa: SLF001 (documented by Django)
        rows = manager.using(router.db_for_write(model, instance=self.instance))
        stored = rows.select_for_update().get(pk=self.instance.pk)
        if revision_in(version) == stored.revision:
            return
        more = self.more_of(stored)
        # Sent again, the form replaces what it has now been told about.
        self.data = self.data.copy()  # type: ignore[attr-defined]
        self.data[self.add_prefix("version")] = version_of(stored, **more)  # type: ignore[index]
        names = changed_since(version, stored, **more)
        self.add_error(None, ValidationError(self._conflict(names, stored), code="stale_revision"))

    def _conflict(self, names: list[str], stored: RevisedModel) -> list[str]:
        age, who = timesince(stored.updated_at), self._last_editor(stored)
        told = self.changed_by if who else self.was_changed
        return [
            str(told) % {"who": who, "age": age},
            *(text for name in names if (text := self._described(name, stored))),
            gettext(
                "Nothing has been saved, and what you typed is still here; secrets have to be typed again."
            )
            + " "
            + gettext("Take over what you want to keep: saving again replaces those changes."),
        ]

    def _described(self, name: str, stored: RevisedModel) -> str:
        field = self.fields.get(name)
        if field is None and name not in self.more_of(stored):
            return ""
        if field is None or name in self.secret_fields:
            return gettext("%(field)s: changed.") % {"field": self.label_of(name)}
        value = field.prepare_value(getattr(stored, name))
        return gettext("%(field)s: now %(value)r.") % {"field": self.label_of(name), "value": value}

    def _last_editor(self, stored: RevisedModel) -> str:
        """Return who made the last change, if in the admin: its log follows a change at once."""
        entries = LogEntry.objects.filter(
            content_type__app_label=stored._meta.app_label,  # noqa: SLF001 (documented by Django)
            content_type__model=stored._meta.model_name,  # noqa: SLF001 (as above)
            object_id=str(stored.pk),
            action_time__range=(stored.updated_at, stored.updated_at + timedelta(seconds=2)),
        )
        entry = entries.select_related("user").order_by("action_time").first()
        return entry.user.get_username() if entry is not None else ""
