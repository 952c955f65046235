"""Regions of captures: what is measured as one step, and what is left out of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.regions import (
    Basis,
    Layers,
    Outside,
    count_replays,
    critical_rows,
    find_layers,
    middle_lane,
    regions_of,
    replays_in,
    step_time,
)
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from pytest_ttnn_perf.core.ops import Op, OpTable, Signature, Signpost
from tests.analysis.ops.tables import MATMUL, NORM, OUTPUT, RESHARD, op, table
from tests.harness.corpus import corpus
from tests.properties.strategies import SOME

if TYPE_CHECKING:
    from collections.abc import Sequence

TILIZE = Signature("TilizeDeviceOperation", (OUTPUT,), (OUTPUT,))
SECOND = 1e9


def late(row: Op, gap_ns: float) -> Op:
    """Return a row that begins so long after the one before it."""
    return row._replace(gap_ns=gap_ns)


def marked(rows: list[Op], **signposts: int) -> OpTable:
    """Return a table with signposts, each before a row."""
    posts = tuple(Signpost(name, position) for name, position in signposts.items())
    found = table(rows)
    traces = count_replays(found.columns, replays_in(found.columns))
    return replace(found, signposts=posts, traces=traces)


def shape(found: OpTable) -> list[tuple[str, Basis, list[int]]]:
    """Return the name and basis of each region, and the number of rows of its steps."""
    return [
        (region.name, region.basis, [sum(map(len, step.values())) for step in region.steps])
        for region in regions_of(found).regions
    ]


@pytest.mark.parametrize(
    ("opens", "closes", "name"),
    [
        ("PERF_DECODE", "PERF_DECODE_END", "decode"),
        ("Prefill_START", "Prefill_STOP", "prefill"),
        ("start", "stop", ""),
    ],
)
def test_a_window_is_a_region_and_the_rest_is_outside(opens: str, closes: str, name: str) -> None:
    found = marked([op(TILIZE, 700), op(), op(NORM), op(RESHARD, 5)], **{opens: 1, closes: 3})

    assert shape(found) == [(name, Basis.WINDOW, [2])]
    assert regions_of(found).outside == Outside(2, 705.0)


def test_the_call_that_warms_up_a_trace_is_no_region() -> None:
    warm = [op(), op(NORM)]
    replays = [op(each, replay=(1, run)) for run in range(3) for each in (MATMUL, NORM)]
    found = marked([*warm, *replays], DECODE=0, DECODE_END=8)

    assert shape(found) == [("decode", Basis.REPLAYS, [2, 2, 2])]
    assert regions_of(found).outside.ops == 2


def test_what_runs_beside_a_trace_is_a_region_of_its_own() -> None:
    replays = [op(each, replay=(1, run)) for run in range(2) for each in (MATMUL, NORM)]
    found = marked([op(RESHARD), *replays], DECODE=0, DECODE_END=5)

    assert shape(found) == [
        ("decode_untraced", Basis.WINDOW, [1]),
        ("decode", Basis.REPLAYS, [2, 2]),
    ]


def test_weights_that_are_loaded_first_belong_to_no_call() -> None:
    loading = [op(TILIZE, 1_000) for _ in range(20)]
    call = [late(op(TILIZE, 500), 3 * SECOND), op(), op(NORM)]

    found = table([*loading, *call])

    assert shape(found) == [("", Basis.WHOLE, [3])]
    assert regions_of(found).outside == Outside(20, 20_000.0)


@pytest.mark.parametrize(
    "rows",
    [
        [*[op(TILIZE)] * 5, late(op(TILIZE), SECOND), op()],  # few: the inputs of the call
        [*[op(TILIZE)] * 20, op()],  # no pause of the host
        [op(), *[op(TILIZE)] * 20, late(op(TILIZE), SECOND), op()],  # not at the beginning
        [*[op(TILIZE)] * 20, late(op(TILIZE), SECOND)],  # nothing else
    ],
    ids=["few", "no pause", "later", "alone"],
)
def test_other_conversions_are_part_of_the_call(rows: list[Op]) -> None:
    found = table(rows)

    assert shape(found) == [("", Basis.WHOLE, [len(rows)])]


def call(*, gap_ns: float = 5_000.0, before_ns: float = 0.0, device: int = 0) -> list[Op]:
    """Return a call of four ops, with gaps between them and one before it."""
    rows = [op(each, device=device) for each in (MATMUL, NORM, MATMUL, RESHARD)]
    first, *others = rows
    return [late(first, before_ns), *(late(row, gap_ns) for row in others)]


def test_calls_that_the_host_makes_one_after_another_are_steps() -> None:
    found = table([*call(), *call(before_ns=1e6), *call(before_ns=2e6)])

    assert shape(found) == [("", Basis.REPEATS, [4, 4, 4])]
    (region,) = regions_of(found).regions
    assert step_time(found, region).step_ns == 40_000


def test_a_call_that_compiles_programs_warms_up_the_others() -> None:
    found = table([*call(gap_ns=5e6), *call(before_ns=50e6)])

    assert shape(found) == [("", Basis.REPEATS, [4])]
    assert regions_of(found).regions[0].rows == [4, 5, 6, 7]
    assert regions_of(found).outside == Outside(4, 40_000.0)


def test_the_time_of_a_step_is_no_shorter_than_that_of_any_device() -> None:
    rows = [
        op(kernel_ns=ns, device=device, replay=(1, run))
        for run, times in enumerate([(10, 12), (14, 11), (13, 12), (11, 15)])
        for device, ns in enumerate(times)
    ]
    found = table(rows)

    time = step_time(found, regions_of(found).regions[0])

    assert time.step_ns == 13.5  # of 12, 14, 13 and 15
    assert time.devices_ns == {0: 13.5, 1: 11.5}


@pytest.mark.parametrize(
    ("name", "basis", "steps", "outside"),
    [
        ("blackhole_clip_encoder", Basis.REPEATS, 1, 330),  # one cold call before
        ("rt_detr", Basis.WHOLE, 1, 248),  # weights
        ("gemma_sliding_decode_final", Basis.REPLAYS, 1, 143),  # a replay before its window
        ("qwen27_incumbent_full_attention", Basis.REPLAYS, 33, 98),
    ],
)
def test_real_captures(name: str, basis: Basis, steps: int, outside: int) -> None:
    from pytest_ttnn_perf.analysis.readers.detect import op_table_of

    found = regions_of(op_table_of(corpus(f"ops_perf/{name}.csv")))

    assert [(each.basis, len(each.steps)) for each in found.regions] == [(basis, steps)]
    assert found.outside.ops == outside


LAYER = [1, 2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("ops", "found"),
    [
        ([], []),
        (LAYER, []),
        ([50, 51, *LAYER * 32, 52], [Layers(2, 9, 32)]),
        ([*LAYER * 2, 50], [Layers(0, 9, 2)]),
        ([1, 2, 3] * 3, []),
        ([1, 2, 3] * 4, [Layers(0, 3, 4)]),
        ([9, 7, 7, 7, 7, 8], [Layers(1, 1, 4)]),
        ([7, 7, 7], []),
        # Two kinds of layers, one after the other.
        ([*LAYER * 3, *range(20, 30), *range(20, 30)], [Layers(0, 9, 3), Layers(27, 10, 2)]),
        # Layers with equal ops inside are layers all the same.
        ([*LAYER, 1, 1, 1, *LAYER, 1, 1, 1, *LAYER, 1, 1, 1], [Layers(0, 12, 3)]),
    ],
)
def test_layers(ops: list[int], found: list[Layers]) -> None:
    assert find_layers(ops) == found


@SOME
@given(st.lists(st.integers(0, 3), max_size=60))
def test_layers_are_equal_blocks_that_do_not_overlap(ops: list[int]) -> None:
    stop = 0
    for layers in find_layers(ops):
        assert layers.start >= stop
        stop = layers.stop
        block = ops[layers.start : layers.start + layers.length]
        assert ops[layers.start : stop] == block * layers.times
    assert stop <= len(ops)


def test_of_truncated_replays_those_count_that_ran_what_most_did() -> None:
    found = read_ops_csv(corpus("ops_perf/qwen27_incumbent_full_attention.csv"))
    (region,) = regions_of(found).regions
    time = step_time(found, region)
    assert (time.complete, time.steps, time.ops) == (12, 33, 74)
    lengths = Counter(len(rows) for step in region.steps for rows in step.values())
    assert lengths[74] == 12 == max(lengths.values())
    assert len(middle_lane(found, region).rows) == 74


def test_the_critical_device_has_most_work_outside_collectives() -> None:
    found = read_ops_csv(corpus("ops_perf/gpt_oss_multichip.csv"))
    region = regions_of(found).regions[-1]
    step = region.steps[0]
    columns = found.columns

    def work_us(rows: Sequence[int]) -> int:
        kinds = (found.signatures[columns.signature[row]].category for row in rows)
        own = zip(rows, kinds, strict=True)
        return round(sum(columns.kernel_ns[row] for row, k in own if k.value != "collective") / 1e3)

    assert [work_us(step[device]) for device in sorted(step)] == pytest.approx(
        [297, 296, 545, 379], abs=1.5
    )
    assert columns.device[critical_rows(found, step)[0]] == sorted(step)[2]
