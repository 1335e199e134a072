"""Prove the distributions: build them, install the wheel alone, use it in a new project.

What this finds and the tests cannot: files missing from the wheel, a dependency that only the development
extra brings, a migration that was not shipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "example_project" / "servers" / "workshop.py"

SETTINGS = """
import sys
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent
SECRET_KEY = "only-for-this-check"
USE_TZ = True
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "rest_framework",
    "mcp_client_app",
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}}
MCP_CLIENT_SERVERS = {
    "workshop": {"command": sys.executable, "args": [str(BASE_DIR / "workshop.py")]},
}
"""

MANAGE = """
import os, sys
from django.core.management import execute_from_command_line
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
execute_from_command_line(sys.argv)
"""

CALL = """
import os
import django
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
django.setup()
from mcp_client_app.runtime import get_mcp_manager
result = get_mcp_manager().call_tool("workshop__add", {"a": 2, "b": 3})
assert result.structured == {"result": 5.0}, result
print("2 + 3 =", result.text)
"""


def main() -> int:
    """Run all steps in a temporary directory; return the exit status."""
    with tempfile.TemporaryDirectory(prefix="mcp-client-app-wheel-") as temporary:
        work = Path(temporary)
        _step("Building the source distribution, and the wheel from it")
        _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", work / "dist", ROOT], cwd=work)
        (wheel,) = (work / "dist").glob("*.whl")
        (sdist,) = (work / "dist").glob("*.tar.gz")
        _check_contents(wheel, sdist)

        _step(f"Installing {wheel.name} alone into a fresh environment")
        venv.create(work / "venv", with_pip=True, symlinks=True)
        python = work / "venv" / "bin" / "python"
        _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], cwd=work)
        _run([python, "-m", "pip", "check"], cwd=work)

        _step("Using it in a new project: check, migrate, call a tool")
        project = work / "project"
        project.mkdir()
        (project / "settings.py").write_text(SETTINGS)
        (project / "manage.py").write_text(MANAGE)
        (project / "call.py").write_text(CALL)
        shutil.copy(SERVER, project / "workshop.py")
        for arguments in (
            ["manage.py", "check", "--fail-level", "WARNING"],
            ["manage.py", "makemigrations", "--check", "--dry-run"],
            ["manage.py", "migrate", "--verbosity", "0"],
            ["call.py"],
        ):
            _run([python, *arguments], cwd=project)
    print("The wheel works on its own.")
    return 0


def _check_contents(wheel: Path, sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    strangers = {
        name for name in in_wheel if not name.startswith(("mcp_client_app/", "django_mcp_client_app-"))
    }
    if strangers:
        sys.exit(f"The wheel holds what is not the package: {sorted(strangers)}.")
    if "mcp_client_app/py.typed" not in in_wheel:
        sys.exit("The wheel lacks py.typed.")
    # Templates, static files and translations are as needed as modules are.
    files = [path for path in (ROOT / "mcp_client_app").rglob("*") if path.is_file()]
    shipped = {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}
    if missing := shipped - in_wheel:
        sys.exit(f"The wheel lacks {sorted(missing)}.")
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        "tests/conftest.py",
        "docs/index.md",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "example_project/demo.py",
    }
    if missing := wanted - in_sdist:
        sys.exit(f"The source distribution lacks {sorted(missing)}.")


def _step(text: str) -> None:
    print(f"{text} ...", flush=True)


def _run(command: list[str | Path], *, cwd: Path) -> None:
    # Neither the checkout nor the developer's own settings may help out.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DJANGO_"))
    }
    subprocess.run(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"Failed with status {error.returncode}: {' '.join(map(str, error.cmd))}")
