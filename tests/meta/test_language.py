"""Code speaks plainly: a docstring begins with an imperative or a noun phrase of the field."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pytest_ttnn_perf"
MAX_WORDS = 12
CLAUSE = re.compile(r"(What|Which|How|Whether|Who)\b")
PRIVATE_LANGUAGE = re.compile(
    r"\b(told|tells?|nobody|somebody|what is no|is none|beside|those that|of what)\b", re.IGNORECASE
)
#: Messages of a worker are events, named by what happened.
EVENTS = Path("plugin/wire.py")


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


def nodes() -> list[tuple[str, ast.AST]]:
    return [
        (str(file.relative_to(PACKAGE)), node)
        for file in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    ]


def test_docstrings_begin_plainly() -> None:
    wrong = []
    for file, node in nodes():
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if is_rule(node):
                continue
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if why := offence(first):
                wrong.append(f"{file}:{getattr(node, 'lineno', 1)}: {why}: {first}")
    assert not wrong, "\n".join(wrong)


def test_class_names_are_nouns() -> None:
    participle = re.compile(r"[a-z](ed|told)$")
    found = [
        f"{file}:{node.lineno} {node.name}"
        for file, node in nodes()
        if isinstance(node, ast.ClassDef) and participle.search(node.name)
        if Path(file) != EVENTS
    ]
    assert not found, "\n".join(found)


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
