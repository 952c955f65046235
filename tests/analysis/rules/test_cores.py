"""Rules on cores, data movement and unexplained time."""

from __future__ import annotations

import pytest

from tests.analysis.rules.answers import (
    Ask,
    Evidence,
    limit,
)
from tests.analysis.rules.captures import region_of
from tests.analysis.rules.tables import Op, Tensor, op, table, tensor

ttp305 = Ask("TTP305")
LIMIT = limit(0.02, "of a step")
#: 64 tiles.
WIDE = tensor(1, 1, 32, 2048, memory="L1_INTERLEAVED")


def add(ns: float, *, cores: int | None, given: Tensor = WIDE, attributes: str = "") -> Op:
    return op("BinaryNg", [WIDE], [given], ns=ns, cores=cores, attributes=attributes)


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


#: 8 MiB in DRAM: 29.1 µs at 288 GB/s, and as much to write it again.
WIDE_315 = tensor(1, 1, 2048, 2048)


def norm(ns: float) -> Op:
    return op("GroupNormDeviceOperation", [WIDE_315], [WIDE_315], ns=ns)


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
