"""The main job, on any machine: record baselines, gate them, then catch one slowed model."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Beside the run records, which git ignores: times of one machine are no use on another.
BASELINES = ".ttnn_perf/demo"


def main() -> int:
    """Run the three steps; return 0 when each ended as it should."""
    shutil.rmtree(ROOT / BASELINES, ignore_errors=True)
    steps = (
        ("1. Record baselines", "--ttnn-perf-update=new", "1", 0),
        ("2. Gate the same models: all WITHIN", "--ttnn-perf", "1", 0),
        (
            "3. Gate again, the attention model slowed by 30 %: it must fail",
            "--ttnn-perf",
            "1.3",
            1,
        ),
    )
    for title, option, slowdown, expected in steps:
        code = _step(title, option, slowdown=slowdown)
        if code != expected:
            _say(f"\nDemo failed: expected exit code {expected}, found {code}.")
            return 1
    _say("\nDemo done: the slowed model was caught by name, the others passed.")
    return 0


def _step(title: str, option: str, *, slowdown: str) -> int:
    arguments = ["examples", "-q", "--tb=no", option, "--ttnn-perf-baselines", BASELINES]
    _say(f"\n### {title}\n$ pytest {' '.join(arguments)}")
    environment = {**os.environ, "TTNN_PERF_DEMO_SLOWDOWN": slowdown}
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
