"""Replays and devices: which total is compared."""

from __future__ import annotations

from statistics import median

import pytest

from pytest_ttnn_perf.analysis.ops.align import attribute
from pytest_ttnn_perf.records.attribution import ChangeKind
from pytest_ttnn_perf.records.ops import HOST, Op, Signature
from tests.unit.ops.tables import MATMUL, NORM, RESHARD, op, table


def replayed(*replays: list[Op], trace: int = 1) -> list[Op]:
    return [
        row._replace(trace=trace, replay=number)
        for number, rows in enumerate(replays)
        for row in rows
    ]


def total(ops: list[Op]) -> float:
    return attribute(table(ops), table(ops)).before_ns


def test_one_replay_stands_for_all_with_the_median_of_each_op() -> None:
    replays = [[op(MATMUL, ns), op(NORM, 2 * ns)] for ns in (10_000, 12_000, 90_000)]
    ops = [op(RESHARD, 5_000), *replayed(*replays), op(RESHARD, 7_000)]
    attribution = attribute(table(ops), table(ops))
    assert attribution.before_ns == 5_000 + 12_000 + 24_000 + 7_000
    assert attribution.replayed


def test_the_number_of_replays_changes_nothing() -> None:
    replay = [op(), op(NORM)]
    attribution = attribute(table(replayed(replay)), table(replayed(*[replay] * 5)))
    assert (attribution.delta_ns, attribution.parts) == (0, ())


def test_a_replay_that_lost_ops_does_not_count() -> None:
    whole, cut = [op(MATMUL, 10_000), op(NORM, 4_000)], [op(NORM, 90_000)]
    assert total(replayed(cut, whole, cut, cut)) == 14_000


def test_of_replays_as_long_as_each_other_the_usual_ones_count() -> None:
    usual, odd = [op(MATMUL, 10_000), op(NORM, 4_000)], [op(MATMUL, 10_000), op(MATMUL, 9_000)]
    assert total(replayed(odd, usual, usual)) == 14_000


def test_traces_are_kept_apart_and_in_their_places() -> None:
    first, second = [op(MATMUL, 1_000)], [op(NORM, 100)]
    ops = replayed(first, first) + replayed(second, second, trace=2) + [op(RESHARD, 10)]
    assert total(ops) == 1_110


def test_replays_that_nobody_told_apart_are_all_taken() -> None:
    assert total([op()._replace(trace=1), op()._replace(trace=1)]) == 20_000


def test_a_trace_against_the_same_ops_without_one() -> None:
    ops = [op(), op(NORM)]
    attribution = attribute(table(ops), table(replayed(ops, ops)))
    assert (attribution.delta_ns, attribution.parts, attribution.replayed) == (0, (), True)


def on(device: int, *rows: Op) -> list[Op]:
    return [row._replace(device=device) for row in rows]


def test_devices_are_averaged() -> None:
    before = on(3, op(MATMUL, 10_000)) + on(4, op(MATMUL, 20_000))
    after = on(3, op(MATMUL, 10_000)) + on(4, op(MATMUL, 60_000))
    attribution = attribute(table(before), table(after))
    assert (attribution.before_ns, attribution.after_ns) == (15_000, 35_000)
    assert attribution.devices == (2, 2)
    (part,) = attribution.parts
    assert (part.change, part.count, part.delta_ns) == (ChangeKind.SLOWER, 1, 20_000)


def test_what_devices_do_to_each_other_cancels() -> None:
    # One waits for the other in a collective, and the other way round the next time.
    gather = NORM._replace(op="AllGatherDeviceOperation")
    before = on(0, op(), op(gather, 9_000)) + on(1, op(), op(gather, 1_000))
    after = on(0, op(), op(gather, 1_000)) + on(1, op(), op(gather, 9_000))
    assert attribute(table(before), table(after)).parts == ()


def test_an_op_on_one_device_of_two_counts_half() -> None:
    before = on(0, op()) + on(1, op())
    after = on(0, op(), op(RESHARD, 8_000)) + on(1, op())
    (part,) = attribute(table(before), table(after)).parts
    assert (part.change, part.count, part.delta_ns) == (ChangeKind.ADDED, 1, 4_000)


def test_like_changes_of_devices_that_run_differently_are_one_part() -> None:
    before = on(0, op(), op(NORM)) + on(1, op())
    after = on(0, op(cores=32, kernel_ns=30_000), op(NORM)) + on(1, op(cores=32, kernel_ns=30_000))
    (part,) = attribute(table(before), table(after)).parts
    assert (part.count, part.delta_ns) == (1, 20_000)


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (2, 3), (3, 2), (3, 3)])
def test_another_number_of_devices_keeps_the_means(before: int, after: int) -> None:
    def some(devices: int) -> list[Op]:
        times = [9_000 + 6_000 * device for device in range(devices)]
        return [op(MATMUL, ns, device=device) for device, ns in enumerate(times)]

    attribution = attribute(table(some(before)), table(some(after)))
    assert attribution.before_ns == 9_000 + 3_000 * (before - 1)
    assert attribution.after_ns == 9_000 + 3_000 * (after - 1)
    assert attribution.devices == (before, after)


def test_a_fallback_to_the_host_is_told_but_takes_no_kernel_time() -> None:
    fallback = op(Signature("(torch) cat"), 0, device=HOST, cores=None, fidelity=None)
    attribution = attribute(table([op()]), table([op(), fallback, fallback]))
    (part,) = attribution.parts
    assert (part.change, part.op, part.count) == (ChangeKind.ADDED, "(torch) cat", 2)
    assert (attribution.delta_ns, attribution.devices) == (0, (1, 1))
    assert attribution.op_list_changed


def test_a_table_without_ops() -> None:
    nothing, something = table([]), table([op(), op(), op(NORM)])
    assert attribute(nothing, nothing).parts == ()
    assert [part.count for part in attribute(nothing, something).parts] == [2, 1]
    assert attribute(something, nothing).after_ns == 0
    assert median([part.delta_ns for part in attribute(something, nothing).parts]) < 0
