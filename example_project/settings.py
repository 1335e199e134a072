"""Settings of the example project: SQLite in ``var/``, reachable from this machine only.

Everything that is written lies in ``var/`` (``EXAMPLE_VAR_DIR`` names another place). For a real
deployment read ``docs/deployment.md``.
"""

from __future__ import annotations

import os
import secrets
from importlib.util import find_spec
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(os.environ.get("EXAMPLE_VAR_DIR") or BASE_DIR / "var")
VAR_DIR.mkdir(parents=True, exist_ok=True)


def _secret_key() -> str:
    """Return this copy's own key, made on first use, so that none is ever shared by accident."""
    path = VAR_DIR / "secret_key"
    if not path.exists():
        draft = path.with_name(f"secret_key.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50))
        try:
            # A link appears with its content or not at all: two processes starting at once agree.
            path.hardlink_to(draft)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()


SECRET_KEY = os.environ.get("EXAMPLE_SECRET_KEY") or _secret_key()
DEBUG = os.environ.get("EXAMPLE_DEBUG", "1") == "1"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "rest_framework.authtoken",
    "mcp_client_app",
]
if find_spec("drf_spectacular"):  # the extra "openapi"
    INSTALLED_APPS.append("drf_spectacular")

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

ROOT_URLCONF = "example_project.urls"
WSGI_APPLICATION = "example_project.wsgi.application"
ASGI_APPLICATION = "example_project.asgi.application"
STATIC_URL = "/static/"

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("EXAMPLE_DATABASE") or VAR_DIR / "db.sqlite3",
        # Several threads write: wait for each other, and let readers go on meanwhile.
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    },
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"

# The agent that the demo stores names this model.
MCP_CLIENT_MODELS = {"example:demo": "example_project.demo_agent.make_model"}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {
        # What goes wrong with a server stands in its status; the log repeats it only from WARNING on.
        "mcp_client_app": {
            "handlers": ["console"],
            "level": os.environ.get("EXAMPLE_LOG_LEVEL", "WARNING"),
            "propagate": False,
        },
    },
}

REST_FRAMEWORK = {
    # Programs sign in by token, people by the session that the admin gave them.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
}

# The app itself. All settings are in docs/configuration.md; each has a default.

# Rows may read this variable: `make run` starts the weather server on a free port and says here which.
MCP_CLIENT_ENV_ALLOW = ["EXAMPLE_*"]
