"""The verbs of the command: a sub-parser and a function each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.core.management.base import CommandParser

from mcp_client_app.management.console import Console

__all__ = ["Run", "Verbs"]

Run = Callable[[argparse.Namespace, Console], None]
"""Does the work. Raises what services raise, and ``CommandError`` with an exit code."""

_OF_EVERY_COMMAND: Final[Mapping[tuple[str, ...], Mapping[str, Any]]] = {
    ("-v", "--verbosity"): {"type": int, "choices": [0, 1, 2, 3]},
    ("--settings",): {},
    ("--pythonpath",): {},
    ("--traceback",): {"action": "store_true"},
    ("--no-color",): {"action": "store_true"},
    ("--force-color",): {"action": "store_true"},
}
"""Django's options. argparse would take them in front of the verb only, where nobody puts them."""


class _VerbParser(CommandParser):
    """Takes options between positional arguments, too: ``add NAME --env A=b "npx -y package"``."""

    _is_mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._is_mixing:
            return super().parse_known_args(args, namespace)
        # The parser above calls this method; argparse's own mixing calls it, too.
        self._is_mixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_mixing = False


class Verbs:
    """Collects the verbs on the command's parser."""

    def __init__(self, parser: CommandParser) -> None:
        self._parsers = parser.add_subparsers(
            title="verbs", dest="verb", metavar="VERB", required=True, parser_class=_VerbParser
        )

    def add(self, name: str, run: Run, *, help: str, epilog: str | None = None) -> argparse.ArgumentParser:  # noqa: A002
        """Add a verb; its parser is returned for options of its own."""
        sentence = f"{help[0].upper()}{help[1:]}."
        parser = self._parsers.add_parser(name, help=help, description=sentence, epilog=epilog)
        parser.set_defaults(run=run)
        parser.add_argument("--json", action="store_true", help="write one JSON document instead of text")
        for names, options in _OF_EVERY_COMMAND.items():
            # Without a default, so that what stands in front of the verb is not overwritten.
            parser.add_argument(*names, default=argparse.SUPPRESS, help=argparse.SUPPRESS, **options)
        return parser
