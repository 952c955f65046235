"""Matmuls without a program config."""

from __future__ import annotations

from tests.rules.answers import Ask, Evidence, clean, limit, not_applicable, not_measured
from tests.rules.tables import op, table, tensor

ask = Ask("TTP313")
LIMIT = limit(0.05, "of kernel time")
OPERANDS = (tensor(1, 1, 32, 128), tensor(1, 1, 128, 64))
WITHOUT = op("Matmul", OPERANDS, ns=50.0, attributes="{'program_config': 'std::nullopt'}")
WITH = op("Matmul", OPERANDS, ns=30.0, attributes="{'program_config': 'Reuse(in0_block_w=2)'}")
MINIMAL = op("MinimalMatmulOp", OPERANDS, ns=20.0, attributes="{'config': 'Minimal(M=2)'}")


def test_some_have_none() -> None:
    ops = table(WITHOUT, WITH, MINIMAL)
    assert ask(ops=ops) == LIMIT.found(
        0.5,
        "without a program config: 1 of 3 matmuls, 50.0 % of the kernel time",
        [Evidence("Matmul 1x1x32x128 @ 128x64", 50.0, "ns", 0.5)],
    )
    assert ask.with_limits(share=0.5)(ops=ops) == clean(0.5, limit=0.5, unit=LIMIT.unit)


def test_all_have_one() -> None:
    assert ask(ops=table(WITH, MINIMAL)) == LIMIT.clean(0.0)


def test_inputs_that_do_not_tell() -> None:
    assert ask(ops=table(op("Unary"))) == not_applicable("no matmuls")
    assert ask(ops=table(op("Matmul"))) == not_measured(
        "the attributes of matmuls do not tell a program config"
    )
