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


@pytest.mark.parametrize(("function", "saved_ns"), [("RELU", 7_500.0), ("GELU", 1_000.0)])
def test_behind_an_elementwise_op(function: str, saved_ns: float) -> None:
    add = op(
        "BinaryNgDeviceOperation",
        [GIVEN, GIVEN],
        [GIVEN],
        attributes="{'binary_op_type': 'BinaryOpType::ADD'}",
    )
    ops = table(add, unary(function), NORM._replace(kernel_ns=1_000.0))
    assert ttp310.saving(ops=ops).ns == saved_ns
    assert f"`activations=[ttnn.UnaryOpType.{function}]`" in (ttp310.fix(ops=ops) or "")


def test_a_matmul_that_was_asked_for_the_activation_of_the_next_op() -> None:
    # The shapes of a cached program are those of another call.
    asked = MATMUL._replace(
        signature=MATMUL.signature._replace(outputs=(ROWS,)),
        attributes="{'program_config': 'Config(fused_activation=std::nullopt)'; "
        "'user_fused_activation': 'UnaryWithParam<float>(op_type=UnaryOpType::RELU;param={})'}",
    )
    assert ttp310.saving(ops=table(asked, unary("RELU"), NORM)).ns == 7_500.0
    assert ttp310(ops=table(asked, unary("GELU"), NORM)) == LIMIT.clean(0.0)


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
SHARDED_NS = 17_825_792 / 288 / 0.9 + 5_000
REUSE = "{'program_config': 'MatmulMultiCoreReuseMultiCast1DProgramConfig(in0_block_w=2)'}"
SHARDED = (
    "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(in0_block_w=2)'}"
)


def matmul(ns: float, weights: Tensor = WEIGHTS, rows: Tensor = ROW, attributes: str = REUSE) -> Op:
    code = "MatmulDeviceOperation"
    return op(code, [rows, weights], [ROW], ns=ns, fidelity="HiFi2", attributes=attributes)


