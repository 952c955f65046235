"""Rules on matmuls."""

from __future__ import annotations

import pytest

from tests.analysis.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.analysis.rules.tables import Op, Tensor, op, table, tensor

ttp310 = Ask("TTP310")
LIMIT = limit(0.02, "of a step")
ROWS, GIVEN, MULTIPLIED = (tensor(1, 1, 32, 64 * factor) for factor in (1, 2, 3))
MATMUL = op("MatmulDeviceOperation", [ROWS, ROWS], [GIVEN], ns=80_000.0)
NORM = op("LayerNormDeviceOperation", [ROWS], [GIVEN], ns=80_000.0)


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
    assert ttp310(ops=ops).reason == (
        "5.9 % of a step goes into 1 bias addition that a neighbouring op could compute"
    )
    assert ttp310.fix(ops=ops) == "Add the bias in the matmul: `bias` of `ttnn.linear`."
    with_bias = MATMUL._replace(signature=MATMUL.signature._replace(inputs=(ROWS, ROWS, ROWS)))
    for rows in (added(with_bias), added(MATMUL, "NONE"), added(NORM)):
        assert ttp310(ops=table(*rows)) == LIMIT.clean(0.0)


ttp311 = Ask("TTP311")
ROW = tensor(1, 1, 32, 4096, memory="L1_WIDTH_SHARDED")
#: 17,825,792 bytes: 61,895 ns at the 288 GB/s of Wormhole, 68,772 ns at nine tenths of that.
WEIGHTS = tensor(1, 1, 4096, 4096, dtype="BFLOAT8_B")
REUSE = "{'program_config': 'MatmulMultiCoreReuseMultiCast1DProgramConfig(in0_block_w=2)'}"


def matmul(ns: float, weights: Tensor = WEIGHTS, rows: Tensor = ROW, attributes: str = REUSE) -> Op:
    code = "MatmulDeviceOperation"
    return op(code, [rows, weights], [ROW], ns=ns, fidelity="HiFi2", attributes=attributes)


@pytest.mark.parametrize(
    ("fidelity", "dtype", "arch", "advised"),
    [
        ("HiFi2", "BFLOAT8_B", "wormhole_b0", None),  # computes 51.8 µs, reads 68.8 µs
        ("HiFi4", "BFLOAT8_B", "wormhole_b0", "HiFi2"),
        ("HiFi2", "BFLOAT4_B", "wormhole_b0", "LoFi"),
        ("HiFi2", "BFLOAT8_B", "blackhole", "LoFi"),
        ("LoFi", "BFLOAT8_B", "blackhole", None),
        ("HiFi4", "BFLOAT16", "blackhole", None),
    ],
)
def test_a_lower_fidelity_is_advised_where_computing_takes_longer_than_reading(
    fidelity: str, dtype: str, arch: str, advised: str | None
) -> None:
    row = matmul(900_000.0, WEIGHTS._replace(dtype=dtype))._replace(fidelity=fidelity)
    fix = ttp311.fix(ops=table(row, arch=arch)) or ""
    assert ("instead of the fidelity" in fix) is (advised is not None)
    assert advised is None or f"with {advised} instead" in fix


def test_nothing_to_look_at() -> None:
    assert ttp311(ops=table(op("UnaryDeviceOperation"))) == not_applicable("no matmuls")
    assert ttp311(ops=table(op("SparseMatmulDeviceOperation", [ROW, WEIGHTS]))) == not_applicable(
        "no matmuls"
    )
    assert ttp311(ops=table(op("Matmul", [ROW]))) == not_measured(
        "the capture does not give the second operands of matmuls"
    )


slow = Ask("TTP314")
ROWS_312 = tensor(1, 1, 1024, 1024, memory="L1_BLOCK_SHARDED")
WEIGHTS_312 = tensor(1, 1, 1024, 1024, dtype="BFLOAT8_B")
NAME = "Matmul 1x1x1024x1024 @ 1024x1024"
#: 2.1 GFLOP at HiFi2 on 64 cores of Wormhole.
LEAST_NS = 2 * 1024**3 / (64 * 148 / 72 * 1000)
WELL = "Config(in0_block_w=4;out_subblock_h=1;out_subblock_w=4;per_core_M=4;per_core_N=4)"


def matmul_312(
    program: str | None = WELL, *, ns: float = 100_000.0, ideal: float | None = None
) -> Op:
    attributes = "" if program is None else f"{{'program_config': '{program}'}}"
    return op(
        "MatmulDeviceOperation",
        [ROWS_312, WEIGHTS_312],
        [ROWS_312],
        ns=ns,
        fidelity="HiFi2",
        attributes=attributes,
        ideal_ns=ideal,
    )


SAVED = 100_000 - LEAST_NS / 0.5


def test_slow_for_no_other_reason() -> None:
    ops = table(matmul_312(), op("UnaryDeviceOperation", ns=100_000.0))
    assert slow(ops=ops) == LIMIT.found(
        SAVED / 200_000,
        "1 matmul at 16.3 % of the roofline",
        [Evidence(NAME, SAVED, "ns", SAVED / 200_000)],
    )
    assert slow.saving(ops=ops) == (SAVED, "100.0 µs − 32.6 µs at 50.0 % of the roofline")
    assert slow(ops=table(matmul_312(ns=LEAST_NS * 2))) == LIMIT.clean(0.0)


@pytest.mark.parametrize(
    ("program", "fix"),
    [
        (WELL, "Try larger `in0_block_w`, larger output subblocks, and give the first input"),
        (WELL.replace("in0_block_w=4", "in0_block_w=1"), "Raise `in0_block_w` to a larger"),
        ("std::nullopt", "Give matmuls without a program config one"),
    ],
)
def test_what_is_to_be_changed(program: str, fix: str) -> None:
    in_dram = ROWS_312._replace(memory="DRAM_INTERLEAVED")
    row = matmul_312(program, ns=900_000.0)
    row = row._replace(signature=row.signature._replace(inputs=(in_dram, WEIGHTS_312)))
    assert (slow.fix(ops=table(row)) or "").startswith(fix)


def test_what_cannot_be_told() -> None:
    assert slow(ops=table(op("UnaryDeviceOperation"))) == not_applicable("no matmuls")
    assert slow(ops=table(matmul_312(), arch="quasar")) == not_measured(
        "the peaks of quasar are not known"
    )
    assert slow(ops=table(op("Matmul"))) == not_measured(
        "no matmul gives its operands, cores and fidelity"
    )
