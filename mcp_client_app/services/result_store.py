"""Keeps binary content of results in one of the project's storages, so that it can be referred to."""

from __future__ import annotations

import binascii
import logging
import uuid
from functools import partial
from typing import Final

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.utils import timezone

from mcp_client_app.conf import app_settings
from mcp_client_app.toolsets import Binary, Store
from mcp_client_app.toolsets.binary import image_type

logger = logging.getLogger(__name__)

__all__ = ["FOLDER", "result_store"]

FOLDER: Final = "mcp_results"

_EXTENSIONS: Final = {
    "application/pdf": "pdf",
    "application/zip": "zip",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
}
"""Of types that browsers do not run; anything else a server sends is kept as ``bin``."""


def result_store() -> Store | None:
    """Return what keeps binary content, if ``MCP_CLIENT_RESULT_STORAGE`` names a storage.

    Raises:
        ImproperlyConfigured: There is no such storage, or it cannot be made.
    """
    alias = app_settings.RESULT_STORAGE
    return partial(_kept, storages[alias]) if alias else None


def _kept(storage: Storage, content: Binary) -> str | None:
    """Store content; a storage that fails costs the reference, not the result."""
    try:
        data = binascii.a2b_base64(content.data, strict_mode=True)
    except ValueError:
        return None
    extension = _EXTENSIONS.get(image_type(content) or content.mime_type.lower(), "bin")
    name = f"{FOLDER}/{timezone.now():%Y/%m/%d}/{uuid.uuid4().hex}.{extension}"
    try:
        return storage.save(name, ContentFile(data))
    except Exception as error:  # noqa: BLE001 - storages raise anything
        logger.warning("Binary content of a result could not be stored: %s", type(error).__name__)
        return None
