"""Ops that are slower than their like."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from tests.rules.answers import Ask, Evidence, limit, not_measured
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP321")
STEP = limit(0.02, "of a step")
ADD, MUL = "binary_op_type=BinaryOpType::ADD", "binary_op_type=BinaryOpType::MUL"


def add(rows: int, ns: float, *, cores: int = 20, attributes: str = ADD, dtype: str = "") -> Op:
    """Return a sum of two tensors of so many rows."""
    one = tensor(1, 1, rows, 1792, memory="L1_HEIGHT_SHARDED", dtype=dtype or "BFLOAT16")
    code = "BinaryNgDeviceOperation"
    return op(code, [one, one], [one], ns=ns, cores=cores, attributes=attributes)


def test_the_same_op_on_more_elements_is_quicker() -> None:
    ops = table(add(2112, 90_000.0), add(2304, 10_000.0))
    saved = 80_000.0
    assert ask(ops=ops) == STEP.found(
        saved / 100_000,
        "1 op takes over 3 times as long as the same op elsewhere in the step, on as many elements "
        "or more",
        [
            Evidence(
                "BinaryNg ADD 1x1x2112x1792 on 20 cores "
                "(10.0 µs as BinaryNg ADD 1x1x2304x1792 on 20 cores)",
                saved,
                "ns",
                saved / 100_000,
            )
        ],
    )
    assert ask.saving(ops=ops) == (saved, "90.0 µs − 10.0 µs at the time of the quicker ops")


def test_the_same_shape_on_more_cores_is_quicker() -> None:
    ops = table(add(2304, 90_000.0, cores=1), add(2304, 10_000.0, cores=56))
    assert ask.saving(ops=ops)[0] == 80_000.0


@pytest.mark.parametrize(
    "other",
    [
        add(2080, 10_000.0),
        add(2304, 30_000.0),
        add(2304, 10_000.0, attributes=MUL),
        add(2304, 10_000.0, dtype="FLOAT32"),
        add(2112, 10_000.0),
    ],
    ids=[
        "fewer elements",
        "three times",
        "another function",
        "another format",
        "shapes not its own",
    ],
)
def test_ops_that_are_not_alike(other: Op) -> None:
    assert ask(ops=table(add(2112, 90_000.0), other)) == STEP.clean(0.0)


def test_short_ops_and_captures_without_operands() -> None:
    assert ask(ops=table(add(32, 4_900.0), add(64, 1_000.0))) == STEP.clean(0.0)
    assert ask(ops=table(op("BinaryNgDeviceOperation"))) == not_measured(NO_OPERANDS)
