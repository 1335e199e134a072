"""What the figures were measured on."""

from __future__ import annotations

import datetime
import os
import platform
from importlib import metadata
from typing import Any

from benchmarks.servers.fast import fast_server

__all__ = ["facts"]

LIBRARIES = ("mcp", "aiohttp", "orjson", "uvloop", "django", "djangorestframework")


def facts() -> dict[str, Any]:
    """Return machine and versions; nothing that names the machine."""
    found: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "CPUs": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "fast server": fast_server().kind,
    }
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found
