"""What drifted while it was measured is said, and fails nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import MODEL, metric, outcomes, write_model
from tests.behaviour.turns import IN_WORKERS, latencies, write_turns

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

RAMP = [10 * 1.1 ** (k / 9) for k in range(10)]
STEP = [12.0] * 4 + [9.0] * 8
NOISE = [10.0, 10.4, 9.8, 10.1, 10.3, 9.7, 10.2, 9.9, 10.4, 10.0]
CAUSE = "a clock or a temperature that had not settled; more warm-up may help"
RAMPED = f"drift {MODEL}: latency got 10.0 % slower in the course of 10 samples: {CAUSE}"
STEPPED = f"drift {MODEL}: latency got 25.0 % faster after the first 4 of 12 samples: {CAUSE}"


def drifts_in(ran: Ran) -> list[str]:
    """Return the lines about drift."""
    return [line for line in ran.text.splitlines() if line.startswith("drift ")]


@pytest.mark.parametrize(
    ("samples", "said"),
    [(RAMP, [RAMPED]), (STEP, [STEPPED]), (NOISE, [])],
    ids=["ramp", "step", "noise"],
)
def test_samples_of_a_time_that_drift_are_told_by_the_run_and_by_the_gate(
    project: Project, samples: list[float], said: list[str]
) -> None:
    write_model(project, latency=metric(*samples))
    project.pytest("--ttnn-perf-update=new")

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-json=run.json")
    gated = project.cli("gate", "run.json")

    assert (ran.code, gated.code) == (0, 0)
    assert outcomes(project) == {"latency": "WITHIN"}
    assert drifts_in(ran) == drifts_in(gated) == said


def test_drift_is_told_beside_a_regression(project: Project) -> None:
    write_model(project, latency=metric(*NOISE))
    project.pytest("--ttnn-perf-update=new")
    write_model(project, latency=metric(*(2 * sample for sample in RAMP)))

    ran = project.pytest("--ttnn-perf")

    assert ran.code == 1
    assert drifts_in(ran) == [RAMPED]


def test_drift_of_a_new_test_is_told_when_it_is_recorded(project: Project) -> None:
    write_model(project, latency=metric(*STEP))
    ran = project.pytest("--ttnn-perf-update=new")
    assert ran.code == 0
    assert drifts_in(ran) == [STEPPED]


def test_only_times_are_looked_at(project: Project) -> None:
    """A throughput that was derived from a time would say the same again."""
    write_model(
        project,
        rate=metric(*RAMP, unit="tok/s", kind="throughput", better="higher"),
        peak=metric(*(round(1000 * sample) for sample in RAMP), unit="B", kind="bytes"),
    )
    assert drifts_in(project.pytest("--ttnn-perf-update=new")) == []


def run_of(project: Project, *changes: float, options: tuple[str, ...] = ()) -> Ran:
    """Run one test after another, each so much slower than its baseline."""
    names = [f"t{number:02}" for number in range(len(changes))]
    write_turns(project, **{name: latencies(10) for name in names})
    project.pytest("--ttnn-perf-update=new")
    now = zip(names, changes, strict=True)
    write_turns(project, **{name: latencies(10 * (1 + change)) for name, change in now})
    return project.pytest(*options, "--ttnn-perf", "--ttnn-perf-json=run.json")


SLOWER_AND_SLOWER = [0.045 * k / 9 for k in range(10)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (SLOWER_AND_SLOWER, "4.5 % slower against the baselines in the course of 10 tests"),
        ([0.045] * 6 + [0.0] * 6, "4.3 % faster against the baselines after the first 6 of 12 "
                                  "tests"),
        (SLOWER_AND_SLOWER[:7], None),
        (SLOWER_AND_SLOWER[::2] + SLOWER_AND_SLOWER[1::2], None),
    ],
    ids=["trend", "step", "too few tests", "no order"],
)  # fmt: skip
def test_run_that_drifts_from_test_to_test(
    project: Project, changes: list[float], said: str | None
) -> None:
    ran = run_of(project, *changes)
    gated = project.cli("gate", "run.json")

    assert ran.code == 0
    assert drifts_in(ran) == drifts_in(gated) == ([f"drift of the run: {said}"] if said else [])


def test_workers_tell_the_same(project: Project) -> None:
    ran = run_of(project, *SLOWER_AND_SLOWER, options=IN_WORKERS)
    assert drifts_in(ran) == [
        "drift of the run: 4.5 % slower against the baselines in the course of 10 tests"
    ]
