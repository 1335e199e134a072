"""The runner behind ``make run`` and ``make demo``.

``python -m example_project.demo [--serve] [--port N]``: set up the project, start and connect the
example servers, show what they offer, call tools; then stop everything, or serve until Ctrl-C. The exit
status is 0 only if every step worked.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from types import FrameType

import django

HOST = "127.0.0.1"


def main() -> int:
    """Run the demo; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="example_project.demo", description="Show the example project at work."
    )
    parser.add_argument("--serve", action="store_true", help="serve until Ctrl-C after the tour")
    parser.add_argument(
        "--port", type=int, default=8000, help="port on 127.0.0.1 to serve on (default: 8000)"
    )
    options = parser.parse_args()

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    signal.signal(signal.SIGTERM, _terminate)
    django.setup()
    # Only now: what follows imports models.
    from example_project import showcase

    try:
        return showcase.run(serve_on=(HOST, options.port) if options.serve else None)
    except KeyboardInterrupt:
        print("\nStopped.")
        return 130


def _terminate(_number: int, _frame: FrameType | None) -> None:
    # As on Ctrl-C: every `finally` runs, so that nothing is left.
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
