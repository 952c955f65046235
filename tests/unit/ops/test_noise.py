"""What is too small to be a change, and what is not."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.ops.align import NOISE_FRACTION, NOISE_NS, Noise, attribute
from pytest_ttnn_perf.records.attribution import Attribution, ChangeKind
from tests.unit.ops.tables import MATMUL, NORM, RESHARD, op, table

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Op


def compared(before: list[Op], after: list[Op]) -> Attribution:
    return attribute(table(before), table(after))


def jittered(ops: list[Op], seed: int, fraction: float = 0.01) -> list[Op]:
    chance = Random(seed)
    return [
        row._replace(kernel_ns=round(row.kernel_ns * (1 + chance.uniform(-fraction, fraction))))
        for row in ops
    ]


LAYERS = [op(MATMUL, 80_000), op(NORM, 9_000), op(RESHARD, 2_000)] * 24


def test_jitter_is_unexplained() -> None:
    attribution = compared(jittered(LAYERS, 1), jittered(LAYERS, 2))
    assert attribution.parts == ()
    assert attribution.unexplained_ns == attribution.delta_ns != 0


def test_the_one_op_that_changed_stands_out_of_the_jitter() -> None:
    after = jittered(LAYERS, 2)
    after[9] = after[9]._replace(kernel_ns=after[9].kernel_ns + 61_000)
    (part,) = compared(jittered(LAYERS, 1), after).parts
    assert (part.change, part.op, part.count) == (ChangeKind.SLOWER, MATMUL.op, 1)
    assert part.delta_ns == pytest.approx(61_000, abs=0.02 * 80_000)


def test_a_small_change_is_seen_where_all_else_keeps_still() -> None:
    after = list(LAYERS)
    after[9] = after[9]._replace(kernel_ns=80_100)
    (part,) = compared(LAYERS, after).parts
    assert (part.count, part.delta_ns) == (1, 100)


def test_like_changes_are_one_part() -> None:
    after = [
        row._replace(kernel_ns=row.kernel_ns * 0.88, fidelity="HiFi2")
        if row.signature is MATMUL
        else row
        for row in jittered(LAYERS, 2)
    ]
    (part,) = compared(jittered(LAYERS, 1), after).parts
    assert (part.change, part.count) == (ChangeKind.FASTER, 24)
    assert [str(cause) for cause in part.causes] == ["fidelity HiFi4 → HiFi2"]
    assert part.delta_ns / part.before_ns == pytest.approx(-0.12, abs=0.01)


def test_many_small_changes_of_one_cause_are_more_than_noise() -> None:
    faster = [
        row._replace(kernel_ns=row.kernel_ns * 0.985, cores=72) if row.signature is MATMUL else row
        for row in jittered(LAYERS, 2)
    ]
    (part,) = compared(jittered(LAYERS, 1), faster).parts
    assert (part.count, str(part.causes[0])) == (24, "cores 64 → 72")


def test_a_cause_that_changed_nothing_is_no_part() -> None:
    after = [row._replace(fidelity="HiFi3") for row in jittered(LAYERS, 2, 0.001)]
    assert compared(jittered(LAYERS, 1, 0.001), after).parts == ()


def test_ups_and_downs_of_one_kind_that_come_to_nothing_are_noise() -> None:
    wild = [op(MATMUL, 80_000 + 4_000 * (-1) ** place) for place in range(24)]
    tame = [op(MATMUL, 80_000) for _ in range(24)]
    attribution = compared(tame, wild)
    assert (attribution.parts, attribution.delta_ns) == ((), 0)


def test_ups_and_downs_that_do_not_cancel_are_two_parts() -> None:
    still = [op(NORM, 9_000) for _ in range(24)]
    before = [op(MATMUL, 80_000), op(MATMUL, 80_000), *still]
    after = [op(MATMUL, 140_000), op(MATMUL, 50_000), *still]
    parts = compared(before, after).parts
    assert [(part.change, part.delta_ns) for part in parts] == [
        (ChangeKind.SLOWER, 60_000),
        (ChangeKind.FASTER, -30_000),
    ]


@pytest.mark.parametrize("count", [1, 25])
def test_the_limit_from_both_sides(count: int) -> None:
    noise = Noise()
    before = 50_000.0 * count
    # What chance adds to 25 ops is five times what it adds to one.
    limit = count**0.5 * (NOISE_NS + NOISE_FRACTION * 50_000)
    assert noise.covers(before, before - 0.99 * limit, count=count)
    assert not noise.covers(before, before - 1.01 * limit, count=count)


def test_without_a_hint_the_noise_is_the_usual_one() -> None:
    assert Noise.between([]) == Noise(1.0)
    assert Noise.between([(1_000, 2_000)] * 3) == Noise(1.0)
    assert Noise.between([(1_000, 1_000), (1_000, 2_000), (1_000, 1_000)]) == Noise(0.0)
