"""When ops ran: by cycles, by gaps, and with devices side by side; and as trace events."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    trace_events,
    write_trace,
)
from pytest_ttnn_perf.analysis.readers.device_csv import gated_ops
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from pytest_ttnn_perf.core.ops import HOST, OpTable, Signature, Signpost
from pytest_ttnn_perf.history.page import regions_of_groups, timelines_of
from tests.analysis.ops.tables import MATMUL, NORM, op, table
from tests.harness.captures import VARIETY
from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from pathlib import Path

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


def check_format(events: list[dict[str, Any]]) -> None:
    """Hold events to the rules of the format, and slices of a thread to those of a stack."""
    named: set[tuple[str, int, int]] = set()
    slices: defaultdict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        assert {"name", "ph", "pid", "tid"} <= event.keys()
        assert type(event["pid"]) is int
        assert event["pid"] > 0
        if event["ph"] == "M":
            assert event["name"] in {"process_name", "thread_name"}
            named.add((event["name"], event["pid"], event["tid"]))
            continue
        assert event["ts"] >= 0
        assert ("thread_name", event["pid"], event["tid"]) in named
        if event["ph"] == "X":
            assert event["dur"] >= 0
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        else:
            assert (event["ph"], event["s"]) == ("i", "p")
    for spans in slices.values():
        open_ends: list[float] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start + 1e-5:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + 1e-5, "slices of a thread overlap"
            open_ends.append(end)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([MATMUL, NORM, GATHER]),
            st.sampled_from([0, 1, HOST]),
            st.integers(0, 10**15),
            st.floats(0, 1e7),
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([None, 1000.0, 1350.0]),
)
def test_any_table_is_a_valid_trace(
    rows: list[tuple[Signature, int, int, float]], mhz: float | None
) -> None:
    rows = [(what, dev, at, 0.0 if dev == HOST else ns) for what, dev, at, ns in rows]
    ops = replace(timed(*rows, mhz=mhz), signposts=(Signpost("a\nb", len(rows)),))
    events: Any = list(trace_events(ops, timeline_of(ops, rows_by_device(ops, range(len(ops))))))
    check_format(events)
    kernels = [e for e in events if e["ph"] == "X" and "number" in e["args"]]
    assert len(kernels) + sum(e.get("tid") == 2 and e["ph"] == "i" for e in events) == len(rows)
    total = sum(ns for _, _, _, ns in rows)
    assert sum(e["dur"] for e in kernels) == pytest.approx(total / 1000, abs=1e-4)


@pytest.mark.parametrize("name", VARIETY)
def test_real_captures(name: str, tmp_path: Path) -> None:
    ops = read_ops_csv(corpus(name))
    write_trace(ops, tmp_path / "trace.json", name=name)
    document = json.loads((tmp_path / "trace.json").read_text())
    check_format(document["traceEvents"])

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
