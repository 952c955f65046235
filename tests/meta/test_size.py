"""The house keeps to its budgets: one person has to hold it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pytest_ttnn_perf"

# Budgets of the package. They only go down, towards 150 modules, 52,000 lines, 22,000 of them the
# gate's: a new capability fits, or replaces one.
MAX_MODULES = 150
MAX_LINES = 63_300
MAX_GATE_LINES = 27_200
MAX_FUNCTION_LINES = 60

#: The rooms of the gate; the others are wings.
GATE = ("core", "machine", "gate", "measure", "report", "plugin")


def _lines(folder: Path) -> int:
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in folder.rglob("*.py"))


def _function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function, without its docstring."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return length - ((first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0)


def test_the_package_keeps_to_its_budget() -> None:
    assert 0 < len(list(PACKAGE.rglob("*.py"))) <= MAX_MODULES
    assert _lines(PACKAGE) <= MAX_LINES


def test_the_gate_keeps_to_its_budget() -> None:
    assert 0 < sum(_lines(PACKAGE / room) for room in GATE) <= MAX_GATE_LINES


def test_functions_are_read_in_one_go() -> None:
    lengths = {
        f"{file.relative_to(ROOT)}:{node.lineno}": _function_lines(node)
        for folder in ("pytest_ttnn_perf", "tests", "examples", "benchmarks", "docs")
        for file in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert not {place: length for place, length in lengths.items() if length > MAX_FUNCTION_LINES}
