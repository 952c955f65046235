"""Efficiency of matmuls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.records.finding import Subject
from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.tables import op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Op

ask = Ask("TTP314")
LIMIT = limit(0.5, "of the ideal")

OPERANDS = (tensor(1, 1, 32, 128), tensor(1, 1, 128, 64))


def working(ns: float, ideal_ns: float | None) -> Op:
    """Return an op with the time that its model gives it."""
    return op("MatmulDeviceOperation", OPERANDS, ns=ns, ideal_ns=ideal_ns)


def test_far_from_the_ideal() -> None:
    ops = table(working(100.0, 20.0), working(60.0, 20.0), op("Unary", ns=1.0, ideal_ns=1000.0))
    assert ask(ops=ops) == LIMIT.found(
        0.25,
        "2 matmuls at 25.0 % of what the profiler's model allows",
        [Evidence("2 x Matmul 1x1x32x128 @ 1x1x128x64", 120.0, "ns", 120 / 161)],
    )


def test_exactly_at_the_limit_is_clean() -> None:
    ops = table(working(100.0, 50.0))
    assert ask(ops=ops) == LIMIT.clean(0.5)


def test_one_that_beats_its_model_does_not_make_up_for_another() -> None:
    ops = table(working(100.0, 100_000.0), working(100.0, 20.0))
    assert ask(ops=ops) == LIMIT.clean(0.6)


def test_without_a_model_nothing_is_counted() -> None:
    ops = table(working(100.0, 80.0), working(900.0, None))
    assert ask(ops=ops) == LIMIT.clean(0.8, reason="no model of 1 of 2 matmuls")
    assert ask(ops=table(working(9.0, None))) == not_measured(
        "the profiler has no model of these matmuls"
    )


def test_nothing_to_look_at() -> None:
    assert ask() == not_measured("needs an op table")
    others = Subject(ops=table(op("Unary")))
    assert ask(others) == not_applicable("no matmuls")


def test_sparse_ones_do_not_count() -> None:
    sparse = op("SparseMatmulDeviceOperation", OPERANDS, ns=100.0, ideal_ns=1.0)
    ops = table(sparse, working(100.0, 60.0))
    assert ask(ops=ops) == LIMIT.clean(0.6)
