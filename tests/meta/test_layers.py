"""Imports point down, parts never import parts, and only the edges know the outside."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "pytest_ttnn_perf"
ROOT = Path(__file__).parents[2] / PACKAGE

PARTS = frozenset({
    "measure", "device", "capture", "correctness", "baselines", "gate", "attribution",
    "checklist", "report",
    "processes",
})  # fmt: skip
BASE = frozenset({"model", "_support"})
EDGE = frozenset({"workflow", *BASE})

#: What each package may import of its siblings, itself apart. A new package must be added here.
ALLOWED = {
    "plugin": EDGE,
    "cli": EDGE,
    "workflow": PARTS | BASE,
    **dict.fromkeys(PARTS, BASE),
    "model": frozenset({"_support"}),
    "_support": frozenset(),
}
#: Packages of others that only some of ours may import.
OUTSIDE = {
    "pytest": {"plugin"},
    "_pytest": {"plugin"},
    "pluggy": {"plugin"},
    "argparse": {"plugin", "cli"},
    "numpy": {"correctness"},
    "torch": set(),
    "ttnn": set(),
    "pandas": set(),
    "tabulate": {"report"},
    "filelock": {"baselines", "device", "measure"},
    "subprocess": {"device", "processes"},
    "socket": {"processes"},
    "signal": {"device", "processes"},
}


def violations(source: str, *, package: str, module: str) -> Iterator[str]:
    """Name every import that its place does not allow; function-local and typing ones included."""
    for node in ast.walk(ast.parse(source)):
        for name in _imported(node):
            top, _, rest = name.partition(".")
            if top in OUTSIDE and package not in OUTSIDE[top]:
                yield f"{module} imports {name}: {package} must not know {top}"
            sibling = rest.partition(".")[0]
            if top != PACKAGE or not sibling or sibling in {package, "__version__"}:
                continue
            if sibling not in ALLOWED[package]:
                yield f"{module} imports {name}: {package} must not import {sibling}"


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        if node.level:
            return [f"{PACKAGE}.<relative import>"]
        module = node.module or ""
        # `from package import part` names a part too.
        return [f"{module}.{alias.name}" for alias in node.names] if module == PACKAGE else [module]
    return []


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    found = [
        violation
        for file in sorted((ROOT / package).rglob("*.py"))
        for violation in violations(
            file.read_text(encoding="utf-8"), package=package, module=str(file.relative_to(ROOT))
        )
    ]
    assert not found, "\n".join(found)


def test_every_package_has_its_place() -> None:
    folders = {folder.name for folder in ROOT.iterdir() if (folder / "__init__.py").exists()}
    assert folders == set(ALLOWED)


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("report", "from pytest_ttnn_perf.gate.judge import judge_test"),
        ("gate", "import pytest_ttnn_perf.baselines.store"),
        ("model", "from pytest_ttnn_perf.report import sentences"),
        ("capture", "import pytest"),
        ("baselines", "def f():\n    from pytest_ttnn_perf.workflow import run"),
        (
            "gate",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
            "    from pytest_ttnn_perf.report import tables",
        ),
        ("gate", "from ..report import tables"),
        ("cli", "from pytest_ttnn_perf import gate"),
        ("gate", "import numpy as np"),
    ],
)
def test_a_violation_is_caught(package: str, source: str) -> None:
    assert list(violations(source, package=package, module="seeded"))
