"""The size and the names of modules."""

from __future__ import annotations

import ast
import statistics
from pathlib import Path

import mcp_client_app

PACKAGE = Path(mcp_client_app.__file__).parent
MAX_LINES = 400
MAX_MEDIAN = 150
SAYS_NOTHING = {"utils", "helpers", "common", "core", "misc", "types"}


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if "migrations" not in path.parts]


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_module_is_longer_than_400_lines():
    too_long = {name(path): line_count(path) for path in modules() if line_count(path) > MAX_LINES}
    assert too_long == {}


def test_half_of_the_modules_are_shorter_than_150_lines():
    assert statistics.median(line_count(path) for path in modules() if line_count(path)) < MAX_MEDIAN


def test_no_module_has_a_name_that_says_nothing():
    assert [name(path) for path in modules() if SAYS_NOTHING & {*path.with_suffix("").parts}] == []


def test_every_module_says_what_it_is_for():
    silent = [
        path for path in modules() if line_count(path) and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert [name(path) for path in silent] == []


def test_what_a_module_takes_from_another_one_is_exported_there():
    trees = {dotted_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in modules()}
    hidden = {
        f"{node.module}.{alias.name}"
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in trees
        for alias in node.names
        if f"{node.module}.{alias.name}" not in trees and alias.name not in exported(trees[node.module])
    }
    assert hidden - {"mcp_client_app.__version__"} == set()


def dotted_name(path: Path) -> str:
    return ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


def exported(tree: ast.Module) -> set[str]:
    """Return the names in ``__all__``."""
    return {
        name
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for name in ast.literal_eval(node.value)
    }
