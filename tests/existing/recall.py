"""Runs every idiom under the gate, and prints what was seen of it.

The table of docs/explanation/existing-tests.md is what ``python -m tests.existing.recall`` prints.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.existing.idioms import IDIOMS, Idiom, change_numbers, repeat_sessions, write_project

GATE = ("--ttnn-perf-isolate=inline", "-p", "no:cacheprovider")


def _run(folder: Path, *options: str) -> tuple[bool, dict[str, Any]]:
    """Run the test of a project; return whether it passed, and what the record says of it."""
    command = [sys.executable, "-m", "pytest", "-q", *GATE, "--ttnn-perf-json=run.json", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    record = json.loads((folder / "run.json").read_text())
    return done.returncode == 0, record["tests"]["test_model.py::test_model"]


def row_of(idiom: Idiom) -> tuple[str, ...]:
    """Return what the gate makes of one idiom: recorded, gated, caught, let pass."""
    with tempfile.TemporaryDirectory() as place:
        project: Any = SimpleNamespace(path=Path(place))
        write_project(project, idiom.text)
        _, entry = _run(project.path, "--ttnn-perf-update=new")
        metrics = entry["metrics"]
        gated = [name for name, metric in metrics.items() if metric.get("gated", True)]
        numbers = (str(len(metrics)), str(len(gated)))
        if idiom.by_clock:
            return (idiom.name, *numbers, "by the clock", "by the clock")
        repeat_sessions(project)
        change_numbers(project, 1.06)
        slower, _ = _run(project.path, "--ttnn-perf")
        change_numbers(project, 0.8)
        faster, _ = _run(project.path, "--ttnn-perf")
        return (idiom.name, *numbers, "no" if slower else "yes", "yes" if faster else "no")


def main() -> None:
    """Print the table."""
    print("| idiom | numbers recorded | gated | 6 % slower fails | 20 % faster passes |")  # noqa: T201
    print("|---|---|---|---|---|")  # noqa: T201
    for idiom in IDIOMS:
        print(f"| {' | '.join(row_of(idiom))} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
