"""Moments as a project keeps them: without ``USE_TZ``, Django's are local times that name no zone."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.utils import timezone

__all__ = ["as_kept", "local"]


def as_kept(moment: datetime) -> datetime:
    """Return a moment, with or without a zone, as rows have it and as ``timezone.now()`` gives it."""
    return timezone.make_naive(moment) if timezone.is_aware(moment) and not settings.USE_TZ else moment


def local(moment: datetime) -> datetime:
    """Return a moment, with or without a zone, as people here would say it."""
    return timezone.localtime(moment) if timezone.is_aware(moment) else moment
