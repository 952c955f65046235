"""DRAM-bound matmuls without DRAM-sharded weights."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, clean, limit, not_applicable, not_measured
from tests.rules.tables import Op, Tensor, op, table, tensor

ask = Ask("TTP311").with_limits(wormhole_gb_s=100, bound=0.5)
LIMIT = limit(0.05, "of kernel time")
INPUT = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")
#: 2,097,152 bytes: 100 GB/s in 20,971.52 ns.
WEIGHTS = tensor(1, 1, 1024, 1024)
REUSE = "{'program_config': 'MatmulMultiCoreReuseMultiCast1DProgramConfig(in0_block_w=2)'}"
SHARDED = (
    "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(in0_block_w=2)'}"
)


def matmul(gb_s: float, weights: Tensor = WEIGHTS, attributes: str = REUSE) -> Op:
    """Return a matmul that reads its weights at some rate."""
    return op("MatmulDeviceOperation", [INPUT, weights], ns=2_097_152 / gb_s, attributes=attributes)


def test_bound_and_not_sharded() -> None:
    ops = table(matmul(64.0), op("UnaryDeviceOperation", ns=2_097_152 / 64))
    assert ask(ops=ops) == LIMIT.found(
        0.5,
        "50.0 % of the kernel time goes into 1 DRAM-bound matmul "
        "without a DRAM-sharded program config",
        [Evidence("Matmul 1x1x32x1024 @ 1024x1024", 32_768.0, "ns", 0.5)],
    )


def test_up_to_the_limit_is_clean() -> None:
    ops = table(matmul(64.0), op("UnaryDeviceOperation", ns=32_768.0))
    assert ask.with_limits(share=0.5)(ops=ops) == clean(0.5, limit=0.5, unit=LIMIT.unit)


@pytest.mark.parametrize(
    "other",
    [matmul(64.0, attributes=SHARDED), matmul(32.0)],
    ids=["DRAM-sharded", "not bound"],
)
def test_matmuls_that_are_well(other: Op) -> None:
    assert ask(ops=table(other)) == LIMIT.clean(0.0)


def test_the_bandwidth_is_that_of_the_architecture() -> None:
    wormhole = table(matmul(0.65 * 288 + 1), arch="wormhole_b0")
    blackhole = table(matmul(0.65 * 288 + 1), arch="BLACKHOLE")
    assert ask(ops=wormhole).value == 1.0
    assert ask(ops=blackhole) == LIMIT.clean(0.0)
    assert ask(ops=table(matmul(400.0), arch="quasar")) == not_measured(
        "the DRAM bandwidth of quasar is not known"
    )
    assert ask(ops=table(matmul(400.0), arch=None)) == not_measured(
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
    assert ask(ops=table(*rows)) == not_applicable("no matmul reads weights from DRAM")


def test_inputs_that_do_not_tell() -> None:
    assert ask(ops=table(op("Matmul"))) == not_measured(
        "the capture tells nothing of the tensors that ops take and give"
    )
    assert ask(ops=table(op("Matmul", [INPUT]))) == not_measured(
        "the capture does not tell the second operands of matmuls"
    )
