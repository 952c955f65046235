"""Activation functions beside ops that could compute them."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit
from tests.rules.captures import region_of
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP310")
LIMIT = limit(0.02, "of a step")
ROWS, GIVEN, MULTIPLIED = (tensor(1, 1, 32, 64 * factor) for factor in (1, 2, 3))
MATMUL = op("MatmulDeviceOperation", [ROWS, ROWS], [GIVEN], ns=80_000.0)
NORM = op("LayerNormDeviceOperation", [ROWS], [GIVEN], ns=80_000.0)
MUL = op(
    "BinaryNgDeviceOperation",
    [GIVEN, GIVEN],
    [MULTIPLIED],
    ns=10_000.0,
    attributes="{'binary_op_type': 'BinaryOpType::MUL'}",
)


def unary(function: str, ns: float = 10_000.0) -> Op:
    attributes = f"{{'op_chain': 'UnaryWithParam(op_type=UnaryOpType::{function})'}}"
    return op("UnaryDeviceOperation", [GIVEN], [GIVEN], ns=ns, attributes=attributes)


def test_behind_the_matmul_whose_result_it_takes() -> None:
    ops = table(MATMUL, unary("GELU"), op("Matmul", ns=10_000.0))
    assert ask(ops=ops) == LIMIT.found(
        0.1,
        "10.0 % of a step goes into 1 activation that the op beside could compute",
        [Evidence("Unary GELU 1x1x32x128", 10_000.0, "ns", 0.1)],
    )
    assert ask.saving(ops=ops) == (10_000.0, "at most the time of 1 activation: 10.0 µs")
    assert ask.fix(ops=ops) == (
        "Compute the activation in the matmul: `fused_activation` of its program config."
    )


def test_before_the_multiply_that_takes_its_result() -> None:
    ops = table(NORM, unary("SILU"), MUL)
    assert "input_tensor_a_activations=[ttnn.UnaryOpType.SILU]" in (ask.fix(ops=ops) or "")


@pytest.mark.parametrize(
    "rows",
    [
        (NORM, unary("GELU"), NORM),
        (MATMUL, unary("EXP"), NORM),
        (MATMUL._replace(attributes="Config(fused_activation=RELU)"), unary("GELU"), NORM),
        (MATMUL, NORM, NORM, unary("GELU"), NORM),
    ],
    ids=["beside others", "another function", "has one already", "not next to it"],
)
def test_what_cannot_be_fused(rows: tuple[Op, ...]) -> None:
    assert ask(ops=table(*rows)) == LIMIT.clean(0.0)


def test_real_ones() -> None:
    gelu = ask(region_of("gemma_31b_fused_f4.csv", "long_gelu_b0"))
    assert [each.subject for each in gelu.evidence] == ["Unary GELU 1x1x4096x21504"]
    silu = ask(region_of("north_mini_moe_rope_decode_b1_trace.csv", "decode"))
    assert [each.subject for each in silu.evidence] == ["Unary SILU 1x128x1x768"]
