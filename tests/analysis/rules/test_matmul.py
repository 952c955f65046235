"""Rules on matmuls and convolutions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.analysis.rules.answers import Ask
from tests.analysis.rules.cases import CLEAN, FOUND, NOT_ASKED, UNKNOWN, Case, of_cases, of_ops
from tests.analysis.rules.tables import Op, Tensor, op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.finding import Subject

UNARY = op("UnaryDeviceOperation", ns=100_000.0)
ROWS, GIVEN = (tensor(1, 1, 32, 64 * factor) for factor in (1, 2))
MATMUL = op("MatmulDeviceOperation", [ROWS, ROWS], [GIVEN], ns=80_000.0)
WITH_BIAS = MATMUL._replace(signature=MATMUL.signature._replace(inputs=(ROWS,) * 3))
NORM = op("LayerNormDeviceOperation", [ROWS], [GIVEN], ns=80_000.0)
ROW = tensor(1, 1, 32, 4096, memory="L1_WIDTH_SHARDED")
#: 17,825,792 bytes: 61,895 ns at the 288 GB/s of Wormhole, 68,772 ns at nine tenths of that.
WEIGHTS = tensor(1, 1, 4096, 4096, dtype="BFLOAT8_B")
#: 2.1 GFLOP at HiFi2 on 64 cores of Wormhole.
LEAST_NS = 2 * 1024**3 / (64 * 148 / 72 * 1000)
SAVED = 100_000 - LEAST_NS / 0.5
WELL = "Config(in0_block_w=4;out_subblock_h=1;out_subblock_w=4;per_core_M=4;per_core_N=4)"


def added(to: Op, broadcast: str = "ROW_B") -> Subject:
    """Return an op, and an addition behind it."""
    attributes = (
        "{'binary_op_type': 'BinaryOpType::ADD'; "
        f"'subtile_broadcast_type': 'SubtileBroadcastType::{broadcast}'}}"
    )
    add = op("BinaryNgDeviceOperation", [ROWS, ROWS], [ROWS], ns=10_000.0, attributes=attributes)
    return of_ops(to, add, NORM)


def square(program: str = WELL, *, ns: float = 100_000.0, memory: str = "L1_BLOCK_SHARDED") -> Op:
    """Return a matmul of 1024 by 1024 by 1024."""
    rows, weights = (
        tensor(1, 1, 1024, 1024, memory=memory), tensor(1, 1, 1024, 1024, dtype="BFLOAT8_B")
    )  # fmt: skip
    return op(
        "MatmulDeviceOperation", [rows, weights], [rows], ns=ns, fidelity="HiFi2",
        attributes=f"{{'program_config': '{program}'}}",
    )  # fmt: skip


slow = partial(square, ns=900_000.0, memory="DRAM_INTERLEAVED")
LARGE = 102_400
#: What 1024 pixels of 64 channels take to compute, at HiFi2 on 64 cores of Wormhole.
COMPUTE_NS = 2 * 1024 * 64 * 288 / (64 * 148 / 72 * 1000)


def conv(
    sharding: str = "HEIGHT",
    pixels: int = 1024,
    channels: int = 64,
    *,
    ns: float = 100.0,
    device: int = 0,
    attributes: str = "",
) -> Op:
    """Return a convolution that gives these pixels and channels."""
    memory = f"L1_{sharding}_SHARDED"
    return op(
        "Conv2dDeviceOperation",
        [tensor(1, 1, pixels, 32, memory=memory), tensor(1, 1, 288, channels)],
        [tensor(1, 1, pixels, channels, memory=memory)],
        ns=ns,
        device=device,
        attributes=attributes,
    )


def buffered(key: str, sharding: str = "HEIGHT") -> Op:
    """Return a convolution with a second buffer switched off, at a quarter of its peak."""
    off = f"{{'enable_{key}_double_buffer': 'false'}}"
    return conv(sharding, attributes=off, ns=COMPUTE_NS * 4)._replace(fidelity="HiFi2")


#: PM IDEAL is that of all cores of a chip; on 16, none is faster than those of Blackhole.
IDEAL = conv(pixels=LARGE, ns=2e6)._replace(fidelity="HiFi4", cores=16, ideal_ns=1_000.0)
BATCH_NORM = op("BatchNormOperation", [tensor(1, 64, 32, 32)], ns=70.0)

CASES = [
    Case("TTP310", added(MATMUL), FOUND, told="`bias` of `ttnn.linear`"),
    Case("TTP310", added(WITH_BIAS), CLEAN, 0),
    Case("TTP310", added(MATMUL, "NONE"), CLEAN, 0),
    Case("TTP310", added(NORM), CLEAN, 0),
    Case("TTP311", of_ops(UNARY), NOT_ASKED, told="no matmuls"),
    Case("TTP311", of_ops(op("SparseMatmul", [ROW, WEIGHTS])), NOT_ASKED, told="no matmuls"),
    Case("TTP311", of_ops(op("Matmul", [ROW])), UNKNOWN, told="second operands"),
    Case("TTP314", of_ops(square(), UNARY), FOUND, SAVED / 200_000, SAVED, "16.3 % of the roof"),
    Case("TTP314", of_ops(square(ns=LEAST_NS * 2)), CLEAN, 0),
    Case("TTP314", of_ops(slow(WELL.replace("_w=4;per", "_w=1;per"))), FOUND, told="subblock 2x4"),
    Case("TTP314", of_ops(slow(WELL.replace("_w=4", "_w=1", 1))), FOUND, told="in0_block_w 1 → 8"),
    Case("TTP314", of_ops(slow("std::nullopt")), FOUND, told="or `core_grid`"),
    Case("TTP314", of_ops(UNARY), NOT_ASKED, told="no matmuls"),
    Case("TTP314", of_ops(square(), arch="quasar"), UNKNOWN, told="peaks of quasar are not known"),
    Case("TTP314", of_ops(op("Matmul")), UNKNOWN, told="no matmul gives its operands"),
    # Height-sharded convolutions keep their weights in L1.
    Case("TTP603", of_ops(buffered("weights")), CLEAN, 0),
    Case("TTP603", of_ops(buffered("weights", "BLOCK")), FOUND, None, 288 * 64 * 2 / 288),
    Case("TTP603", of_ops(buffered("act")), FOUND, None, COMPUTE_NS),
    Case("TTP605", of_ops(conv(), BATCH_NORM, conv(), BATCH_NORM), FOUND, 2, 140.0),
    Case(
        "TTP607", of_ops(IDEAL, arch=None), FOUND, None,
        2e6 - 2 * LARGE * 64 * 288 / (16 * 5.5296 / 4 * 1000) / 0.3,
    ),
]  # fmt: skip


@of_cases(CASES)
def test_answers(case: Case) -> None:
    case.check()


@pytest.mark.parametrize(
    ("fidelity", "dtype", "arch", "advised"),
    [
        ("HiFi2", "BFLOAT8_B", "wormhole_b0", ()),  # computes 48.4 µs, reads 62.5 µs
        ("HiFi4", "BFLOAT8_B", "wormhole_b0", ("with LoFi instead",)),
        # One reader computes 56.2 µs at HiFi2, and reads 35.2 µs; two read in 38.7 µs.
        ("HiFi2", "BFLOAT8_B", "blackhole", ("with LoFi instead", "per_dram_bank=2")),
        ("LoFi", "BFLOAT8_B", "blackhole", ()),
        ("LoFi", "BFLOAT4_B", "blackhole", ("per_dram_bank=2",)),
        ("HiFi2", "BFLOAT16", "blackhole", ()),
    ],
)
def test_readers_and_fidelity_are_advised_where_computing_takes_longer_than_reading(
    fidelity: str, dtype: str, arch: str, advised: tuple[str, ...]
) -> None:
    weights: Tensor = WEIGHTS._replace(dtype=dtype)
    config = "{'program_config': 'MatmulMultiCoreReuseMultiCast1DProgramConfig(in0_block_w=2)'}"
    row = op("Matmul", [ROW, weights], [ROW], ns=9e5, fidelity=fidelity, attributes=config)
    fix = Ask("TTP311")(ops=table(row, arch=arch)).fix or ""
    asked = [text for text in ("with LoFi instead", "per_dram_bank=2") if text in fix]
    assert tuple(asked) == advised, fix
