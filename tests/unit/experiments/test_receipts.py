"""What two sides must have in common, and what cannot be believed."""

from __future__ import annotations

from dataclasses import replace
from math import cos, radians, sin
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.experiments.receipts import (
    _MASKS_NAN,
    differing_conditions,
    lost_gain,
    unchecked,
)
from pytest_ttnn_perf.records.hardware import Hardware
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Better, Kind, Metric, Source
from pytest_ttnn_perf.records.observation import Conditions, Limits, MetricObservation, Observation
from pytest_ttnn_perf.records.ops import OpGroup, OpGroups, Signature, Tensor
from pytest_ttnn_perf.records.step import Edit

if TYPE_CHECKING:
    from collections.abc import Sequence

WALL = Conditions(
    "wall_time", 3, 10, "time.perf_counter_ns", sync="wait", inputs=("8x8",), content="aa",
    reacts=True, sample_ns=1e6, new_input_ns=1e6, pending_ratio=0.0, clock_ratio=1.0,
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
        (measured(threads=1), Edit.NOT_SYNCHRONISED),
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
        measured(sample_ns=1e5, new_input_ns=9e6),  # one round: the host may have been busy
        measured(pending_ratio=0.04),
        measured(clock_ratio=0.81),
        measured(reacts=None, new_input_ns=None, pending_ratio=None, clock_ratio=None),
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
    odd = replace(
        measured(reacts=False, new_input_ns=3e6, pending_ratio=0.5, threads=2), ops=ops(1_000.0)
    )
    odd = replace(odd, metrics=timed(wall_time=500_000.0).metrics)
    assert edits(odd, odd) == []


def test_other_values_count_once_rounds_show_that_they_are_not_drawn_anew() -> None:
    other = replace(measured(content="bb"), references={"pcc": "dd"})
    assert edits(other) == [], "one round cannot tell"
    assert edits(other, rounds=2) == [Edit.INPUTS, Edit.REFERENCE]
    drawn = [BEFORE, replace(measured(content="zz"), references={"pcc": "yy"})]
    found = differing_conditions("test_a.py::test_a", drawn, [other, other])
    assert [refusal.edit for refusal in found] == []


@pytest.mark.parametrize(
    ("before_ns", "after_ns", "refused"),
    [
        ((1.0e6, 1.0e6, 1.0e6), (1.0e6, 1.01e6, 0.99e6), True),
        ((1.0e6, 1.0e6, 1.0e6), (0.9e6, 0.88e6, 0.9e6), True),
        ((1.0e6, 1.0e6, 1.0e6), (0.75e6, 3.0e6, 1.4e6), False),  # one call was not disturbed
        ((1.3e6, 1.1e6, 1.2e6), (1.1e6, 3.0e6, 1.1e6), True),
        ((3.0e6, 1.1e6, 2.0e6), (1.1e6, 3.0e6, 1.1e6), False),  # the kept state has more to bear
        ((1.5e6, 1.6e6, 1.5e6), (1.3e6, 1.25e6, 1.3e6), False),  # both have something to bear
        ((1.0e6, 1.0e6), (1.0e6, 1.0e6), False),  # too few to tell
        ((1.0e6, 1.0e6, 1.0e6), (1.0e6, None, 1.0e6), False),  # too short to tell
    ],
)
def test_a_gain_of_a_quarter_that_new_inputs_do_not_have(
    before_ns: Sequence[float], after_ns: Sequence[float | None], refused: bool
) -> None:
    before, after = (
        [
            replace(
                measured(sample_ns=sample_ns, new_input_ns=ns),
                metrics={"wall_time": metric("wall_time", sample_ns)},
            )
            for ns in new_ns
        ]
        for sample_ns, new_ns in ((1e6, before_ns), (0.75e6, after_ns))
    )
    found = lost_gain("t", "wall_time", before, after)
    assert (found is not None) is refused
    assert lost_gain("t", "wall_time", after, before) is None, "no gain, nothing to lose"


@pytest.mark.parametrize("differ_ns", [2e4, 1e3])
def test_a_new_input_that_is_no_slower_than_slow_samples_takes_no_gain_away(
    differ_ns: float,
) -> None:
    """A few calls differ by more than a small gain."""
    before, after = (
        [
            replace(
                measured(sample_ns=ns, new_input_ns=1.02e6),
                metrics={
                    "wall_time": replace(
                        metric("wall_time", ns), samples=(ns - differ_ns, ns, ns + differ_ns)
                    )
                },
            )
            for _ in range(4)
        ]
        for ns in (1.05e6, 1.0e6)
    )
    assert (lost_gain("t", "wall_time", before, after) is None) is (differ_ns > 1e4)


#: What a sketch begins with.
SHAPE = 7.0


#: Angles between outputs, in degrees, as sketches of two values have them. The limit is at 8.1.
def outputs(own: float, again: float, new: float, **others: object) -> Observation:
    def sketch(degrees: float) -> tuple[float, ...]:
        return SHAPE, cos(radians(degrees)), sin(radians(degrees))

    checked = MetricObservation(
        Metric("pcc", "", Better.HIGHER, Kind.ACCURACY), (0.995,), limits=Limits(at_least=0.99)
    )
    both = {"aa": sketch(again), "new": sketch(new)}
    seen = measured(**{"returned": sketch(own), "outputs": both, **others})
    return replace(seen, metrics={**BEFORE.metrics, "pcc": checked})


@pytest.mark.parametrize(
    ("after", "refused"),
    [
        (outputs(0, 0, 0), False),
        (outputs(5, 5, 15), False),
        (outputs(0, 0, 17), True),  # full work only for the input of the test
        (outputs(5, 5, 19), False),  # coarser numbers: new inputs may be further off
        (outputs(0, 9, 0), True),  # full work only while it is looked at
        (outputs(20, 20, 20, checked=True), True),  # its own PCC cannot be right
        (outputs(20, 20, 20), False),  # what was measured is not what the test compares
        (outputs(0, 0, 17, outputs={"aa": (8.0, 1.0, 0.0), "new": (8.0, 0.0, 1.0)}), False),
        (replace(outputs(0, 0, 17), references={"pcc": "dd"}), False),  # has a name of its own
        (outputs(0, 0, 17, outputs={}), False),  # a test that failed, and was not asked again
    ],
)
def test_outputs_are_those_of_the_kept_state(after: Observation, refused: bool) -> None:
    kept = outputs(0, 0, 0, checked=True)
    assert edits(after, kept) == [Edit.OTHER_OUTPUT] * refused


def test_a_model_that_never_gives_the_same_output_is_not_held_to_it() -> None:
    assert edits(outputs(0, 0, 90), outputs(0, 30, 60, checked=True)) == []


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (outputs(0, 0, 0), outputs(0, 0, 0), None),
        (outputs(0, 30, 0), outputs(0, 0, 0), "it is not the same twice"),
        (
            outputs(0, 0, 0),
            outputs(0, 0, 0, outputs={}),
            "it was not called with the same input again",
        ),
        (
            outputs(0, 0, 0),
            outputs(0, 0, 0, outputs={"aa": (8.0, 1.0, 0.0)}),
            "it has another shape",
        ),
        (outputs(0, 0, 0), replace(outputs(0, 0, 0), references={}), "the test asks for no PCC"),
    ],
)
def test_outputs_that_tell_nothing_are_not_passed_over(
    before: Observation, after: Observation, why: str | None
) -> None:
    where = "test_a.py::test_a wall_time: whether its output is as before is not known: "
    assert [*unchecked(before, after)] == ([where + why] if why else [])


@pytest.mark.parametrize(
    ("line", "masks"),
    [
        ("x = torch.where(x != x, 0, x)", True),
        ("x[x != x] = 0", True),
        ("keep = out.data == out.data", True),
        ("x = x.masked_fill(torch.isnan(x), 0)", True),
        ("if x.dim() - 2 == 2:", False),
        ("if len(shape) - 1 == 1:", False),
        ("if a.shape[0] // 2 == 2:", False),
        ("if total - used == used:", False),
        ("if used == used_before:", False),
    ],
)
def test_lines_that_hide_a_nan(line: str, masks: bool) -> None:
    assert (_MASKS_NAN.search(line) is not None) is masks
