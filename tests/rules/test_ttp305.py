"""Cores in use."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import Device
from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.captures import region_of
from tests.rules.reports import report
from tests.rules.tables import Op, Tensor, op, table, tensor

ask = Ask("TTP305")
LIMIT = limit(0.02, "of a step")
#: 64 tiles.
WIDE = tensor(1, 1, 32, 2048, memory="L1_INTERLEAVED")
SMALL = tensor(1, 1, 32, 64, memory="L1_INTERLEAVED")
#: The same as 16 heads, and weights that are cut to the banks of DRAM.
HEADS = tensor(1, 16, 32, 128)
BANKS = tensor(1, 1, 2048, 2048, memory="DRAM_WIDTH_SHARDED")
SHARDED = (
    "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(per_core_M=1)'}"
)
ON_EIGHT = (
    "{'memory_config': 'MemoryConfig(memory_layout=TensorMemoryLayout::WIDTH_SHARDED;"
    'buffer_type=BufferType::L1;shard_spec=ShardSpec{grid=[{"start":{"x":0;"y":0};'
    '"end":{"x":7;"y":0}]; shape=[32; 256]; orientation=ShardOrientation::ROW_MAJOR})\'}'
)


def add(ns: float, *, cores: int | None, given: Tensor = WIDE, attributes: str = "") -> Op:
    return op("BinaryNg", [WIDE], [given], ns=ns, cores=cores, attributes=attributes)


REST = add(100_000.0, cores=64)


def test_each_op_on_few_of_the_cores_that_it_has_work_for() -> None:
    ops = table(
        op("LayerNormDeviceOperation", [WIDE], [WIDE], ns=160_000.0, cores=4),
        add(40_000.0, cores=16),
        add(100_000.0, cores=32),  # half is enough
        REST,
    )
    assert ask(ops=ops) == LIMIT.found(
        177.5 / 400,
        "200.0 µs of a step in 2 ops that use less than 50.0 % of the cores they could",
        [
            Evidence("LayerNorm 1x1x32x2048 on 4 of 64 cores", 147_500.0, "ns", 147.5 / 400),
            Evidence("BinaryNg 1x1x32x2048 on 16 of 64 cores", 30_000.0, "ns", 0.075),
        ],
    )
    assert ask.saving(ops=ops) == (
        177_500.0,
        "scaled to the usable cores, but not below each op's minimum: 200.0 µs → 22.5 µs",
    )


def test_hot_ops_on_one_core_are_found_whatever_the_mean_is() -> None:
    ops = table(add(40_000.0, cores=1), *[REST] * 9)
    assert ask(ops=ops).value == pytest.approx(38_000 / 940_000)


def test_no_more_cores_than_tiles() -> None:
    four_tiles = add(100_000.0, cores=1, given=tensor(1, 1, 64, 64))
    assert ask.saving(ops=table(four_tiles)).ns == 75_000.0
    assert ask(ops=table(four_tiles._replace(cores=2))) == LIMIT.clean(0.0)


def test_an_op_does_not_get_shorter_than_launching_or_reading_takes() -> None:
    assert ask.saving(ops=table(add(10_000.0, cores=1))).ns == 8_000.0
    norm = op("LayerNormDeviceOperation", [WIDE], [WIDE], ns=20_000.0, cores=1)
    assert ask.saving(ops=table(norm)).ns == 20_000 - 7_000 - 2_500  # and moves to shards
    # 64 rows: for up to 32, DRAM-sharded weights are another way.
    tall = tensor(1, 1, 64, 2048, memory="L1_INTERLEAVED")
    for dtype, size, part in (("BFLOAT16", 2.0, 0.75), ("BFLOAT8_B", 1.0625, 0.6)):
        weights = tensor(1, 1, 2048, 2048, dtype=dtype)
        matmul = op("MatmulDeviceOperation", [tall, weights], [tall], ns=200_000.0, cores=1)
        saved = 200_000 - size * 2048**2 / 288 / part - 5_000
        assert ask.saving(ops=table(matmul)).ns == pytest.approx(saved)


def test_an_op_that_would_hardly_be_shorter_does_not_count() -> None:
    shards = WIDE._replace(memory="L1_WIDTH_SHARDED")
    sharded = op("LayerNormDeviceOperation", [shards], [shards], ns=8_000.0, cores=16)
    assert ask(ops=table(sharded)) == LIMIT.clean(0.0)  # 7 µs at least
    narrow = tensor(1, 1, 32, 768)  # 24 tiles
    small = op("LayerNormDeviceOperation", [narrow], [narrow], ns=19_200.0, cores=1)
    assert ask.saving(ops=table(small)).ns == pytest.approx(19_200 - 7_000 - 2_500)
    assert ask(ops=table(small._replace(kernel_ns=12_000.0))) == LIMIT.clean(0.0)


def two_d(rows: int, grid: str) -> Op:
    """A matmul with a 2D program config on a grid, of columns and rows."""
    first, given = (tensor(1, 1, rows, 2048, memory="L1_INTERLEAVED") for _ in range(2))
    attributes = (
        "{'program_config': 'MatmulMultiCoreReuseMultiCastProgramConfig("
        f"compute_with_storage_grid_size={grid};in0_block_w=4;per_core_M=1;per_core_N=8)'}}"
    )
    weights = tensor(1, 1, 2048, 2048)
    operands = ([first, weights], [given])
    return op("MatmulDeviceOperation", *operands, ns=400_000.0, cores=16, attributes=attributes)


def test_few_rows_of_tiles_ask_for_a_1d_config() -> None:
    few = table(two_d(64, "8-8"))  # two rows of cores of eight
    assert ask(ops=few).evidence[0].subject.endswith("on 16 of 64 cores")
    assert (ask.fix(ops=few) or "").startswith("Matmuls of few rows: a 1D program config")
    many = ask.fix(ops=table(two_d(512, "8-2")))
    assert (many or "").startswith("Matmuls: a program config with a larger")


def rotary(width: int, memory: str = "DRAM_INTERLEAVED", rows: int = 32) -> Op:
    operand = tensor(1, 1, rows, width, memory=memory)
    return op("RotaryEmbeddingDeviceOperation", [operand], [operand], ns=15_000.0, cores=1)


def test_in_a_decode_step_a_rotary_embedding_wants_shards() -> None:
    cache = op("PagedUpdateCacheDeviceOperation", [WIDE], [WIDE], ns=100.0)
    ops = table(cache, rotary(128))
    assert ask(ops=ops).evidence[0].subject == "RotaryEmbedding 1x1x32x128 on 1 core, not sharded"
    assert ask.saving(ops=ops).ns == 10_000.0
    assert ask.fix(ops=ops) == (
        "RotaryEmbedding: `rotary_embedding_hf` or `rotary_embedding_llama`, on inputs that are "
        "sharded by height."
    )
    assert ask(ops=table(REST, cache, rotary(128, "L1_HEIGHT_SHARDED"))) == LIMIT.clean(0.0)
    assert ask(ops=table(REST, rotary(128))) == LIMIT.clean(0.0)  # no decode step


def test_a_rotary_embedding_of_many_rows_takes_them_without_shards() -> None:
    assert ask.fix(ops=table(rotary(128, rows=1024))) == (
        "RotaryEmbedding: `rotary_embedding_hf` or `rotary_embedding_llama`."
    )
    assert ask.fix(ops=table(rotary(512, rows=1024))) == (
        "RotaryEmbedding: `rotary_embedding_hf`, which takes heads of more than 256."
    )


def test_a_batch_that_is_worked_on_one_after_the_other() -> None:
    first, weights = tensor(32, 48, 32, 128), tensor(32, 48, 128, 128)
    matmul = op("MatmulDeviceOperation", [first, weights], [first], ns=9e6, cores=4)
    assert (ask.fix(ops=table(matmul)) or "").startswith("Batched matmuls: a batch-parallel config")


def test_a_conversion_on_one_core_that_another_of_its_kind_does_not_need() -> None:
    rows = tensor(1, 8, 1024, 32)
    tilize = op("TilizeWithValPaddingDeviceOperation", [rows], [rows], ns=900_000.0, cores=1)
    seen = table(tilize, add(10_000.0, cores=56), available_cores=None)
    assert ask(ops=seen).evidence[0].subject.endswith("on 1 of 52 cores")  # 5 rows each
    assert ask.fix(ops=seen) == "Conversions: `use_multicore=True`."


def test_cores_without_a_shard_do_not_work() -> None:
    given = WIDE._replace(memory="L1_WIDTH_SHARDED")
    ops = table(add(64_000.0, cores=64, given=given, attributes=ON_EIGHT))
    assert ask(ops=ops).evidence[0].subject == "BinaryNg 1x1x32x2048 on shards of 8 of 64 cores"
    assert ask.saving(ops=ops).ns == 56_000.0


def test_on_the_shards_of_neighbours_more_shards_cost_two_moves() -> None:
    shards = WIDE._replace(memory="L1_WIDTH_SHARDED")
    silu = op("Unary", [shards], [shards], ns=16_000.0, cores=64, attributes=ON_EIGHT)
    assert ask.saving(ops=table(silu)).ns == 16_000 - 2_000 - 4_000
    assert (ask.fix(ops=table(silu)) or "").startswith("Activations on the shards of their")
    short = silu._replace(kernel_ns=7_000.0)
    assert ask(ops=table(REST, short)) == LIMIT.clean(0.0)


@pytest.mark.parametrize(
    "left_out",
    [
        op("MatmulDeviceOperation", [WIDE], [WIDE], ns=90_000.0, cores=8, attributes=SHARDED),
        op("AllGatherDeviceOperation", [WIDE], [WIDE], ns=90_000.0, cores=4),
        op("PagedUpdateCacheDeviceOperation", [WIDE], [WIDE], ns=90_000.0, cores=1),
        op("NLPCreateQKVHeadsDecodeDeviceOperation", [WIDE], [WIDE], ns=90_000.0, cores=1),
        op("NlpCreateHeadsDeviceOperation", [WIDE], [HEADS], ns=90_000.0, cores=1),
        op("NLPConcatHeadsDeviceOperation", [HEADS], [WIDE], ns=90_000.0, cores=1),
        op("MatmulDeviceOperation", [WIDE, BANKS], [WIDE], ns=90_000.0, cores=8),
        op("SparseMatmulDeviceOperation", [WIDE], [tensor(8, 1, 32, 64)], ns=90_000.0, cores=2),
        op("ReduceDeviceOperation", [WIDE], [SMALL], ns=90_000.0, cores=1),
        op("TilizeDeviceOperation", [WIDE], [WIDE], ns=19_000.0, cores=1),
        op(
            "SliceDeviceOperation",
            [WIDE],
            [tensor(1, 1, 2, 2048, layout="ROW_MAJOR")],
            ns=90_000.0,
            cores=2,
        ),
        add(4_999.0, cores=1),
        add(90_000.0, cores=None),
    ],
    ids=[
        *("DRAM-sharded", "collective", "cache", "per user", "heads", "heads again"),
        *("weights at the banks", "one expert"),
        *("search", "short conversion", "rows", "short", "cores not told"),
    ],
)
def test_what_does_not_count(left_out: Op) -> None:
    assert ask(ops=table(REST, left_out)) == LIMIT.clean(0.0)


def test_nothing_that_counts() -> None:
    assert ask(ops=table(add(10.0, cores=1))) == not_applicable(
        "no op of 5 µs or more that is to be counted"
    )


def test_a_report_may_tell_the_cores_that_there_are() -> None:
    ops = table(add(5_000.0, cores=32), available_cores=None)
    device = Device(0, 64, None, None, None)
    both = Subject(ops=ops, report=replace(report([]), devices=(device,)))
    assert ask(both) == LIMIT.clean(0.0)
    few = Subject(ops=table(add(9e4, cores=16), available_cores=None), report=both.report)
    assert ask(few).evidence[0].subject.endswith("on 16 of 64 cores")
    assert ask(ops=few.ops) == LIMIT.clean(0.0)  # 16 cores are all that were seen
    unknown = table(add(9e4, cores=None), available_cores=None)
    assert ask(ops=unknown) == not_measured("the capture does not say how many cores there are")


def test_inputs_that_do_not_tell() -> None:
    ops = table(add(5_000.0, cores=None))
    assert ask(ops=ops) == not_measured("the capture does not say how many cores ops ran on")


def test_shards_on_more_cores_gained_what_was_estimated() -> None:
    """A multiply on shards of 8 cores, then of 24: of 13.8 µs, 8.7 µs were gained."""
    before, after = (
        {each.subject.partition(" on ")[2]: each.value for each in ask(region_of(name)).evidence}
        for name in ("gemma_sliding_decode_replicated_v1.csv", "gemma_sliding_decode_final.csv")
    )
    estimated = before["shards of 8 of 84 cores"]
    gained = 13_842.0 - 5_177.0
    assert "shards of 8 of 84 cores" not in after
    assert estimated is not None
    assert 0.5 <= estimated / gained <= 2
