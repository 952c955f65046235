"""Matmuls: small blocks (TTP312), no program config (TTP313), slow for no reason (TTP314)."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.tables import Op, Tensor, op, table, tensor

blocks, config, slow = Ask("TTP312"), Ask("TTP313"), Ask("TTP314")
LIMIT = limit(0.02, "of a step")
ROWS = tensor(1, 1, 1024, 1024, memory="L1_BLOCK_SHARDED")
WEIGHTS = tensor(1, 1, 1024, 1024, dtype="BFLOAT8_B")
NAME = "Matmul 1x1x1024x1024 @ 1024x1024"
#: 2.1 GFLOP at HiFi2 on 64 cores of Wormhole.
LEAST_NS = 2 * 1024**3 / (64 * 148 / 72 * 1000)
WELL = "Config(in0_block_w=4;out_subblock_h=1;out_subblock_w=4;per_core_M=4;per_core_N=4)"


def matmul(program: str | None = WELL, *, ns: float = 100_000.0, ideal: float | None = None) -> Op:
    attributes = "" if program is None else f"{{'program_config': '{program}'}}"
    return op(
        "MatmulDeviceOperation",
        [ROWS, WEIGHTS],
        [ROWS],
        ns=ns,
        fidelity="HiFi2",
        attributes=attributes,
        ideal_ns=ideal,
    )


SAVED = 100_000 - LEAST_NS / 0.5


@pytest.mark.parametrize(
    "program",
    [
        WELL.replace("in0_block_w=4", "in0_block_w=1"),
        WELL.replace("out_subblock_w=4", "out_subblock_w=1"),
        "Config(K_block_size=1)",
    ],
)
def test_very_small_blocks(program: str) -> None:
    ops = table(matmul(program), op("UnaryDeviceOperation", ns=100_000.0))
    assert blocks(ops=ops) == LIMIT.found(
        SAVED / 200_000,
        "1 matmul with very small blocks, 100.0 µs of a step",
        [Evidence(NAME, SAVED, "ns", SAVED / 200_000)],
    )
    assert blocks.saving(ops=ops) == (SAVED, "100.0 µs − 32.6 µs at 50.0 % of the roofline")
    assert slow(ops=ops) == LIMIT.clean(0.0)


@pytest.mark.parametrize(
    "program",
    [
        WELL,
        "Config(in0_block_w=4;out_subblock_h=1;out_subblock_w=1;per_core_M=1;per_core_N=1)",
    ],
    ids=["large", "no more tiles"],
)
def test_blocks_that_are_well(program: str) -> None:
    assert blocks(ops=table(matmul(program))) == LIMIT.clean(0.0)


def test_limits_of_blocks_can_be_set() -> None:
    assert blocks.with_limits(inner=8)(ops=table(matmul())).value == SAVED / 100_000


def test_small_blocks_of_a_fast_matmul_cost_nothing() -> None:
    fast = matmul(WELL.replace("in0_block_w=4", "in0_block_w=1"), ns=LEAST_NS * 1.9)
    assert blocks(ops=table(fast)) == LIMIT.clean(0.0)


def test_without_a_program_config() -> None:
    ops = table(matmul("std::nullopt"), matmul(), matmul("std::nullopt", ns=LEAST_NS * 1.5))
    whole = 200_000 + LEAST_NS * 1.5
    assert config(ops=ops) == LIMIT.found(
        SAVED / whole,
        "without a program config, and slow: 1 of 3 matmuls, 100.0 µs of a step",
        [Evidence(NAME, SAVED, "ns", SAVED / whole)],
    )
    assert slow(ops=ops).value == SAVED / whole  # the other one


def test_slow_for_no_other_reason() -> None:
    ops = table(matmul(), op("UnaryDeviceOperation", ns=100_000.0))
    assert slow(ops=ops) == LIMIT.found(
        SAVED / 200_000,
        "1 matmul at 16.3 % of the roofline",
        [Evidence(NAME, SAVED, "ns", SAVED / 200_000)],
    )
    assert slow.saving(ops=ops) == (SAVED, "100.0 µs − 32.6 µs at 50.0 % of the roofline")
    assert slow(ops=table(matmul(ns=LEAST_NS * 2))) == LIMIT.clean(0.0)


def test_without_an_architecture_the_ideal_of_the_profiler_stands_in() -> None:
    ops = table(matmul(ideal=30_000.0), arch=None)
    assert slow.saving(ops=ops)[0] == 40_000.0
    narrow = matmul(ideal=10_000.0)
    first, weights = narrow.signature.inputs
    narrow = narrow._replace(
        signature=narrow.signature._replace(inputs=(first, weights._replace(dtype="BFLOAT4_B")))
    )
    assert slow(ops=table(narrow, arch=None)) == not_measured(
        "the peaks of an unnamed architecture are not known"
    )


@pytest.mark.parametrize("ask", [blocks, config, slow])
def test_what_cannot_be_told(ask: Ask) -> None:
    assert ask(ops=table(op("UnaryDeviceOperation"))) == not_applicable("no matmuls")
    assert ask(ops=table(matmul(), arch="quasar")) == not_measured(
        "the peaks of quasar are not known"
    )


def test_attributes_that_do_not_tell() -> None:
    assert blocks(ops=table(matmul(None))) == not_measured(
        "the attributes of matmuls do not give the sizes of blocks"
    )
    assert config(ops=table(matmul(None))) == not_measured(
        "the attributes of matmuls do not give a program config"
    )
    assert slow(ops=table(op("Matmul"))) == not_measured(
        "no matmul gives its operands, cores and fidelity"
    )


@pytest.mark.parametrize(("ask", "subblock"), [(slow, 4), (blocks, 1)], ids=["slow", "small"])
def test_weights_that_are_read_again_are_the_first_thing_to_say(ask: Ask, subblock: int) -> None:
    rows = tensor(1, 1, 4096, 4096, memory="L1_INTERLEAVED")
    program = (
        "{'program_config': 'MatmulMultiCoreReuseMultiCast1DProgramConfig(in0_block_w=2;"
        f"out_subblock_h=1;out_subblock_w={subblock};out_block_h=4;out_block_w=4;per_core_M=128;"
        "per_core_N=4;mcast_in0=1)'}"
    )
    product = op(
        "MatmulDeviceOperation",
        [rows, tensor(1, 1, 4096, 4096)],
        [rows],
        ns=9e6,
        fidelity="HiFi2",
        attributes=program,
    )
    assert ask.fix(ops=table(product)) == (
        "Raise `out_block_h` towards `per_core_M`, with a smaller `out_block_w` if L1 is full: the "
        "weights are read 32 times."
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
