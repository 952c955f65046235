"""Rules on cores, data movement and unexplained time."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.runner import rule_of
from tests.analysis.rules.answers import (
    Ask,
    Evidence,
    Subject,
    limit,
    not_applicable,
)
from tests.analysis.rules.captures import region_of
from tests.analysis.rules.tables import Op, Tensor, op, table, tensor

ttp305 = Ask("TTP305")
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


def add(ns: float, *, cores: int | None, given: Tensor = WIDE, attributes: str = "") -> Op:
    return op("BinaryNg", [WIDE], [given], ns=ns, cores=cores, attributes=attributes)


REST = add(100_000.0, cores=64)


def test_an_op_does_not_get_shorter_than_launching_or_reading_takes() -> None:
    assert ttp305.saving(ops=table(add(10_000.0, cores=1))).ns == 8_000.0
    norm = op("LayerNormDeviceOperation", [WIDE], [WIDE], ns=20_000.0, cores=1)
    assert ttp305.saving(ops=table(norm)).ns == 20_000 - 7_000 - 2_500  # and moves to shards
    # 64 rows: for up to 32, DRAM-sharded weights are another way.
    tall = tensor(1, 1, 64, 2048, memory="L1_INTERLEAVED")
    for dtype, size, part in (("BFLOAT16", 2.0, 0.75), ("BFLOAT8_B", 1.0625, 0.6)):
        weights = tensor(1, 1, 2048, 2048, dtype=dtype)
        matmul = op("MatmulDeviceOperation", [tall, weights], [tall], ns=200_000.0, cores=1)
        saved = 200_000 - size * 2048**2 / 288 / part - 5_000
        assert ttp305.saving(ops=table(matmul)).ns == pytest.approx(saved)


def rotary(width: int, memory: str = "DRAM_INTERLEAVED", rows: int = 32) -> Op:
    operand = tensor(1, 1, rows, width, memory=memory)
    return op("RotaryEmbeddingDeviceOperation", [operand], [operand], ns=15_000.0, cores=1)


def test_a_rotary_embedding_of_many_rows_takes_them_without_shards() -> None:
    assert ttp305.fix(ops=table(rotary(128, rows=1024))) == (
        "RotaryEmbedding: `rotary_embedding_hf` or `rotary_embedding_llama`."
    )
    assert ttp305.fix(ops=table(rotary(512, rows=1024))) == (
        "RotaryEmbedding: `rotary_embedding_hf`, which takes heads of more than 256."
    )


def test_a_conversion_on_one_core_that_another_of_its_kind_does_not_need() -> None:
    rows = tensor(1, 8, 1024, 32)
    tilize = op("TilizeWithValPaddingDeviceOperation", [rows], [rows], ns=900_000.0, cores=1)
    seen = table(tilize, add(10_000.0, cores=56), available_cores=None)
    assert ttp305(ops=seen).evidence[0].subject.endswith("on 1 of 52 cores")  # 5 rows each
    assert ttp305.fix(ops=seen) == "Conversions: `use_multicore=True`."


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
    assert ttp305(ops=table(REST, left_out)) == LIMIT.clean(0.0)


def test_shards_on_more_cores_gained_what_was_estimated() -> None:
    """A multiply on shards of 8 cores, then of 24: of 13.8 µs, 8.7 µs were gained."""
    before, after = (
        {each.subject.partition(" on ")[2]: each.value for each in ttp305(region_of(name)).evidence}
        for name in ("gemma_sliding_decode_replicated_v1.csv", "gemma_sliding_decode_final.csv")
    )
    estimated = before["shards of 8 of 84 cores"]
    gained = 13_842.0 - 5_177.0
    assert "shards of 8 of 84 cores" not in after
    assert estimated is not None
    assert 0.5 <= estimated / gained <= 2


ttp306 = Ask("TTP306")
INPUT = tensor(1, 1, 32, 64)
EVEN = op("Conv2dDeviceOperation", [INPUT], ns=90_000.0, per_core_ns=(80_000.0, 89_000.0))


def test_one_core_does_the_work_of_others() -> None:
    rows = [
        EVEN,
        op("ReshapeDeviceOperation", [INPUT], ns=6_000.0, per_core_ns=(1_000.0, 5_900.0)),
        op("HaloDeviceOperation", [INPUT], ns=10_000.0, per_core_ns=(0.0, 9_900.0)),
        op("HaloDeviceOperation", [INPUT], ns=10_000.0, per_core_ns=(4_000.0, 9_900.0)),
        op("SliceDeviceOperation", [INPUT], ns=10_000.0, per_core_ns=(4_950.0, 9_900.0)),
    ]
    assert ttp306(ops=table(*rows)) == LIMIT.found(
        10_350 / 126_000,
        "uneven cores in 3 of 5 ops: one works more than 2 times as long as another",
        [
            Evidence("2 x Halo 1x1x32x64", 7_900.0, "ns", 7.9 / 126),
            Evidence("Reshape 1x1x32x64", 2_450.0, "ns", 2.45 / 126),
        ],
    )
    assert ttp306.saving(ops=table(*rows)) == (
        10_350.0,
        "half of what the slowest core takes longer than the fastest, in 3 ops: 10.3 µs",
    )


ttp307 = Ask("TTP307")


def fix_of(*rows: Op) -> str:
    fix = ttp307.fix(ops=table(*rows))
    assert fix is not None
    return fix


def test_heads_are_made_and_merged_in_one_op() -> None:
    product = tensor(1, 1, 32, 768, logical=(1, 1, 19, 768))
    split = tensor(1, 19, 32, 64, logical=(1, 19, 12, 64))
    heads = tensor(1, 12, 32, 64, logical=(1, 12, 19, 64))
    matmul = op("Matmul", [product, tensor(768, 768)], [product])
    reshape = op("ReshapeDeviceOperation", [product], [split], ns=500.0)
    transpose = op("TransposeDeviceOperation", [split], [heads], ns=400.0)
    attention = op("SDPAOperation", [heads, heads, heads], [heads])
    making = fix_of(matmul, reshape, reshape, transpose, transpose, attention)
    assert making == (
        "Make the heads in one op: `ttnn.experimental.nlp_create_qkv_heads` or "
        "`ttnn.transformer.split_query_key_value_and_split_heads`."
    )
    back = op("TransposeDeviceOperation", [heads], [split], ns=400.0)
    merge = op("ReshapeDeviceOperation", [split], [product], ns=500.0)
    merging = fix_of(matmul, attention, back, merge, matmul)
    assert merging == "Merge the heads in one op: `ttnn.transformer.concatenate_heads`."


ttp308 = Ask("TTP308")
VOCABULARY = tensor(1, 1, 32, 32768, memory="L1_INTERLEAVED")
FOUND = tensor(1, 1, 32, 32)
MATMUL = op("MatmulDeviceOperation", [FOUND], [FOUND], ns=100_000.0)


@pytest.mark.parametrize(
    ("code", "sampling"),
    [
        ("Reduce", ""),
        *((code, "; sampling is 86.5 % of a step") for code in ("ArgMax", "TopK", "Sort")),
    ],
)
def test_a_vocabulary_on_one_core(code: str, sampling: str) -> None:
    search = op(f"{code}DeviceOperation", [VOCABULARY], [FOUND], ns=640_000.0, cores=1)
    assert ttp308(ops=table(MATMUL, search)) == LIMIT.found(
        630_000 / 740_000,
        f"1 search along rows takes 640.0 µs{sampling}",
        [Evidence(f"{code} 1x1x32x32768 on 1 of 64 cores", 630_000.0, "ns", 630_000 / 740_000)],
    )
    assert ttp308.saving(ops=table(MATMUL, search)) == (
        630_000.0,
        "640.0 µs → 10.0 µs: on all cores, in tiles, without padding and once",
    )
    assert (ttp308.fix(ops=table(MATMUL, search)) or "").startswith("Search in two steps")


def test_the_largest_value_and_its_place_of_one_tensor() -> None:
    largest = "{'math_op': 'ReduceOpMath::MAX'}"
    value = op("ReduceDeviceOperation", [VOCABULARY], [FOUND], ns=3e5, cores=64, attributes=largest)
    place = op("ArgMaxDeviceOperation", [VOCABULARY], [FOUND], ns=50_000.0, cores=64)
    ops = table(MATMUL, value, place)
    assert ttp308.saving(ops=ops).ns == 300_000.0
    assert (ttp308.fix(ops=ops) or "").startswith("Drop the reduction")
    assert ttp308(ops=table(MATMUL, value._replace(kernel_ns=20_000.0))) == LIMIT.clean(0.0)


ttp309 = Ask("TTP309")
CACHE, USER = tensor(32, 8, 128, 128), tensor(1, 8, 32, 128)
MATMUL_309 = op("Matmul", [USER], [USER], ns=200_000.0)
TURN = (
    op("SliceDeviceOperation", [CACHE], [USER], ns=1_500.0),
    op("UpdateKVCacheDeviceOperation", [CACHE, USER], [CACHE], ns=3_000.0),
)


def test_what_is_no_loop_of_small_ops() -> None:
    few_turns = [MATMUL_309, *TURN * 31]
    layer = [op(f"Op{at}", [USER], [USER]) for at in range(8)]
    long: list[Op] = [row._replace(kernel_ns=30_000.0) for row in TURN]
    apart = [row for _ in range(32) for row in (MATMUL_309, *TURN)]
    for rows in (few_turns, layer * 40, long * 40, apart):
        assert ttp309(ops=table(*rows)) == LIMIT.clean(0.0)


LIMIT_315 = limit(0.15, "of a step")
#: 8 MiB in DRAM: 29.1 µs at 288 GB/s, and as much to write it again.
WIDE_315 = tensor(1, 1, 2048, 2048)
IN_L1 = tensor(1, 1, 2048, 2048, memory="L1_INTERLEAVED")


def ttp315(*rows: Op, claimed: dict[int, float] | None = None) -> object:
    subject = Subject(ops=table(*rows), claimed={} if claimed is None else claimed)
    return rule_of("TTP315").check(subject)


def norm(ns: float) -> Op:
    return op("GroupNormDeviceOperation", [WIDE_315], [WIDE_315], ns=ns)


def other(ns: float) -> Op:
    return op("UnaryDeviceOperation", [WIDE_315], [WIDE_315], ns=ns)


def test_what_cannot_be_modelled_is_told_as_such() -> None:
    sample = op("GridSampleOperation", [IN_L1], [IN_L1], ns=60_000.0)
    sparse = op("SparseMatmulDeviceOperation", [WIDE_315, WIDE_315], [WIDE_315], ns=30_000.0)
    answer = ttp315(sample, sparse, other(60_000.0))
    assert answer == LIMIT_315.found(
        0.6,
        "GridSample takes 40.0 % of a step (it has no roofline model), SparseMatmul 20.0 % (it "
        "has no roofline model); no other rule explains them",
        [
            Evidence("GridSample 1x1x2048x2048", 60_000.0, "ns", 0.4),
            Evidence("SparseMatmul 1x1x2048x2048 @ 2048x2048", 30_000.0, "ns", 0.2),
        ],
    )


ttp320 = Ask("TTP320")
#: 32 matrices of 512 by 512: 58.3 µs at the bandwidth of Wormhole.
EXPERTS = tensor(1, 32, 512, 512)
DENSE_NS = 80_000.0


def step(*, kept: int = 4, tokens: int = 1, experts: int = 32) -> list[Op]:
    """A router that chooses among 32 experts, and a matmul over some."""
    hidden = tensor(1, 1, max(tokens, 32), 512, logical=(1, 1, tokens, 512))
    scores = tensor(1, 1, max(tokens, 32), 32, logical=(1, 1, tokens, 32))
    best = tensor(1, 1, max(tokens, 32), 32, logical=(1, 1, tokens, kept))
    apart = tensor(1, experts, max(tokens, 32), 512, logical=(1, experts, tokens, 512))
    weights = EXPERTS._replace(padded=(1, experts, 512, 512), logical=(1, experts, 512, 512))
    return [
        op("MatmulDeviceOperation", [hidden, tensor(1, 1, 512, 32)], [scores], ns=10_000.0),
        op("TopKDeviceOperation", [scores], [scores], ns=5_000.0),
        op("SoftmaxDeviceOperation", [best], [best], ns=5_000.0),
        op("MatmulDeviceOperation", [apart, weights], [apart], ns=DENSE_NS),
    ]


def test_what_the_router_does_not_choose_is_computed_for_nothing() -> None:
    ops = table(*step())
    answer = ttp320(ops=ops)
    assert answer.reason == (
        "1 matmul over all 32 experts, of which the router chooses 4 for 1 token"
    )
    assert answer.value == pytest.approx(0.8 * 28 / 32)
    assert ttp320.saving(ops=ops) == (
        70_000.0,
        "80.0 µs − 10.0 µs for the experts that are chosen by 1 token",
    )


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (step()[:1] + step()[3:], "no router chooses experts"),
        (step(experts=8), "no router chooses experts"),
        (step(kept=20), "20 of 32 experts are chosen"),
        (step()[1:], "no router chooses experts"),
    ],
    ids=["no choice", "matrices of something else", "most are chosen", "no router"],
)
def test_steps_without_a_choice_of_few(rows: list[Op], why: str) -> None:
    assert ttp320(ops=table(*rows)) == not_applicable(why)


ttp321 = Ask("TTP321")
STEP = limit(0.02, "of a step")
ADD, MUL = "binary_op_type=BinaryOpType::ADD", "binary_op_type=BinaryOpType::MUL"


def add_321(rows: int, ns: float, *, cores: int = 20, attributes: str = ADD, dtype: str = "") -> Op:
    """Return a sum of two tensors of so many rows."""
    one = tensor(1, 1, rows, 1792, memory="L1_HEIGHT_SHARDED", dtype=dtype or "BFLOAT16")
    code = "BinaryNgDeviceOperation"
    return op(code, [one, one], [one], ns=ns, cores=cores, attributes=attributes)


def test_the_same_op_on_more_elements_is_quicker() -> None:
    ops = table(add_321(2112, 90_000.0), add_321(2304, 10_000.0))
    saved = 80_000.0
    assert ttp321(ops=ops) == STEP.found(
        saved / 100_000,
        "1 op takes over 3 times as long as the same op elsewhere in the step, on as many elements "
        "or more",
        [
            Evidence(
                "BinaryNg ADD 1x1x2112x1792 on 20 cores "
                "(10.0 µs as BinaryNg ADD 1x1x2304x1792 on 20 cores)",
                saved,
                "ns",
                saved / 100_000,
            )
        ],
    )
    assert ttp321.saving(ops=ops) == (saved, "90.0 µs − 10.0 µs at the time of the quicker ops")


@pytest.mark.parametrize(
    "other",
    [
        add_321(2080, 10_000.0),
        add_321(2304, 30_000.0),
        add_321(2304, 10_000.0, attributes=MUL),
        add_321(2304, 10_000.0, dtype="FLOAT32"),
        add_321(2112, 10_000.0),
    ],
    ids=[
        "fewer elements",
        "three times",
        "another function",
        "another format",
        "shapes not its own",
    ],
)
def test_ops_that_are_not_alike(other: Op) -> None:
    assert ttp321(ops=table(add_321(2112, 90_000.0), other)) == STEP.clean(0.0)
