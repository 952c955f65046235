"""Matmuls without a program config."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp313_matmul_without_program_config import (
    matmul_without_program_config,
)
from pytest_ttnn_perf.records.finding import Evidence, Subject
from tests.rules.answers import ask
from tests.rules.tables import op, table, tensor

OPERANDS = (tensor(1, 1, 32, 128), tensor(1, 1, 128, 64))
WITHOUT = op("Matmul", OPERANDS, ns=50.0, attributes="{'program_config': 'std::nullopt'}")
WITH = op("Matmul", OPERANDS, ns=30.0, attributes="{'program_config': 'Reuse(in0_block_w=2)'}")
MINIMAL = op("MinimalMatmulOp", OPERANDS, ns=20.0, attributes="{'config': 'Minimal(M=2)'}")
UNIT = "of kernel time"


def test_some_have_none() -> None:
    ops = table(WITHOUT, WITH, MINIMAL)
    assert ask(matmul_without_program_config, Subject(ops=ops)) == found(
        "without a program config: 1 of 3 matmuls, 50.0 % of the kernel time",
        value=0.5,
        limit=0.05,
        unit=UNIT,
        evidence=[Evidence("Matmul 1x1x32x128 @ 1x1x128x64", 50.0, "ns", 0.5)],
    )
    limit = matmul_without_program_config.with_limits(share=0.5)
    assert ask(limit, Subject(ops=ops)) == clean(0.5, limit=0.5, unit=UNIT)


def test_all_have_one() -> None:
    answer = ask(matmul_without_program_config, Subject(ops=table(WITH, MINIMAL)))
    assert answer == clean(0.0, limit=0.05, unit=UNIT)


def test_inputs_that_do_not_tell() -> None:
    rule = matmul_without_program_config
    assert ask(rule, Subject()) == not_measured("needs an op table")
    assert ask(rule, Subject(ops=table(op("Unary")))) == not_applicable("no matmuls")
    assert ask(rule, Subject(ops=table(op("Matmul")))) == not_measured(
        "the attributes of matmuls do not tell a program config"
    )
