"""The house keeps to its budgets and speaks plainly: one person has to hold it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pytest_ttnn_perf"

# Budgets. They only go down: a new capability fits, or replaces one. The goal is 54,000 lines.
MAX_MODULES = 149
MAX_LINES = 57_900
MAX_GATE_LINES = 24_100
MAX_TEST_LINES = 45_000
MAX_FUNCTION_LINES = 60

#: The rooms of the gate; the others are wings.
GATE = ("core", "machine", "gate", "measure", "report", "plugin")

MAX_WORDS = 12
CLAUSE = re.compile(r"(What|Which|How|Whether|Who)\b")
PRIVATE_LANGUAGE = re.compile(
    r"\b(told|tells?|nobody|somebody|what is no|is none|beside|those that|of what)\b", re.IGNORECASE
)
PARTICIPLE = re.compile(r"[a-z](ed|told)$")
#: Messages of a worker are events, named by what happened.
EVENTS = PACKAGE / "plugin" / "wire.py"


def lines(folder: Path) -> int:
    return sum(file.read_text(encoding="utf-8").count("\n") for file in folder.rglob("*.py"))


Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def definitions(node: ast.AST) -> Iterator[Definition]:
    """Yield a module, its classes and functions, wherever they are; expressions have none."""
    if isinstance(node, Definition):
        yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield from definitions(child)


def without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return length - ((first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0)


def test_the_house_keeps_to_its_budgets() -> None:
    assert 0 < len(list(PACKAGE.rglob("*.py"))) <= MAX_MODULES
    assert lines(PACKAGE) <= MAX_LINES
    assert 0 < sum(lines(PACKAGE / room) for room in GATE) <= MAX_GATE_LINES
    assert lines(ROOT / "tests") <= MAX_TEST_LINES


def offence(first: str) -> str | None:
    """Say what is wrong with the first line of a docstring."""
    words = first.split()
    if len(words) > MAX_WORDS:
        return f"{len(words)} words, at most {MAX_WORDS}"
    if CLAUSE.match(first):
        return "a clause; begin with a verb or a noun"
    found = PRIVATE_LANGUAGE.search(first)
    return f"{found[0]!r} is no word of the field" if found else None


def is_rule(node: ast.AST) -> bool:
    """Return whether a docstring is the page of a rule, whose first line is its title."""
    decorators = getattr(node, "decorator_list", ())
    calls = [each.func for each in decorators if isinstance(each, ast.Call)]
    return any(isinstance(each, ast.Name) and each.id == "rule" for each in calls)


def complaints(node: Definition, file: Path) -> Iterator[str]:
    """Yield what is wrong with a module, a class or a function."""
    if isinstance(node, ast.ClassDef) and PARTICIPLE.search(node.name) and file != EVENTS:
        yield f"class {node.name} is no noun"
    length = 0
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        length = without_docstring(node)
    if length > MAX_FUNCTION_LINES:
        yield f"a function of {length} lines, at most {MAX_FUNCTION_LINES}"
    if not is_rule(node):
        first = (ast.get_docstring(node) or "").partition("\n")[0]
        if why := offence(first):
            yield f"{why}: {first}"


def test_functions_are_read_in_one_go_and_names_and_docstrings_are_plain() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {complaint}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for tree in [ast.parse(file.read_text(encoding="utf-8"))]
        for node in definitions(tree)
        for complaint in complaints(node, file)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("Return the median of the sessions.", False),
        ("What is stored of a test.", True),
        ("Return what was told by the worker.", True),
        ("Return " + "a " * 12, True),
    ],
)
def test_an_offence_is_found(line: str, wrong: bool) -> None:
    assert bool(offence(line)) is wrong
