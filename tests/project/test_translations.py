"""The translations: complete, compiled, and fit for what they translate."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import translation
from django.utils.translation.template import templatize

import mcp_client_app
from mcp_client_app.models import ServerConfig

PACKAGE = Path(mcp_client_app.__file__).parent
LOCALES = sorted(path for path in (PACKAGE / "locale").iterdir() if path.is_dir())
MARKERS = {"_", "gettext", "gettext_lazy", "ngettext"}
LITERAL = r"""u'(?:[^'\\]|\\.)*'|u"(?:[^"\\]|\\.)*\""""
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]")


def texts_in_modules() -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        if "migrations" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in MARKERS and node.args and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)


def texts_in_templates() -> Iterator[str]:
    for path in PACKAGE.rglob("*.html"):
        calls = templatize(path.read_text(encoding="utf-8"))  # as makemessages reads templates
        yield from (ast.literal_eval(text) for text in re.findall(rf"gettext\(({LITERAL})", calls))


def catalogue(locale: Path) -> dict[str, str]:
    """Return what the compiled catalogue holds; a plural under its singular."""
    with (locale / "LC_MESSAGES" / "django.mo").open("rb") as file:
        # There is no public way to all texts.
        found: dict[object, str] = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    return {
        key[0] if isinstance(key, tuple) else str(key): text
        for key, text in found.items()
        if key and (not isinstance(key, tuple) or key[1] == 0)
    }


def source(locale: Path) -> dict[str, str]:
    """Return what the catalogue's source holds, in the same form."""
    found = {}
    for block in (locale / "LC_MESSAGES" / "django.po").read_text(encoding="utf-8").split("\n\n")[1:]:
        lines: dict[str, str] = {}
        word = ""
        for line in block.splitlines():
            if match := re.match(r"(msgid_plural|msgid|msgstr(?:\[\d\])?) ", line):
                word = match[1].replace("msgstr[0]", "msgstr")
                lines[word] = ""
            if word and not line.startswith("#"):
                lines[word] += ast.literal_eval(line[line.index('"') :])
        found[lines["msgid"]] = lines["msgstr"]
    return found


@pytest.mark.parametrize("locale", LOCALES, ids=lambda path: path.name)
def test_every_text_is_translated_and_no_other(locale):
    assert {*texts_in_modules(), *texts_in_templates()} == catalogue(locale).keys()


@pytest.mark.parametrize("locale", LOCALES, ids=lambda path: path.name)
def test_the_compiled_catalogue_is_that_of_its_source(locale):
    assert catalogue(locale) == source(locale)


@pytest.mark.parametrize("locale", LOCALES, ids=lambda path: path.name)
def test_translations_fill_in_what_the_originals_do(locale):
    for original, text in catalogue(locale).items():
        assert sorted(PLACEHOLDER.findall(original)) == sorted(PLACEHOLDER.findall(text)), original


@pytest.mark.django_db
def test_the_admin_speaks_german(admin_client, settings):
    settings.LANGUAGE_CODE = "de"
    ServerConfig.objects.create(name="one", command="npx", enabled=False)
    with translation.override("de"):
        page = admin_client.get("/admin/mcp_client_app/serverconfig/").content.decode()
        form = admin_client.get("/admin/mcp_client_app/serverconfig/add/").content.decode()
    assert "deaktiviert" in page
    assert "Ausgewählte MCP-Server verbinden" in page
    assert "Zeitgrenze fürs Verbinden" in form
