"""What two sides must have in common, and what cannot be believed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ttnn_perf.experiments.receipts import differing_conditions
from pytest_ttnn_perf.records.hardware import Hardware
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Metric, Source
from pytest_ttnn_perf.records.observation import Conditions, MetricObservation, Observation
from pytest_ttnn_perf.records.ops import OpGroup, OpGroups, Signature, Tensor
from pytest_ttnn_perf.records.step import Edit

WALL = Conditions(
    "wall_time", 3, 10, "time.perf_counter_ns", sync="wait", inputs=("8x8",), content="aa",
    reacts=True, new_input_ratio=1.0, pending_ratio=0.0, clock_ratio=1.0,
)  # fmt: skip
TILES = Tensor((1, 1, 2048, 2048), (1, 1, 2048, 2048), "TILE", "BFLOAT16", "DRAM_INTERLEAVED")
MATMUL = Signature("MatmulDeviceOperation", (TILES, TILES), (TILES,))


def ops(ns: float) -> OpGroups:
    return OpGroups("kernel", (OpGroup(MATMUL, 64, "HiFi2", "", 1, ns, ns),))


def metric(name: str, ns: float, source: Source = Source.WALL) -> MetricObservation:
    return MetricObservation(Metric(name, "ns", source=source), (ns,) * 3)


BEFORE = Observation(
    "test_a.py::test_a",
    {
        "wall_time": metric("wall_time", 1_000_000.0),
        KERNEL_TIME: metric(KERNEL_TIME, 900_000.0, Source.DEVICE),
    },
    ops=ops(900_000.0),
    hardware=Hardware("wormhole_b0", "n150"),
    conditions={"wall_time": WALL},
    references={"pcc": "cc"},
)


def edits(after: Observation, before: Observation = BEFORE, *, rounds: int = 1) -> list[Edit]:
    found = differing_conditions("test_a.py::test_a", [before] * rounds, [after] * rounds)
    return [refusal.edit for refusal in found]


def measured(**conditions: object) -> Observation:
    return replace(BEFORE, conditions={"wall_time": replace(WALL, **conditions)})  # type: ignore[arg-type]


def timed(**times_ns: float) -> Observation:
    changed = {
        name: replace(BEFORE.metrics[name], samples=(ns,) * 3) for name, ns in times_ns.items()
    }
    return replace(BEFORE, metrics={**BEFORE.metrics, **changed})


def test_the_same_is_comparable() -> None:
    assert edits(BEFORE, rounds=2) == []


@pytest.mark.parametrize(
    ("after", "edit"),
    [
        (measured(warmup=30), Edit.WARMUP),
        (measured(iterations=2), Edit.ITERATIONS),
        (measured(depth=4), Edit.ITERATIONS),
        (measured(inputs=("4x8",)), Edit.INPUTS),
        (measured(clock="model.clock#1"), Edit.CLOCK),
        (measured(sync=None), Edit.SYNC),
        (measured(reacts=False), Edit.INPUT_IGNORED),
        (measured(new_input_ratio=1.6), Edit.KEPT_RESULT),
        (measured(pending_ratio=0.06), Edit.NOT_SYNCHRONISED),
        (measured(clock_ratio=0.79), Edit.PATCHED_CLOCK),
        (replace(BEFORE, ops=None), Edit.NO_OPS),
        (replace(BEFORE, ops=ops(1_000.0)), Edit.TOO_FAST),
        (timed(wall_time=700_000.0), Edit.NOT_SYNCHRONISED),
        (replace(BEFORE, waived={"TTP305": "later"}), Edit.WAIVER),
        (replace(BEFORE, metrics={KERNEL_TIME: BEFORE.metrics[KERNEL_TIME]}), Edit.METRICS),
    ],
)  # fmt: skip
def test_what_is_refused(after: Observation, edit: Edit) -> None:
    assert edits(after) == [edit]


@pytest.mark.parametrize(
    "after",
    [
        measured(new_input_ratio=1.4),
        measured(pending_ratio=0.04),
        measured(clock_ratio=0.81),
        measured(reacts=None, new_input_ratio=None, pending_ratio=None, clock_ratio=None),
        timed(wall_time=820_000.0),
        timed(wall_time=300_000.0, device_kernel_time=280_000.0),
        replace(BEFORE, ops=ops(200_000.0)),
        # What a profiler lost is not known; it is for the rounds to say so.
        replace(BEFORE, metrics={"wall_time": BEFORE.metrics["wall_time"]}),
        replace(BEFORE, ops=None, dropped=True),
    ],
)
def test_what_is_near_a_limit_or_not_known_is_no_evidence(after: Observation) -> None:
    assert edits(after) == []


def test_what_was_so_before_is_not_the_steps_doing() -> None:
    odd = replace(measured(reacts=False, new_input_ratio=3.0, pending_ratio=0.5), ops=ops(1_000.0))
    odd = replace(odd, metrics=timed(wall_time=500_000.0).metrics)
    assert edits(odd, odd) == []


def test_other_values_count_once_rounds_show_that_they_are_not_drawn_anew() -> None:
    other = replace(measured(content="bb"), references={"pcc": "dd"})
    assert edits(other) == [], "one round cannot tell"
    assert edits(other, rounds=2) == [Edit.INPUTS, Edit.REFERENCE]
    drawn = [BEFORE, replace(measured(content="zz"), references={"pcc": "yy"})]
    found = differing_conditions("test_a.py::test_a", drawn, [other, other])
    assert [refusal.edit for refusal in found] == []
