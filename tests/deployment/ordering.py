"""Orders tasks and waits for them: a process of its own, so that what Celery opens goes with it."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.deployment import work

SECONDS = 60


def do(wish: dict[str, Any]) -> list[Any]:
    """Send calls, each with name and arguments, and return their ids; or get the answers of some."""
    if "send" in wish:
        return [work.call.apply_async(each, queue=wish["queue"]).id for each in wish["send"]]
    found = [work.app.AsyncResult(each) for each in wish["get"]]
    for each in found:
        each.get(timeout=SECONDS, propagate=False)
    return [each.result if each.successful() else repr(each.result) for each in found]


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(do(json.loads(line))) + "\n")
        sys.stdout.flush()
