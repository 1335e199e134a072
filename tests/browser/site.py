"""The example project as a site for a browser, under a content security policy that forbids inline code.

``python tests/browser/site.py`` migrates, makes a superuser, prints ``READY http://127.0.0.1:PORT`` and
serves until its standard input closes: it never outlives whoever started it.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import django

HOST = "127.0.0.1"
LOGIN, PASSWORD = "operator", "correct horse"
POLICY = "default-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'"


def main() -> None:
    """Serve until told to stop."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    django.setup()
    from django.contrib.auth import get_user_model
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.management import call_command
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    from mcp_client_app.runtime import close_mcp_manager

    class QuietHandler(WSGIRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's name)
            pass

    call_command("migrate", verbosity=0)
    get_user_model().objects.create_superuser(LOGIN, password=PASSWORD)
    application = StaticFilesHandler(get_wsgi_application())

    def with_policy(environ: dict[str, Any], start_response: Any) -> Any:
        def start(status: str, headers: list[tuple[str, str]], error: Any = None) -> Any:
            return start_response(status, [*headers, ("Content-Security-Policy", POLICY)], error)

        return application(environ, start)

    server = ThreadedWSGIServer((HOST, 0), QuietHandler)
    server.set_app(with_policy)
    threading.Thread(target=_stop_when_alone, args=(server,), daemon=True).start()
    sys.stdout.write(f"READY http://{HOST}:{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
    server.server_close()
    close_mcp_manager()


def _stop_when_alone(server: Any) -> None:
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()
