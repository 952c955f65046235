"""Ops aligned: noise, and causes."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.ops.align import (
    NOISE_FRACTION,
    NOISE_NS,
    Attribution,
    ChangeKind,
    Variant,
    causes_between,
    is_chance,
)
from tests.analysis.ops.tables import ACTIVATION, MATMUL, NORM, RESHARD, changed, op, retyped, table

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.ops import Op


def test_the_parts_are_the_largest_first_and_add_up() -> None:
    before = [op(MATMUL, 100_000), op(NORM, 30_000), op(NORM, 30_000)]
    after = [
        op(MATMUL, 161_000, cores=32),
        op(NORM, 31_000),
        *[op(RESHARD, 6_000)] * 3,
        op(NORM, 30_000),
    ]
    attribution = changed(table(before), table(after))
    assert [(part.change, part.op, part.count, part.delta_ns) for part in attribution.parts] == [
        (ChangeKind.SLOWER, MATMUL.op, 1, 61_000),
        (ChangeKind.ADDED, RESHARD.op, 3, 18_000),
        (ChangeKind.SLOWER, NORM.op, 1, 1_000),
    ]
    assert (attribution.delta_ns, attribution.unexplained_ns) == (80_000, 0)
    assert attribution.op_list_changed


def compared(before: list[Op], after: list[Op]) -> Attribution:
    return changed(table(before), table(after))


def jittered(ops: list[Op], seed: int, fraction: float = 0.01) -> list[Op]:
    chance = Random(seed)
    return [
        row._replace(kernel_ns=round(row.kernel_ns * (1 + chance.uniform(-fraction, fraction))))
        for row in ops
    ]


LAYERS = [op(MATMUL, 80_000), op(NORM, 9_000), op(RESHARD, 2_000)] * 24


def test_many_small_changes_of_one_cause_are_more_than_noise() -> None:
    faster = [
        row._replace(kernel_ns=row.kernel_ns * 0.985, cores=72) if row.signature == MATMUL else row
        for row in jittered(LAYERS, 2)
    ]
    (part,) = compared(jittered(LAYERS, 1), faster).parts
    assert (part.count, str(part.causes[0])) == (24, "cores 64 → 72")


def test_ups_and_downs_of_one_kind_that_come_to_nothing_are_noise() -> None:
    wild = [op(MATMUL, 80_000 + 4_000 * (-1) ** place) for place in range(24)]
    tame = [op(MATMUL, 80_000) for _ in range(24)]
    attribution = compared(tame, wild)
    assert (attribution.parts, attribution.delta_ns) == ((), 0)


@pytest.mark.parametrize("count", [1, 25])
def test_the_limit_from_both_sides(count: int) -> None:
    before = 50_000.0 * count
    # What chance adds to 25 ops is five times what it adds to one.
    limit = count**0.5 * (NOISE_NS + NOISE_FRACTION * 50_000)
    assert is_chance(before, before - 0.99 * limit, count=count)
    assert not is_chance(before, before - 1.01 * limit, count=count)


def variant(**fields: object) -> Variant:
    plain = Variant(MATMUL, 64, "HiFi4", "")
    return plain._replace(**fields)  # type: ignore[arg-type]


def told(before: Variant, after: Variant) -> list[str]:
    return [str(cause) for cause in causes_between(before, after)]


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"cores": 32}, "cores 64 → 32"),
        ({"fidelity": "LoFi"}, "fidelity HiFi4 → LoFi"),
        ({"signature": retyped(MATMUL, "BFLOAT4_B")}, "in1 dtype BFLOAT16 → BFLOAT4_B"),
        (
            {"signature": MATMUL._replace(outputs=(ACTIVATION,))},
            "out0 shape 1x1x32x1024 → 1x1x32x4096",
        ),
        ({"signature": MATMUL._replace(outputs=())}, "outputs 1 → 0"),
    ],
)
def test_one_cause(change: dict[str, object], cause: str) -> None:
    assert told(variant(), variant(**change)) == [cause]
