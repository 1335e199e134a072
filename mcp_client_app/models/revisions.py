"""Revisions: how every process notices that a row has changed.

Each saved change raises the row's ``revision``, bulk changes included. Readers compare it;
editors send it back so that nobody overwrites an unseen change.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models, router, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.db.models.base import ModelBase

__all__ = ["RevisedModel", "RevisedQuerySet", "first_revision"]

M = TypeVar("M", bound="RevisedModel", covariant=True)


def first_revision() -> int:
    """Return the time in seconds: above any revision that a deleted row of the same name has had.

    Migrations refer to this function: never move or rename it.
    """
    return int(time.time())


class RevisedQuerySet(models.QuerySet[M]):
    """Bulk changes raise the revision, as ``save`` does; objects in memory keep the old one."""

    def update(self, **kwargs: Any) -> int:
        if kwargs:
            kwargs.setdefault("revision", F("revision") + 1)
            kwargs.setdefault("updated_at", timezone.now())
        return super().update(**kwargs)

    update.alters_data = True  # type: ignore[attr-defined]

    def bulk_create(
        self,
        objs: Iterable[M],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        update_fields: Collection[str] | None = None,
        unique_fields: Collection[str] | None = None,
    ) -> list[M]:
        if update_fields is not None:
            update_fields = list(dict.fromkeys([*update_fields, "revision", "updated_at"]))
        return super().bulk_create(
            objs, batch_size, ignore_conflicts, update_conflicts, update_fields, unique_fields
        )

    bulk_create.alters_data = True  # type: ignore[attr-defined]


class RevisedModel(models.Model):
    """A row with a revision and the times of its first and last change."""

    revision = models.PositiveBigIntegerField(
        _("revision"), default=first_revision, editable=False, help_text=_("Grows with each change.")
    )
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    class Meta:
        abstract = True

    def save(
        self,
        force_insert: bool | tuple[ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """Save, and raise the revision."""
        if update_fields is not None:
            update_fields = frozenset(update_fields)
            if not update_fields:
                return
            update_fields |= {"revision", "updated_at"}
        database = using or router.db_for_write(type(self), instance=self)
        before = self.revision
        try:
            with transaction.atomic(using=database):
                if not self._state.adding:
                    self.revision = self._raised_revision(database)
                super().save(
                    force_insert=force_insert,
                    force_update=force_update,
                    using=database,
                    update_fields=update_fields,
                )
        except BaseException:
            self.revision = before
            raise

    save.alters_data = True  # type: ignore[attr-defined]

    def _raised_revision(self, database: str) -> int:
        """Raise the stored revision and return it: two savers at once get two revisions."""
        stored = type(self)._base_manager.using(database).filter(pk=self.pk)  # noqa: SLF001 (documented by Django)
        # Writing before reading: SQLite cannot turn a read lock into a write lock.
        stored.update(revision=F("revision") + 1)
        return stored.values_list("revision", flat=True).first() or first_revision()
