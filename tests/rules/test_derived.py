"""What rules share: worked out once per table, and gone with it."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.checklist.bottleneck import bottleneck_of
from pytest_ttnn_perf.analysis.checklist.op_times import (
    device_ops,
    kernel_ns,
    ops_like,
    signature_numbers,
)
from pytest_ttnn_perf.analysis.checklist.operands import activation_reads, used_signatures
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_rules
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.core.finding import Subject
from tests.rules.tables import Op, OpTable, on_host, op, table, tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ttnn_perf.core.ops import Signature

SMALL, LARGE = tensor(1, 1, 32, 32), tensor(1, 1, 64, 64)


def small_table() -> OpTable:
    return table(
        op("MatmulDeviceOperation", [SMALL, SMALL], [LARGE]),
        on_host("(torch) argmax"),
        op("UnaryDeviceOperation", [LARGE], [LARGE], ns=10.0),
        op("MatmulDeviceOperation", [SMALL, SMALL], [LARGE]),
    )


class Thing:
    """Something of which can be told whether it is still there."""


def test_each_table_is_looked_at_once() -> None:
    looked: list[int] = []

    @once_per_table
    def rows(ops: OpTable) -> int:
        looked.append(len(ops))
        return len(ops)

    first, second = small_table(), small_table()
    assert first == second
    assert [rows(first), rows(first), rows(second), rows(first)] == [4, 4, 4, 4]
    assert looked == [4, 4]


def test_nothing_is_kept_longer_than_its_table() -> None:
    thing_of = once_per_table(lambda _: Thing())
    ops = small_table()
    thing = weakref.ref(thing_of(ops))
    assert thing() is thing_of(ops)
    del ops
    gc.collect()
    assert thing() is None


def test_part_of_a_table_has_its_own() -> None:
    ops = small_table()
    assert kernel_ns(ops) == 2010.0
    assert kernel_ns(ops.select([2])) == 10.0
    assert kernel_ns(ops) == 2010.0


@pytest.mark.parametrize("view", [device_ops, signature_numbers, used_signatures, activation_reads])
def test_rules_share_one_view(view: Callable[[OpTable], object]) -> None:
    ops = small_table()
    assert view(ops) is view(ops)


def test_all_rules_together_read_the_rows_at_most_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0
    through = OpTable.__iter__

    def counting(self: OpTable) -> Iterator[Op]:
        nonlocal reads
        reads += 1
        return through(self)

    monkeypatch.setattr(OpTable, "__iter__", counting)
    subject = Subject(ops=small_table())
    run_rules(all_rules(), subject)
    bottleneck_of(subject, {})
    assert reads <= 1


def test_each_signature_is_asked_once() -> None:
    asked: Counter[str] = Counter()

    def chosen(signature: Signature) -> bool:
        asked[signature.op] += 1
        return signature.op.startswith("Matmul")

    ops = small_table()
    assert ops_like(ops, chosen) == (ops.op(0), ops.op(3))
    assert asked == {"MatmulDeviceOperation": 1, "UnaryDeviceOperation": 1}
