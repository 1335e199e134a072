"""A real browser on a real site: Debian's Chromium, driven by Playwright.

Where one of them is missing, the tests are skipped and say why; with ``CI`` set that is a failure.
``SCREENSHOTS=1`` writes the pictures of the documentation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.site import LOGIN, PASSWORD

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "img"
WEATHER = ROOT / "example_project" / "servers" / "weather.py"
FILES = ROOT / "example_project" / "servers" / "files.py"
SITE = Path(__file__).with_name("site.py")
FILE_SERVER, DIRECTORY = "file_server.py", "documents"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}

OpenPage = Callable[..., "Page"]


@dataclass(frozen=True)
class Site:
    """The site under test."""

    url: str
    """Without a slash at the end."""
    weather: str
    """The address of an MCP server over HTTP."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start the browser."""
    executable = shutil.which("chromium")
    if executable is None:
        _missing("There is no chromium; 'apt-get install chromium' brings it.")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("Playwright is not installed; 'pip install playwright' brings it.")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield started
        started.close()


def _missing(reason: str) -> Any:
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve the example project and one MCP server over HTTP."""
    var = tmp_path_factory.mktemp("site")
    # Relative to the directory that the site runs in, so that pictures show no path of this machine.
    shutil.copy(FILES, var / FILE_SERVER)
    (var / DIRECTORY).mkdir()
    (var / DIRECTORY / "welcome.txt").write_text("Welcome!\n")
    with (
        _ready(WEATHER, "--port", "0", "--until-stdin-closes", directory=var) as weather,
        _ready(SITE, directory=var) as url,
    ):
        yield Site(url, weather)


@contextmanager
def _ready(script: Path, *arguments: str, directory: Path) -> Iterator[str]:
    """Run a Python program until the block ends; gives the address that it says it is ready at."""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "EXAMPLE_VAR_DIR": str(directory),
        "EXAMPLE_LOG_LEVEL": "CRITICAL",
        "EXAMPLE_DEBUG": "1",
    }
    process = subprocess.Popen(
        [sys.executable, str(script), *arguments],
        cwd=directory,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        word, _, address = process.stdout.readline().strip().partition(" ")
        try:
            assert word == "READY", f"{script.name} did not start."
            yield address
        finally:
            process.communicate(timeout=30)


@pytest.fixture
def open_page(browser: Browser, site: Site) -> Iterator[OpenPage]:
    """Open pages of the site; any error in a console, a refused inline script among them, fails the test."""
    complaints: list[str] = []
    contexts = []

    def complain(message: ConsoleMessage) -> None:
        # Browsers ask for an icon that the site does not have.
        if message.type == "error" and not message.location["url"].endswith("/favicon.ico"):
            complaints.append(message.text)

    def make(*, logged_in: bool = True, **options: Any) -> Page:
        context = browser.new_context(base_url=site.url, **{"viewport": WIDE, "locale": "en-US", **options})
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", complain)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if logged_in:
            log_in(page)
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


def log_in(page: Page) -> None:
    """Log in as a person does."""
    page.goto("/admin/")
    page.get_by_label("Username").fill(LOGIN)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="MCP servers").first.wait_for()


def picture(page: Page, name: str, *, whole: bool = False) -> None:
    """Write a picture for the documentation, if that is wanted."""
    if os.environ.get("SCREENSHOTS"):
        PICTURES.mkdir(exist_ok=True)
        page.screenshot(path=PICTURES / f"{name}.png", full_page=whole, animations="disabled")
