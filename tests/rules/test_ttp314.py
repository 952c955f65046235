"""Efficiency of matmuls (TTP314) and of convolutions (TTP607)."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.tables import Op, op, table, tensor

LIMIT = limit(0.5, "of the ideal")
OPERANDS = (tensor(1, 1, 32, 128), tensor(1, 1, 128, 64))
BOTH = pytest.mark.parametrize(
    ("ask", "code", "noun"),
    [(Ask("TTP314"), "Matmul", "matmul"), (Ask("TTP607"), "Conv2d", "convolution")],
    ids=["TTP314", "TTP607"],
)


def working(code: str, ns: float, ideal_ns: float | None) -> Op:
    """Return an op with the time that its model gives it."""
    return op(f"{code}DeviceOperation", OPERANDS, ns=ns, ideal_ns=ideal_ns)


@BOTH
def test_far_from_the_ideal(ask: Ask, code: str, noun: str) -> None:
    slow = working(code, 100.0, 20.0), working(code, 60.0, 20.0)
    name = "Matmul 1x1x32x128 @ 128x64" if code == "Matmul" else "Conv2d 1x1x32x128"
    assert ask(ops=table(*slow, op("Unary", ns=1.0, ideal_ns=1000.0))) == LIMIT.found(
        0.25,
        f"2 {noun}s at 25.0 % of what the profiler's model allows",
        [Evidence(f"2 x {name}", 120.0, "ns", 120 / 161)],
    )


@BOTH
def test_what_counts(ask: Ask, code: str, noun: str) -> None:
    assert ask(ops=table(working(code, 100.0, 50.0))) == LIMIT.clean(0.5)
    # One that beats its model does not make up for another.
    fast, slow = working(code, 100.0, 100_000.0), working(code, 100.0, 20.0)
    assert ask(ops=table(fast, slow)) == LIMIT.clean(0.6)
    partly = table(working(code, 100.0, 80.0), working(code, 900.0, None))
    assert ask(ops=partly) == LIMIT.clean(0.8, reason=f"no model of 1 of 2 {noun}s")


@BOTH
def test_nothing_to_look_at(ask: Ask, code: str, noun: str) -> None:
    why = f"the profiler has no model of these {noun}s"
    assert ask(ops=table(working(code, 9.0, None))) == not_measured(why)
    assert ask(ops=table(op("Unary"))) == not_applicable(f"no {noun}s")


def test_sparse_matmuls_do_not_count() -> None:
    ops = table(working("SparseMatmul", 100.0, 1.0), working("Matmul", 100.0, 60.0))
    assert Ask("TTP314")(ops=ops) == LIMIT.clean(0.6)
