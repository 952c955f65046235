"""Tests the built wheel on every supported Python, with the oldest and the newest pytest.

A Python that this machine does not have is named, and makes the run fail unless --allow-missing.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.pythons import python_of

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".matrix"


@dataclass(frozen=True)
class Row:
    """One environment: a Python, and the versions that are pinned in it."""

    python: str
    pins: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name the environment by what is particular about it."""
        return " ".join([f"python{self.python}", *self.pins])


OLDEST = "pytest==7.4.*"
NEWEST = "pytest"
#: What shows soonest that a Python or a pytest is not supported.
SMOKE = ("tests/contract", "tests/behaviour/test_outcomes.py", "tests/behaviour/test_session.py")
ROWS = (
    Row("3.10", (OLDEST, "numpy<2", "pandas<2.3", "filelock==3.12.*", "msgspec==0.19.*")),
    Row("3.10", (NEWEST,)),
    Row("3.11", (OLDEST,)),
    Row("3.11", (NEWEST, "numpy<2")),
    Row("3.12", (OLDEST, "numpy<2")),
    Row("3.12", (NEWEST,)),
    Row("3.13", (OLDEST,)),
    Row("3.13", (NEWEST,)),
)


def main() -> int:
    """Run every row; print one line each at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--allow-missing", action="store_true")
    parser.add_argument("--only", help="rows whose name contains this")
    parser.add_argument("--smoke", action="store_true", help="two rows, a part of the tests")
    options = parser.parse_args()
    rows = [row for row in ROWS if not options.only or options.only in row.name]
    if options.smoke:
        rows = [rows[0], rows[-1]]
    shutil.rmtree(FOLDER, ignore_errors=True)
    wheel = _build()
    results = {}
    for number, row in enumerate(rows, start=1):
        _say(f"\n=== {number} of {len(rows)}: {row.name} ===")
        start = time.monotonic()
        done = _run(row, wheel, SMOKE if options.smoke else ("tests",))
        results[row.name] = f"{done} ({time.monotonic() - start:.0f} s)"
    _say("\n" + "\n".join(f"{name}: {result}" for name, result in results.items()))
    bad = ("failed",) if options.allow_missing else ("failed", "missing")
    return 1 if any(result.startswith(bad) for result in results.values()) else 0


def _build() -> Path:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", FOLDER, ROOT],
        check=True,
    )
    (wheel,) = FOLDER.glob("pytest_ttnn_perf-*.whl")
    return wheel


def _run(row: Row, wheel: Path, tests: Sequence[str]) -> str:
    interpreter = python_of(row.python)
    if interpreter is None:
        return "missing: no such Python on this machine"
    venv = FOLDER / row.name.replace(" ", "_").replace("<", "lt").replace("*", "x")
    subprocess.run([interpreter, "-m", "venv", venv], check=True)
    python = str(venv / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    tools = ("hypothesis", "jsonschema", "pytest-xdist", "PyYAML", "sqlalchemy")
    subprocess.run([*pip, *tools, str(wheel), *row.pins], check=True)
    # A copy without the package: what is tested is the wheel, not the working tree.
    tree = venv / "tree"
    for name in ("tests", "examples", "baselines", "docs"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tree / name)
    command = [python, "-m", "pytest", "-q", *tests, "--ignore=tests/meta"]
    return "passed" if subprocess.run(command, cwd=tree, check=False).returncode == 0 else "failed"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
