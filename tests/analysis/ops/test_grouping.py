"""Op tables in few rows: what is gathered, what is told apart, and what can still be said."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.align import (
    attribute_groups,
    group_ops,
)
from pytest_ttnn_perf.analysis.ops.regions import middle_lane, regions_of
from pytest_ttnn_perf.core.ops import HOST, Op, OpGroup, OpGroups, Signature
from tests.analysis.ops.tables import MATMUL, NORM, RESHARD, grouped, op, retyped, table

FOLD = Signature("Fold")


def group(
    signature: Signature = MATMUL,
    count: int = 1,
    total_ns: float = 10_000.0,
    median_ns: float | None = None,
    *,
    cores: int | None = 64,
    fidelity: str | None = "HiFi4",
    settings: str = "",
) -> OpGroup:
    each = total_ns / count if median_ns is None else median_ns
    return OpGroup(signature, cores, fidelity, settings, count, total_ns, each)


def groups_of(*ops: Op) -> list[OpGroup]:
    return list(grouped(table(ops)).groups)


def test_ops_that_are_set_up_alike_are_one_group() -> None:
    rows = [op(MATMUL, 10_000), op(NORM, 5_000), op(MATMUL, 12_000), op(MATMUL, 11_000)]
    assert grouped(table(rows)) == OpGroups(
        "DEVICE KERNEL DURATION [ns]",
        (group(NORM, 1, 5_000), group(MATMUL, 3, 33_000, 11_000)),
    )


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (op(retyped(MATMUL, "BFLOAT8_B")), {"signature": retyped(MATMUL, "BFLOAT8_B")}),
        (op(cores=32), {"cores": 32}),
        (op(fidelity=None), {"fidelity": None}),
        (op(attributes="in0_block_w=2"), {"settings": "activation=none in0_block_w=2"}),
    ],
    ids=["operands", "cores", "unknown fidelity", "settings"],
)
def test_ops_that_differ_in_anything_are_two(other: Op, expected: dict[str, object]) -> None:
    found = groups_of(op(), other)
    assert len(found) == 2
    assert group() in found
    assert replace(group(), **expected) in found


def test_ops_on_the_host_are_counted_and_take_no_kernel_time() -> None:
    cat = Signature("(torch) cat")
    fallback = op(cat, 900, device=HOST, cores=None, fidelity=None)
    expected = group(cat, 2, 0, cores=None, fidelity=None)
    assert groups_of(fallback, op(), fallback) == [expected, group()]
    assert groups_of(fallback, fallback) == [expected]


@pytest.mark.parametrize(
    ("times_ns", "expected"),
    [
        ([100, 80], [[100, 80]]),
        ([100, 79], [[100], [79]]),
        ([53, 1000, 100, 52, 990, 90], [[1000, 990], [100, 90], [53, 52]]),
        ([5, 0, 0], [[5], [0, 0]]),
    ],
    ids=["at the limit", "below it", "three kinds", "zeros"],
)
def test_ops_that_have_only_a_name_are_told_apart_by_time(
    times_ns: list[float], expected: list[list[float]]
) -> None:
    found = groups_of(*(op(FOLD, each) for each in times_ns))
    assert [(each.count, each.total_ns) for each in found] == [
        (len(times), sum(times)) for times in expected
    ]


def test_the_two_middle_steps_of_one_program_are_one_whatever_device_is_slowest() -> None:
    def step(replay: int, device: int, cores: int, ns: float) -> list[Op]:
        ran = (1, replay)
        matmul = op(kernel_ns=100, device=device, replay=ran)
        return [matmul, op(RESHARD, ns, device=device, cores=cores, replay=ran)]

    rows = [*step(0, 0, 10, 20), *step(0, 1, 12, 19), *step(1, 0, 10, 21), *step(1, 1, 12, 22)]
    replays = table(rows)
    (region,) = regions_of(replays).regions

    groups = group_ops(replays, middle_lane(replays, region)).groups

    assert [(each.signature.op, each.count, each.total_ns) for each in groups] == [
        (MATMUL.op, 1, 100),
        (RESHARD.op, 1, 21),
    ]


def test_times_of_different_columns_cannot_be_compared() -> None:
    same = (group(),)
    assert attribute_groups(OpGroups("KERNEL [ns]", same), OpGroups("FW [ns]", same)) is None
