"""When ops ran: by cycles, by gaps, and with devices side by side."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.regions import (
    middle_steps,
    regions_of,
    rows_by_device,
    step_times_ns,
)
from pytest_ttnn_perf.analysis.ops.timeline import (
    Alignment,
    Clock,
    timeline_of,
)
from pytest_ttnn_perf.analysis.readers.device_csv import gated_ops
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from pytest_ttnn_perf.core.ops import HOST, OpTable, Signature
from pytest_ttnn_perf.history.page import regions_of_groups, timelines_of
from tests.analysis.ops.tables import MATMUL, NORM, op, table
from tests.harness.captures import VARIETY
from tests.harness.corpus import corpus

GATHER = Signature("AllGatherDeviceOperation", NORM.inputs, NORM.outputs)


def timed(*rows: tuple[Signature, int, int, float], mhz: float | None = 1000.0) -> OpTable:
    """Return a table of ops: what, on which device, from which cycle on, for how long."""
    made = table(op(what, ns, device=device) for what, device, _, ns in rows)
    starts = [None if device == HOST else cycle for _, device, cycle, _ in rows]
    columns = replace(made.columns, start_cycle=starts, gap_ns=[None] * len(rows))
    return replace(made, columns=columns, clock_mhz=mhz)


def test_starts_are_those_that_the_device_counted() -> None:
    ops = timed((MATMUL, 0, 5_000, 200.0), (NORM, 0, 5_400, 100.0), mhz=500.0)
    found = timeline_of(ops, rows_by_device(ops, range(len(ops))))
    assert (found.clock, found.alignment) == (Clock.CYCLES, Alignment.ALONE)
    assert [(span.start_ns, span.end_ns) for span in found.lanes[0]] == [(0, 200), (800, 900)]


def test_without_cycles_starts_follow_from_gaps_and_without_these_ops_follow_each_other() -> None:
    ops = timed((MATMUL, 0, 0, 200.0), (NORM, 0, 0, 100.0), (NORM, 0, 0, 50.0), mhz=None)
    step = rows_by_device(ops, range(len(ops)))
    assert timeline_of(ops, step).clock is Clock.NONE
    assert [s.start_ns for s in timeline_of(ops, step).lanes[0]] == [0, 200, 300]
    ops = replace(ops, columns=replace(ops.columns, gap_ns=[9e9, 30.0, -5.0]))
    found = timeline_of(ops, step)
    assert found.clock is Clock.GAPS
    assert [span.start_ns for span in found.lanes[0]] == [0, 230, 330]


def test_devices_are_put_side_by_side_by_their_collectives() -> None:
    # Device 1 began counting 7 seconds later, and comes to the collective 60 ns after device 0.
    late = 7_000_000_000
    ops = timed(
        (MATMUL, 0, 100, 100.0),
        (GATHER, 0, 200, 90.0),
        (MATMUL, 1, late + 100, 160.0),
        (GATHER, 1, late + 260, 30.0),
    )
    found = timeline_of(ops, rows_by_device(ops, range(len(ops))))
    assert found.alignment is Alignment.COLLECTIVES
    assert [[s.start_ns for s in spans] for spans in found.lanes.values()] == [
        [0, 100],
        [0, 160],
    ]
    waits = [[span.waits_ns for span in spans] for spans in found.lanes.values()]
    assert waits == [[0, 60], [0, 0]]
    (drawn,), _ = timelines_of(ops, most=100)
    assert [lane["kinds"] for lane in drawn["lanes"]] == ["kwk", "kk"]


def test_without_collectives_they_begin_together_and_that_is_said() -> None:
    ops = timed((MATMUL, 0, 100, 100.0), (MATMUL, 1, 900_000, 100.0))
    (drawn,), notes = timelines_of(ops, most=100)
    assert [lane["starts_us"] for lane in drawn["lanes"]] == [[0], [0]]
    assert notes == [
        "timelines: devices are put side by side by their first ops: nothing tells which of them "
        "began earlier"
    ]


@pytest.mark.parametrize("name", VARIETY)
def test_real_captures(name: str) -> None:
    ops = read_ops_csv(corpus(name))
    drawn, _ = timelines_of(ops, most=100_000)
    groups = gated_ops(ops)
    assert groups is not None
    pages = list(regions_of_groups(groups, ops.arch, ops.available_cores, most=60))
    regions = regions_of(ops).regions
    for region, timeline, page in zip(regions, drawn, pages, strict=True):
        slowest = max(sum(lane["durations_us"]) for lane in timeline["lanes"])
        place = region.steps.index(middle_steps(ops, region)[0])
        assert slowest == pytest.approx(step_times_ns(ops, region)[place] / 1000, abs=0.5)
        assert sum(each["time_us"] for each in page["ops"]) == pytest.approx(
            page["time_us"], abs=0.05
        )
        assert sum(each["share"] for each in page["ops"]) == pytest.approx(1, abs=0.005)
        assert all(
            each["ideal_us"] is None or each["ideal_us"] <= 1.1 * each["time_us"]
            for each in page["ops"]
        )