def test_what_to_do_is_what_is_missing() -> None:
    config = "use `MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig`"
    assert ttp311.fix(ops=table(matmul(120_000.0))) == (
        f"Store the weights `DRAM_WIDTH_SHARDED` and {config}."
    )
    placed = WEIGHTS._replace(memory="DRAM_WIDTH_SHARDED")
    in_dram = ROW._replace(memory="DRAM_INTERLEAVED")
    assert ttp311.fix(ops=table(matmul(120_000.0, placed, in_dram)._replace(fidelity="LoFi"))) == (
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
    fix = ttp311.fix(ops=table(row, arch=arch)) or ""
    assert ("instead of the fidelity" in fix) is (advised is not None)
    assert advised is None or f"with {advised} instead" in fix


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
        named = [bool(rule(ops=ops).evidence) for rule in (ttp311, few_cores)]
        assert sum(named) == 1
    assert ttp311(ops=blocks).evidence


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
    assert ttp311(ops=table(other)) == LIMIT.clean(0.0)


def test_nothing_to_look_at() -> None:
    assert ttp311(ops=table(op("UnaryDeviceOperation"))) == not_applicable("no matmuls")
    assert ttp311(ops=table(op("SparseMatmulDeviceOperation", [ROW, WEIGHTS]))) == not_applicable(
        "no matmuls"
    )
    assert ttp311(ops=table(op("Matmul", [ROW]))) == not_measured(
        "the capture does not give the second operands of matmuls"
    )


blocks, config, slow = Ask("TTP312"), Ask("TTP313"), Ask("TTP314")
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


def test_limits_of_blocks_can_be_set() -> None:
    assert blocks.with_limits(inner=8)(ops=table(matmul_312())).value == SAVED / 100_000


def test_without_a_program_config() -> None:
    ops = table(
        matmul_312("std::nullopt"), matmul_312(), matmul_312("std::nullopt", ns=LEAST_NS * 1.5)
    )
    whole = 200_000 + LEAST_NS * 1.5
    assert config(ops=ops) == LIMIT.found(
        SAVED / whole,
        "without a program config, and slow: 1 of 3 matmuls, 100.0 µs of a step",
        [Evidence(NAME, SAVED, "ns", SAVED / whole)],
    )
    assert slow(ops=ops).value == SAVED / whole  # the other one


def test_slow_for_no_other_reason() -> None:
    ops = table(matmul_312(), op("UnaryDeviceOperation", ns=100_000.0))
    assert slow(ops=ops) == LIMIT.found(
        SAVED / 200_000,
        "1 matmul at 16.3 % of the roofline",
        [Evidence(NAME, SAVED, "ns", SAVED / 200_000)],
    )
    assert slow.saving(ops=ops) == (SAVED, "100.0 µs − 32.6 µs at 50.0 % of the roofline")
    assert slow(ops=table(matmul_312(ns=LEAST_NS * 2))) == LIMIT.clean(0.0)


@pytest.mark.parametrize("ask", [blocks, config, slow])
def test_what_cannot_be_told(ask: Ask) -> None:
    assert ask(ops=table(op("UnaryDeviceOperation"))) == not_applicable("no matmuls")
    assert ask(ops=table(matmul_312(), arch="quasar")) == not_measured(
        "the peaks of quasar are not known"
    )


def test_attributes_that_do_not_tell() -> None:
    assert blocks(ops=table(matmul_312(None))) == not_measured(
        "the attributes of matmuls do not give the sizes of blocks"
    )
    assert config(ops=table(matmul_312(None))) == not_measured(
        "the attributes of matmuls do not give a program config"
    )
    assert slow(ops=table(op("Matmul"))) == not_measured(
        "no matmul gives its operands, cores and fidelity"
    )


def test_a_batch_that_is_not_fused_is_the_first_thing_to_say() -> None:
    batch = tensor(1, 32, 32, 4096, logical=(1, 32, 17, 4096))
    weights = tensor(1, 1, 4096, 4096)
    program = (
        "{'program_config': 'MatmulMultiCoreReuseMultiCast1DProgramConfig("
        "in0_block_w=2;out_subblock_h=1;out_subblock_w=4;per_core_M=1;per_core_N=4;fuse_batch=0)'}"
    )
    product = op(
        "MatmulDeviceOperation",
        [batch, weights],
        [batch],
        ns=9e6,
        fidelity="HiFi2",
        attributes=program,
    )
    fix = slow.fix(ops=table(product))
    assert fix == (
        "No batch in the first input: reshape it to rows (1x32x17x4096 → 1x1x544x4096, "
        "`fuse_batch=True`), or the weights are read 32 times."
    )
    many = product._replace(attributes=program.replace("fuse_batch=0", "fuse_batch=1"))
    assert slow.fix(ops=table(many)) == (
        "Try larger `in0_block_w`, and give the first input an L1 memory config."
    )
    on_few = product._replace(cores=4)
    assert slow(ops=table(on_few)).value == 0.0
    assert Ask("TTP305")(ops=table(on_few)).evidence


ONE_D = "MatmulMultiCoreReuseMultiCast1DProgramConfig(compute_with_storage_grid_size=8-8;"
BLOCKS = "in0_block_w=2;out_subblock_h=1;out_subblock_w=8;per_core_M=4;per_core_N=8;mcast_in0=0)"


@pytest.mark.parametrize(
    ("first", "weights", "program", "cores", "fix"),
    [
        (
            tensor(1, 32, 3200, 128),
            tensor(1, 32, 128, 512),
            ONE_D + BLOCKS,
            62,
            "Spread the batch over the cores (`MatmulMultiCoreReuseProgramConfig`), as both inputs "
            "have one.",
        ),
        (
            tensor(1, 1, 25600, 256),
            tensor(256, 64),
            ONE_D + BLOCKS,
            62,
            "Keep the 1D program config (`mcast_in0=False`), and height-shard the first input and "
            "the output in L1, and raise `in0_block_w`.",
        ),
        (
            tensor(1, 1, 6400, 128),
            tensor(128, 512),
            ONE_D + BLOCKS,
            50,
            "A 2D program config instead of a 1D one: 64 cores instead of 50.",
        ),
        (
            tensor(1, 1, 25600, 64, memory="L1_INTERLEAVED"),
            tensor(64, 256),
            ONE_D + BLOCKS.replace("per_core_M=4", "per_core_M=13").replace("w=8", "w=2"),
            62,
            "Try larger output subblocks.",
        ),
    ],
    ids=["batches", "tall", "more cores in 2D", "only what can be larger"],
)
def test_what_to_do_depends_on_tiles_and_config(
    first: Tensor, weights: Tensor, program: str, cores: int, fix: str
) -> None:
    given = first._replace(padded=(*first.padded[:-1], weights.padded[-1]))
    product = op(
        "MatmulDeviceOperation",
        [first, weights],
        [given],
        ns=9e6,
        cores=cores,
        fidelity="HiFi2",
        attributes=f"{{'program_config': '{program}'}}",
    )
    assert slow.fix(ops=table(product)) == fix
