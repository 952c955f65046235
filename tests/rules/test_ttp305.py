"""Cores in use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ttnn_perf.records.ttnn_report import Device
from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.captures import region_of
from tests.rules.reports import report
from tests.rules.tables import Op, Tensor, op, table, tensor

ask = Ask("TTP305")
LIMIT = limit(0.02, "of a step")
#: 64 tiles.
WIDE = tensor(1, 1, 32, 2048, memory="L1_INTERLEAVED")
SMALL = tensor(1, 1, 32, 64, memory="L1_INTERLEAVED")
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
        0.45,
        "2 ops of 200.0 µs on less than 50.0 % of the cores that they have work for",
        [
            Evidence("LayerNorm 1x1x32x2048 on 4 of 64 cores", 150_000.0, "ns", 0.375),
            Evidence("BinaryNg 1x1x32x2048 on 16 of 64 cores", 30_000.0, "ns", 0.075),
        ],
    )
    assert ask.saving(ops=ops) == (
        180_000.0,
        "Σ time × (1 − cores ÷ possible) over 2 ops: 200.0 µs → 20.0 µs",
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
    norm = op("LayerNormDeviceOperation", [WIDE], [WIDE], ns=10_000.0, cores=1)
    assert ask.saving(ops=table(norm)).ns == 5_000.0
    weights = tensor(1, 1, 2048, 2048)  # 8.4 MB: 39 µs at 75 % of 288 GB/s
    matmul = op("MatmulDeviceOperation", [WIDE, weights], [WIDE], ns=100_000.0, cores=1)
    saved = 100_000 - 2 * 2048**2 / 288 / 0.75
    assert ask.saving(ops=table(matmul)).ns == pytest.approx(saved)


def test_an_op_that_would_hardly_be_shorter_does_not_count() -> None:
    sharded = op("LayerNormDeviceOperation", [WIDE], [WIDE], ns=6_000.0, cores=16)
    assert ask(ops=table(sharded)) == LIMIT.clean(0.0)  # 5 µs at least


def test_cores_without_a_shard_do_not_work() -> None:
    given = WIDE._replace(memory="L1_WIDTH_SHARDED")
    ops = table(add(64_000.0, cores=64, given=given, attributes=ON_EIGHT))
    assert ask(ops=ops).evidence[0].subject == "BinaryNg 1x1x32x2048 on 8 of 64 cores"
    assert ask.saving(ops=ops).ns == 56_000.0


@pytest.mark.parametrize(
    "left_out",
    [
        op("MatmulDeviceOperation", [WIDE], [WIDE], ns=90_000.0, cores=8, attributes=SHARDED),
        op("AllGatherDeviceOperation", [WIDE], [WIDE], ns=90_000.0, cores=4),
        op("PagedUpdateCacheDeviceOperation", [WIDE], [WIDE], ns=90_000.0, cores=1),
        op("NLPCreateQKVHeadsDecodeDeviceOperation", [WIDE], [WIDE], ns=90_000.0, cores=1),
        op("RotaryEmbeddingDeviceOperation", [WIDE], [WIDE], ns=90_000.0, cores=1),
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
        *("DRAM-sharded", "collective", "cache", "per user", "rows of tiles", "one expert"),
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
    device = Device(0, 64, 8, 8, None, None, None, None, None)
    both = Subject(ops=ops, report=replace(report([]), devices=(device,)))
    assert ask(both) == LIMIT.clean(0.0)
    assert ask(ops=ops) == not_measured("the capture does not tell how many cores there are")


def test_inputs_that_do_not_tell() -> None:
    ops = table(add(5_000.0, cores=None))
    assert ask(ops=ops) == not_measured("the capture does not tell how many cores ops ran on")


def test_shards_on_more_cores_gained_what_was_estimated() -> None:
    """A multiply on shards of 8 cores, then of 24: of 13.8 µs, 8.7 µs were gained."""
    before, after = (
        {each.subject.partition(" on ")[2]: each.value for each in ask(region_of(name)).evidence}
        for name in ("gemma_sliding_decode_replicated_v1.csv", "gemma_sliding_decode_final.csv")
    )
    estimated = before["8 of 110 cores"]
    gained = 13_842.0 - 5_177.0
    assert "8 of 110 cores" not in after
    assert estimated is not None
    assert 0.5 <= estimated / gained <= 2
