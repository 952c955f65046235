"""DRAM-bound matmuls without DRAM-sharded weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp311_matmul_not_dram_sharded import (
    matmul_not_dram_sharded,
)
from pytest_ttnn_perf.records.finding import Evidence, Subject
from tests.rules.answers import ask
from tests.rules.tables import op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Op, Tensor

INPUT = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")
#: 2,097,152 bytes: 100 GB/s in 20,971.52 ns.
WEIGHTS = tensor(1, 1, 1024, 1024)
REUSE = "{'program_config': 'MatmulMultiCoreReuseMultiCast1DProgramConfig(in0_block_w=2)'}"
SHARDED = (
    "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(in0_block_w=2)'}"
)
UNIT = "of kernel time"
RULE = matmul_not_dram_sharded.with_limits(wormhole_gb_s=100, bound=0.5)


def matmul(gb_s: float, weights: Tensor = WEIGHTS, attributes: str = REUSE) -> Op:
    """Return a matmul that reads its weights at some rate."""
    return op("MatmulDeviceOperation", [INPUT, weights], ns=2_097_152 / gb_s, attributes=attributes)


def test_bound_and_not_sharded() -> None:
    ops = table(matmul(64.0), op("UnaryDeviceOperation", ns=2_097_152 / 64))
    assert ask(RULE, Subject(ops=ops)) == found(
        "50.0 % of the kernel time goes into 1 DRAM-bound matmul "
        "without a DRAM-sharded program config",
        value=0.5,
        limit=0.05,
        unit=UNIT,
        evidence=[Evidence("Matmul 1x1x32x1024 @ 1x1x1024x1024", 32_768.0, "ns", 0.5)],
    )


def test_up_to_the_limit_is_clean() -> None:
    ops = table(matmul(64.0), op("UnaryDeviceOperation", ns=32_768.0))
    rule = matmul_not_dram_sharded.with_limits(wormhole_gb_s=100, bound=0.5, share=0.5)
    assert ask(rule, Subject(ops=ops)) == clean(0.5, limit=0.5, unit=UNIT)


@pytest.mark.parametrize(
    "other",
    [matmul(64.0, attributes=SHARDED), matmul(32.0)],
    ids=["DRAM-sharded", "not bound"],
)
def test_matmuls_that_are_well(other: Op) -> None:
    assert ask(RULE, Subject(ops=table(other))) == clean(0.0, limit=0.05, unit=UNIT)


def test_the_bandwidth_is_that_of_the_architecture() -> None:
    default = matmul_not_dram_sharded
    wormhole = table(matmul(0.65 * 288 + 1), arch="wormhole_b0")
    blackhole = table(matmul(0.65 * 288 + 1), arch="BLACKHOLE")
    assert ask(default, Subject(ops=wormhole)).value == 1.0
    assert ask(default, Subject(ops=blackhole)) == clean(0.0, limit=0.05, unit=UNIT)
    assert ask(default, Subject(ops=table(matmul(400.0), arch="quasar"))) == not_measured(
        "the DRAM bandwidth of quasar is not known"
    )
    assert ask(default, Subject(ops=table(matmul(400.0), arch=None))) == not_measured(
        "the DRAM bandwidth of an unnamed architecture is not known"
    )


@pytest.mark.parametrize(
    "rows",
    [
        [matmul(64.0, WEIGHTS._replace(memory="L1_INTERLEAVED"))],
        [op("Unary", [INPUT], [WEIGHTS]), matmul(64.0)],
        [op("SparseMatmulDeviceOperation", [INPUT, WEIGHTS], ns=1.0)],
        [op("Unary", [INPUT])],
    ],
    ids=["in L1", "an activation", "sparse", "no matmul"],
)
def test_no_weights_in_dram(rows: list[Op]) -> None:
    assert ask(RULE, Subject(ops=table(*rows))) == not_applicable(
        "no matmul reads weights from DRAM"
    )


def test_inputs_that_do_not_tell() -> None:
    assert ask(RULE, Subject()) == not_measured("needs an op table")
    assert ask(RULE, Subject(ops=table(op("Matmul")))) == not_measured(
        "the capture tells nothing of the tensors that ops take and give"
    )
    assert ask(RULE, Subject(ops=table(op("Matmul", [INPUT])))) == not_measured(
        "the capture does not tell the second operands of matmuls"
    )
