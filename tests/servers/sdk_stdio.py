"""The well-behaved SDK peer over stdio: ``python tests/servers/sdk_stdio.py``."""

from __future__ import annotations

import os
import sys

if not __package__:  # run as a script: make the package ``tests`` importable from any directory
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.servers.sdk_server import make_server

if __name__ == "__main__":
    make_server().run("stdio")
