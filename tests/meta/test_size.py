"""Modules and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
MAX_MODULE_LINES = 500
USUAL_MODULE_LINES = 250
MAX_FUNCTION_LINES = 50

FILES = [
    file
    for folder in ("pytest_ttnn_perf", "tests", "examples", "benchmarks", "docs")
    for file in (ROOT / folder).rglob("*.py")
]


def module_length(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def _function_length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function, without its docstring."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return length - ((first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0)


def test_modules_keep_to_their_budget() -> None:
    assert FILES
    lengths = {str(file.relative_to(ROOT)): module_length(file) for file in FILES}
    assert not {file: length for file, length in lengths.items() if length > MAX_MODULE_LINES}


def test_functions_keep_to_their_budget() -> None:
    lengths = {
        f"{file.relative_to(ROOT)}:{node.lineno}": _function_length(node)
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert not {place: length for place, length in lengths.items() if length > MAX_FUNCTION_LINES}


def test_half_of_the_modules_are_short() -> None:
    package = ROOT / "pytest_ttnn_perf"
    modules = (file for file in package.rglob("*.py") if file.name != "__init__.py")
    assert median(map(module_length, modules)) <= USUAL_MODULE_LINES
