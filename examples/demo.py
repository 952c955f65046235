"""The main job, on any machine: record baselines, gate them, then catch one slowed model.

Only the accelerator is simulated, with its time. All else is what a user's own run does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Beside the run records, which git ignores. Those in ``baselines`` are for ``pytest --ttnn-perf``.
BASELINES = ".ttnn_perf/demo"
RECORD = ".ttnn_perf/demo.json"
SLOWED = "examples/test_attention.py::test_attention"
#: The sweep goes on until the device's memory is full: skips that look like failures here.
LEFT_OUT = "--ignore=examples/test_sweep.py"


@dataclass(frozen=True)
class Step:
    """Runs of the gate, and how they must end: exit code, and the worst outcome of every test."""

    title: str
    option: str
    expected: str
    code: int = 0
    cores: str = "64"
    slowed: str | None = None

    def outcome_of(self, test: str) -> str:
        """Return what a test must come out as."""
        return self.slowed if self.slowed and test == SLOWED else self.expected


STEPS = (
    Step("1. Record baselines", "--ttnn-perf-update=new", "NO_BASELINE"),
    # A change is a warning until three runs have shown how times vary.
    Step("2. A second run for the baselines", "--ttnn-perf-update", "WITHIN"),
    Step("3. A third run for the baselines", "--ttnn-perf-update", "WITHIN"),
    Step("4. Gate the same models: all WITHIN", "--ttnn-perf", "WITHIN"),
    Step(
        "5. Gate again, the attention model on 60 of 64 cores: it must fail",
        "--ttnn-perf",
        "WITHIN",
        code=1,
        cores="60",
        slowed="REGRESSED",
    ),
)


def main() -> int:
    """Run the steps; return 0 when every test of each came out as it should."""
    shutil.rmtree(ROOT / BASELINES, ignore_errors=True)
    for step in STEPS:
        code = _run(step)
        wrong = [f"exit code {code}, expected {step.code}"] if code != step.code else []
        wrong += [
            f"{test}: expected {step.outcome_of(test)}, found {found}"
            for test, found in _outcomes().items()
            if found != step.outcome_of(test)
        ]
        if wrong:
            _say("\nDemo failed.", *wrong)
            return 1
    _say("\nDemo done: the slowed model was caught by name, the others passed.")
    return 0


def _run(step: Step) -> int:
    arguments = ["examples", LEFT_OUT, "-q", "--tb=no", step.option]
    arguments += ["--ttnn-perf-baselines", BASELINES]
    _say(f"\n### {step.title}\n$ pytest {' '.join(arguments)}")
    environment = {**os.environ, "TTNN_PERF_DEMO_CORES": step.cores}
    command = [sys.executable, "-m", "pytest", *arguments, "--ttnn-perf-json", RECORD]
    done = subprocess.run(command, env=environment, cwd=ROOT, check=False)
    return done.returncode


def _outcomes() -> dict[str, str]:
    """Return each test's outcome, WITHIN only if every metric is."""
    tests = json.loads((ROOT / RECORD).read_text(encoding="utf-8"))["tests"]
    worst = {}
    for name, test in tests.items():
        if "out_of_memory" in test:
            continue  # a point of a sweep that does not fit, as it never did
        outcomes = {verdict["outcome"] for verdict in test["verdicts"].values()}
        worst[name] = min(outcomes - {"WITHIN"}, default="WITHIN")
    return worst


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
