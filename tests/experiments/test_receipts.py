"""What two sides must have in common."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import KERNEL_TIME, Metric, Source
from pytest_ttnn_perf.core.observation import Limits, MetricObservation, Observation
from pytest_ttnn_perf.experiments.journal import Edit
from pytest_ttnn_perf.experiments.try_change import differing_conditions

WALL = {"warmup": 3, "iterations": 10, "inputs": ("8x8",)}
BEFORE = Observation(
    "test_a.py::test_a",
    {
        "wall_time": MetricObservation(Metric("wall_time", "ns"), (1_000_000.0,) * 3),
        KERNEL_TIME: MetricObservation(
            Metric(KERNEL_TIME, "ns", source=Source.DEVICE), (900_000.0,) * 3
        ),
    },
    conditions={"wall_time": WALL},
)


def limited(limits: Limits) -> Observation:
    wall = replace(BEFORE.metrics["wall_time"], limits=limits)
    return replace(BEFORE, metrics={**BEFORE.metrics, "wall_time": wall})


def edits(after: Observation) -> list[str]:
    return [refusal.edit for refusal in differing_conditions(BEFORE.test, BEFORE, after)]


def measured(**conditions: object) -> Observation:
    return replace(BEFORE, conditions={"wall_time": WALL | conditions})


@pytest.mark.parametrize(
    ("after", "edit"),
    [
        (measured(warmup=30), Edit.WARMUP),
        (measured(iterations=2), Edit.ITERATIONS),
        (measured(depth=4), Edit.ITERATIONS),
        (measured(inputs=("4x8",)), Edit.INPUTS),
        (limited(Limits(tolerance=0.5)), Edit.TOLERANCE),
        (limited(Limits(at_least=0.5)), Edit.LIMIT),
        (replace(BEFORE, waived={"TTP305": "later"}), Edit.WAIVER),
        (replace(BEFORE, metrics={KERNEL_TIME: BEFORE.metrics[KERNEL_TIME]}), Edit.METRICS),
    ],
)
def test_what_is_refused(after: Observation, edit: Edit) -> None:
    assert edits(after) == [edit.value]


def test_what_a_profiler_lost_nobody_has_taken_away() -> None:
    assert edits(BEFORE) == []
    assert edits(replace(BEFORE, metrics={"wall_time": BEFORE.metrics["wall_time"]})) == []
