"""Matmuls of few rows that read their weights slowly, without a DRAM-sharded program config."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.tables import Op, Tensor, op, table, tensor

ask = Ask("TTP311")
LIMIT = limit(0.02, "of a step")
ROW = tensor(1, 1, 32, 4096, memory="L1_WIDTH_SHARDED")
#: 17,825,792 bytes: 61,895 ns at the 288 GB/s of Wormhole, 68,772 ns at nine tenths of that.
WEIGHTS = tensor(1, 1, 4096, 4096, dtype="BFLOAT8_B")
SHARDED_NS = 17_825_792 / 288 / 0.9 + 5_000
REUSE = "{'program_config': 'MatmulMultiCoreReuseMultiCast1DProgramConfig(in0_block_w=2)'}"
SHARDED = (
    "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(in0_block_w=2)'}"
)


def matmul(ns: float, weights: Tensor = WEIGHTS, rows: Tensor = ROW, attributes: str = REUSE) -> Op:
    code = "MatmulDeviceOperation"
    return op(code, [rows, weights], [ROW], ns=ns, fidelity="HiFi2", attributes=attributes)


def test_far_below_the_bandwidth() -> None:
    ops = table(matmul(120_000.0), op("UnaryDeviceOperation", ns=80_000.0))
    saved = 120_000 - SHARDED_NS
    assert ask(ops=ops) == LIMIT.found(
        saved / 200_000,
        "1 matmul of up to 32 rows reads weights at 51.6 % of the DRAM bandwidth, without a "
        "DRAM-sharded program config",
        [Evidence("Matmul 1x1x32x4096 @ 4096x4096", saved, "ns", saved / 200_000)],
    )
    assert ask.saving(ops=ops) == (
        saved,
        "120.0 µs − 73.8 µs: 90.0 % of 288 GB/s or 80.0 % of 12 cores, and 5 µs",
    )


def test_what_to_do_is_what_is_missing() -> None:
    config = "use `MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig`"
    assert ask.fix(ops=table(matmul(120_000.0))) == (
        f"Store the weights `DRAM_WIDTH_SHARDED` and {config}."
    )
    placed = WEIGHTS._replace(memory="DRAM_WIDTH_SHARDED")
    in_dram = ROW._replace(memory="DRAM_INTERLEAVED")
    assert ask.fix(ops=table(matmul(120_000.0, placed, in_dram)._replace(fidelity="LoFi"))) == (
        f"Keep the input in L1 and {config}: the weights are sharded for it already."
    )


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
    fix = ask.fix(ops=table(row, arch=arch)) or ""
    assert ("instead of the fidelity" in fix) is (advised is not None)
    assert advised is None or f"with {advised} instead" in fix


def test_a_matmul_keeps_the_fidelity_that_it_has() -> None:
    wide = tensor(1, 1, 4096, 4096)

    def saved(fidelity: str) -> object:
        row = matmul(600_000.0, wide)._replace(fidelity=fidelity)
        return ask.saving(ops=table(row, arch="blackhole")).ns

    # At HiFi4 the eight cores at the banks take longer than reading.
    computing = 2 * 32 * 4096**2 / (5.5296 / 4 * 8 * 1000) / 0.8
    reading = 2 * 4096**2 / 512 / 0.9
    assert computing > reading
    assert saved("HiFi4") == pytest.approx(600_000 - computing - 5_000)
    assert saved("HiFi2") == pytest.approx(600_000 - reading - 5_000)


def test_one_of_two_rules_names_a_matmul_on_few_cores() -> None:
    """Twelve cores at the banks take 2.2 ms at HiFi4, 64 cores of any kind 0.4 ms."""
    wide, many = tensor(1, 1, 4096, 16384), tensor(1, 1, 32, 16384, memory="L1_WIDTH_SHARDED")
    few_cores = Ask("TTP305")

    def product(weights: Tensor, fidelity: str) -> Op:
        row = op("MatmulDeviceOperation", [ROW, weights], [many], ns=9e6, cores=4)
        return row._replace(fidelity=fidelity)

    slow = table(product(wide._replace(dtype="FLOAT32"), "HiFi4"))
    blocks = table(product(wide._replace(dtype="BFLOAT8_B"), "LoFi"))
    for ops in (slow, blocks):
        named = [bool(rule(ops=ops).evidence) for rule in (ask, few_cores)]
        assert sum(named) == 1
    assert ask(ops=blocks).evidence


@pytest.mark.parametrize(
    "other",
    [
        matmul(120_000.0, attributes=SHARDED),
        matmul(SHARDED_NS),
        matmul(17_825_792 / 288 / 0.75),
        matmul(120_000.0, rows=tensor(1, 1, 64, 4096)),
        matmul(120_000.0, weights=tensor(1, 8, 4096, 4096)),
        matmul(1_000.0),
        matmul(120_000.0, weights=WEIGHTS._replace(memory="L1_INTERLEAVED")),
    ],
    ids=[
        "DRAM-sharded",
        "as fast as that",
        "not far below",
        "many rows",
        "a batch",
        "stale shapes",
        "in L1",
    ],
)
def test_matmuls_that_have_nothing_to_gain(other: Op) -> None:
    assert ask(ops=table(other)) == LIMIT.clean(0.0)


def test_on_blackhole_eight_cores_do_not_keep_up_with_bfloat4() -> None:
    weights = WEIGHTS._replace(dtype="BFLOAT4_B")
    computing = 2 * 32 * 4096 * 4096 / (8 * 5.5296 * 1000) / 0.8 + 5_000
    assert ask(ops=table(matmul(computing, weights), arch="blackhole")) == LIMIT.clean(0.0)
    saved, _ = ask.saving(ops=table(matmul(computing + 5_000, weights), arch="blackhole"))
    assert saved == pytest.approx(5_000)


def test_what_the_slowest_device_does_not_run_saves_nothing() -> None:
    busy = op("UnaryDeviceOperation", ns=500_000.0, device=1)
    assert ask(ops=table(matmul(120_000.0), busy)) == not_applicable("no matmuls")


@pytest.mark.parametrize(
    ("arch", "named"), [("quasar", "quasar"), (None, "an unnamed architecture")]
)
def test_a_chip_that_is_not_known(arch: str | None, named: str) -> None:
    answer = ask(ops=table(matmul(120_000.0), arch=arch))
    assert answer == not_measured(f"the peaks of {named} are not known")


def test_nothing_to_look_at() -> None:
    assert ask(ops=table(op("UnaryDeviceOperation"))) == not_applicable("no matmuls")
    assert ask(ops=table(op("SparseMatmulDeviceOperation", [ROW, WEIGHTS]))) == not_applicable(
        "no matmuls"
    )
    assert ask(ops=table(op("Matmul", [ROW]))) == not_measured(
        "the capture does not give the second operands of matmuls"
    )
