"""Rooms import downwards only; the contracts are in pyproject.toml."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import import_module
from pathlib import Path

import pytest

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.plugin.activation import WINGS

ROOT = Path(__file__).parents[2]
LINTER = shutil.which("lint-imports", path=sysconfig.get_path("scripts"))

#: Lines that are written to modules of a copy, and the contract that each breaks.
UPWARDS = {
    "gate/judge.py": ("import pytest_ttnn_perf.report.terminal", "Rooms import downwards only"),
    "measure/timing.py": (
        "def late():\n    from pytest_ttnn_perf.analysis.readers import detect",
        "Rooms import downwards only",
    ),
    "core/metric.py": ("import pytest", "Only the plugin knows pytest"),
    "analysis/ops/align.py": ("import pandas", "Heavy libraries have one room"),
}


@pytest.mark.skipif(LINTER is None, reason="import-linter is not installed: make check runs it")
def test_an_import_upwards_is_caught_wherever_it_stands(tmp_path: Path) -> None:
    assert LINTER is not None
    package = tmp_path / "pytest_ttnn_perf"
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "pytest_ttnn_perf", package, ignore=without)
    for module, (line, _) in UPWARDS.items():
        with (package / module).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")

    command = [LINTER, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 1, done.stdout + done.stderr
    broken = [line for line in done.stdout.splitlines() if " BROKEN" in line]
    for module, (_, contract) in UPWARDS.items():
        assert any(line.startswith(contract) for line in broken), done.stdout
        assert f"pytest_ttnn_perf.{module[:-3].replace('/', '.')} -> " in done.stdout


#: What comes with a dependency, or is there where a test uses it; extras have names of their own.
BROUGHT_ALONG = {"jinja2": {"markupsafe"}, "pandas": {"numpy"}, "pytest": {"_pytest"}}
ON_DEMAND = {"yaml", "_typeshed"}
IMPORTED = re.compile(r"^ *(?:import|from(?= [\w.]+ import )) (\w+)", re.MULTILINE)


def declared(section: str) -> set[str]:
    """Return the modules of a list of requirements in ``pyproject.toml``."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (listed,) = re.findall(rf"^{section} = \[(.*?)\](?=\n)", text, re.MULTILINE | re.DOTALL)
    names = set(re.findall(r'"([a-z0-9]+)', listed))
    return names.union(*(BROUGHT_ALONG.get(name, set()) for name in names))


def test_the_declared_dependencies_suffice() -> None:
    """But for databases, every command works after the plain install, pages included."""
    package = ROOT / "pytest_ttnn_perf"
    needed: dict[bool, set[str]] = {True: set(), False: set()}
    for file in package.rglob("*.py"):
        of_database = file.parent.name == "history" and file.stem.startswith("database")
        needed[of_database] |= set(IMPORTED.findall(file.read_text(encoding="utf-8")))
    known = {*sys.stdlib_module_names, "pytest_ttnn_perf", *ON_DEMAND, *declared("dependencies")}
    assert needed[False] - known == set()
    assert "jinja2" in needed[False]
    assert needed[True] - known == {"sqlalchemy"} <= declared("history")


@pytest.mark.parametrize("door", WINGS)
def test_a_door_of_the_gate_leads_to_a_wing(door: str) -> None:
    assert WINGS[door].split(".")[1] in {"analysis", "experiments", "history", "agents", "cli"}
    assert getattr(wings, door) is import_module(WINGS[door])
