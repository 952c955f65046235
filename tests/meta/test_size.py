"""The house keeps to its budgets: one person has to hold it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Budgets of the package. They only go down: a new capability fits, or replaces one.
MAX_MODULES = 377
MAX_LINES = 75_600
MAX_MODULE_LINES = 1_000
MAX_FUNCTION_LINES = 60

PACKAGE = sorted((ROOT / "pytest_ttnn_perf").rglob("*.py"))
FILES = PACKAGE + [
    file
    for folder in ("tests", "examples", "benchmarks", "docs")
    for file in (ROOT / folder).rglob("*.py")
]


def _lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def _function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function, without its docstring."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return length - ((first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0)


def test_the_package_keeps_to_its_budget() -> None:
    assert 0 < len(PACKAGE) <= MAX_MODULES
    assert sum(map(_lines, PACKAGE)) <= MAX_LINES


def test_a_module_is_a_topic() -> None:
    lengths = {str(file.relative_to(ROOT)): _lines(file) for file in FILES}
    assert not {file: length for file, length in lengths.items() if length > MAX_MODULE_LINES}


def test_functions_are_read_in_one_go() -> None:
    lengths = {
        f"{file.relative_to(ROOT)}:{node.lineno}": _function_lines(node)
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert not {place: length for place, length in lengths.items() if length > MAX_FUNCTION_LINES}
