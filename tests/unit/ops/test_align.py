"""The whole: parts add up, are in order, and say what happened."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.ops.align import attribute
from pytest_ttnn_perf.records.attribution import ChangeKind, short_code
from tests.unit.ops.tables import MATMUL, NORM, RESHARD, op, table


def test_the_parts_are_the_largest_first_and_add_up() -> None:
    before = [op(MATMUL, 100_000), op(NORM, 30_000), op(NORM, 30_000)]
    after = [
        op(MATMUL, 161_000, cores=32),
        op(NORM, 31_000),
        *[op(RESHARD, 6_000)] * 3,
        op(NORM, 30_000),
    ]
    attribution = attribute(table(before), table(after))
    assert [(part.change, part.op, part.count, part.delta_ns) for part in attribution.parts] == [
        (ChangeKind.SLOWER, MATMUL.op, 1, 61_000),
        (ChangeKind.ADDED, RESHARD.op, 3, 18_000),
        (ChangeKind.SLOWER, NORM.op, 1, 1_000),
    ]
    assert (attribution.delta_ns, attribution.unexplained_ns) == (80_000, 0)
    assert attribution.op_list_changed


def test_parts_of_one_size_are_in_the_order_of_their_names() -> None:
    parts = attribute(table([op()]), table([op(), op(RESHARD), op(NORM)])).parts
    assert [part.op for part in parts] == [NORM.op, RESHARD.op]


def test_ops_that_got_slower_are_no_change_of_the_list() -> None:
    attribution = attribute(table([op(), op(NORM)]), table([op(MATMUL, 20_000), op(NORM)]))
    assert attribution.parts
    assert not attribution.op_list_changed


def test_short_codes() -> None:
    assert short_code("GridSampleOperation") == "GridSample"
    assert short_code("Matmul") == "Matmul"
    assert short_code("(torch) cat") == "(torch) cat"
    assert short_code("DeviceOperation") == "DeviceOperation"
