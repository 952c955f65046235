"""Activation functions beside ops that could compute them."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit
from tests.rules.captures import ops_of, region_of
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
        0.075,
        "10.0 % of a step goes into 1 activation that a neighbouring op could compute",
        [Evidence("Unary GELU 1x1x32x128", 7_500.0, "ns", 0.075)],
    )
    assert ask.saving(ops=ops) == (7_500.0, "10.0 µs → 2.5 µs in a neighbouring op")
    assert ask.fix(ops=ops) == (
        "Compute the activation in the matmul: `fused_activation` of its program config."
    )


def test_a_matmul_computes_it_sooner_than_the_multiply_that_follows() -> None:
    assert (ask.fix(ops=table(MATMUL, unary("SILU"), MUL)) or "").startswith(
        "Compute the activation in the matmul"
    )


def test_before_the_multiply_that_takes_its_result_little_is_saved() -> None:
    ops = table(NORM._replace(kernel_ns=1_000.0), unary("SILU"), MUL)
    assert ask.saving(ops=ops) == (1_000.0, "10.0 µs → 9.0 µs in a neighbouring op")
    assert ask.fix(ops=ops) == (
        "Compute the activation in the multiply that follows: "
        "`ttnn.mul(..., input_tensor_a_activations=[ttnn.UnaryOpType.SILU])`."
    )
    assert ask(ops=table(NORM, unary("SILU"), MUL)) == LIMIT.clean(0.01)


@pytest.mark.parametrize(("function", "saved_ns"), [("RELU", 7_500.0), ("GELU", 1_000.0)])
def test_behind_an_elementwise_op(function: str, saved_ns: float) -> None:
    add = op(
        "BinaryNgDeviceOperation",
        [GIVEN, GIVEN],
        [GIVEN],
        attributes="{'binary_op_type': 'BinaryOpType::ADD'}",
    )
    ops = table(add, unary(function), NORM._replace(kernel_ns=1_000.0))
    assert ask.saving(ops=ops).ns == saved_ns
    assert f"`activations=[ttnn.UnaryOpType.{function}]`" in (ask.fix(ops=ops) or "")


def test_a_matmul_that_was_asked_for_the_activation_of_the_next_op() -> None:
    # The shapes of a cached program are those of another call.
    asked = MATMUL._replace(
        signature=MATMUL.signature._replace(outputs=(ROWS,)),
        attributes="{'program_config': 'Config(fused_activation=std::nullopt)'; "
        "'user_fused_activation': 'UnaryWithParam<float>(op_type=UnaryOpType::RELU;param={})'}",
    )
    assert ask.saving(ops=table(asked, unary("RELU"), NORM)).ns == 7_500.0
    assert ask(ops=table(asked, unary("GELU"), NORM)) == LIMIT.clean(0.0)


def test_a_bias_that_is_added_behind_its_matmul() -> None:
    def added(to: Op, broadcast: str = "ROW_B") -> tuple[Op, ...]:
        attributes = (
            "{'binary_op_type': 'BinaryOpType::ADD'; "
            f"'subtile_broadcast_type': 'SubtileBroadcastType::{broadcast}'}}"
        )
        add = op(
            "BinaryNgDeviceOperation", [ROWS, ROWS], [ROWS], ns=10_000.0, attributes=attributes
        )
        return to, add, NORM

    ops = table(*added(MATMUL))
    assert ask(ops=ops).reason == (
        "5.9 % of a step goes into 1 bias addition that a neighbouring op could compute"
    )
    assert ask.fix(ops=ops) == "Add the bias in the matmul: `bias` of `ttnn.linear`."
    with_bias = MATMUL._replace(signature=MATMUL.signature._replace(inputs=(ROWS, ROWS, ROWS)))
    for rows in (added(with_bias), added(MATMUL, "NONE"), added(NORM)):
        assert ask(ops=table(*rows)) == LIMIT.clean(0.0)


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
    biases = ask(ops_of("rt_detr.csv"))
    assert "bias additions" in (biases.reason or "")
