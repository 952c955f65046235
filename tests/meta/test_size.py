"""Modules and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
MAX_MODULE_LINES = 500
USUAL_MODULE_LINES = 250
MAX_FUNCTION_LINES = 50

#: Functions that were let off, as "file:name", with their length then. Entries may shrink or go.
LET_OFF: dict[str, int] = {}

FILES = sorted(
    file
    for folder in ("pytest_ttnn_perf", "tests", "examples", "benchmarks", "docs")
    for file in (ROOT / folder).rglob("*.py")
)


def function_lengths(file: Path) -> dict[str, int]:
    """Return the lines of each function in a file, without its docstring."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    place = file.relative_to(ROOT).as_posix()
    # By line as well: two functions of one name are two functions.
    return {
        f"{place}:{node.lineno}:{node.name}": _lines(node)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def _without_line(name: str) -> str:
    place, _, function = name.split(":")
    return f"{place}:{function}"


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return length - ((first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_modules_and_functions_keep_to_their_budget(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= MAX_MODULE_LINES
    lengths = function_lengths(file)
    over = {
        name: length
        for name, length in lengths.items()
        if length > LET_OFF.get(_without_line(name), MAX_FUNCTION_LINES)
    }
    assert not over


def test_half_of_the_modules_are_short() -> None:
    lengths = [
        len(file.read_text(encoding="utf-8").splitlines())
        for file in (ROOT / "pytest_ttnn_perf").rglob("*.py")
        if file.name != "__init__.py"
    ]
    assert median(lengths) <= USUAL_MODULE_LINES


def test_the_list_of_exceptions_only_shrinks() -> None:
    lengths = {
        _without_line(name): length
        for file in FILES
        for name, length in function_lengths(file).items()
    }
    stale = {name: n for name, n in LET_OFF.items() if lengths.get(name) != n}
    assert not stale, "shorten or remove these entries of LET_OFF"
    assert len(LET_OFF) <= 0, "no new entries"
