"""resharding."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import CoreRange, OperationError, Reshard, Shard
from tests.rules.answers import Ask, Evidence, Subject, clean, found, limit, not_measured
from tests.rules.convolving import NOT_ASKED
from tests.rules.reports import Operation, record, report
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP302")
LIMIT = limit(0.03, "of a step")
INPUT = tensor(1, 1, 32, 64, memory="L1_WIDTH_SHARDED")
TALL = record(1, 1, 1, 1024, 32, memory="L1_HEIGHT_SHARDED")
BLOCK = record(2, 1, 1, 1024, 32, memory="L1_BLOCK_SHARDED")
SPREAD = record(3, 1, 1, 1024, 32)


@pytest.mark.parametrize(
    "code",
    [
        "ReshardDeviceOperation",
        "InterleavedToShardedDeviceOperation",
        "ShardedToInterleavedPartialDeviceOperation",
        "sharded_to_interleaved",
    ],
)
def test_moves_that_take_long(code: str) -> None:
    moves = [op(code, [INPUT], ns=60.0), op(code, [INPUT], ns=40.0)]
    ops = table(op("Matmul", ns=800.0), *moves, op("Matmul", ns=100.0))
    name = code.removesuffix("DeviceOperation")
    assert ask(ops=ops) == LIMIT.found(
        0.1,
        "10.0 % of a step only moves tensors, in 2 ops",
        [Evidence(f"2 x {name} 1x1x32x64", 100.0, "ns", 0.1)],
    )
    assert ask.saving(ops=ops) == (100.0, "at most the time of 2 moves: 0.1 µs")


def test_a_move_is_named_with_its_ends() -> None:
    far = INPUT._replace(memory="DRAM_INTERLEAVED")
    ops = table(
        op("LayerNormDeviceOperation", [INPUT], [INPUT]),
        op("ShardedToInterleavedDeviceOperation", [INPUT], [far]),
        op("MatmulDeviceOperation", [far, far], [far]),
        op("CopyDeviceOperation", [far], [INPUT]),
        op("CopyDeviceOperation", [INPUT], [INPUT]),
    )
    assert [each.subject for each in ask(ops=ops).evidence] == [
        "Copy 1x1x32x64 DRAM → L1_WIDTH_SHARDED, between Matmul and Copy",
        "ShardedToInterleaved 1x1x32x64 L1_WIDTH_SHARDED → DRAM, between LayerNorm and Matmul",
    ]


@pytest.mark.parametrize("ns", [3.0, 0.0])
def test_up_to_the_limit_is_clean(ns: float) -> None:
    ops = table(op("Matmul", ns=99.0 - ns), op("ReshardDeviceOperation", ns=ns), op("Add", ns=1.0))
    assert ask(ops=ops) == LIMIT.clean(ns / 100)


def test_what_begins_and_ends_a_step_does_not_count() -> None:
    ends = op("InterleavedToShardedDeviceOperation", [INPUT])
    assert ask(ops=table(ends, op("Matmul"), ends)) == LIMIT.clean(0.0)


def test_what_comes_in_may_be_moved_far_too_slowly() -> None:
    rows = tensor(1, 1, 1200, 1200, layout="ROW_MAJOR")  # 20 µs to read and write it
    move = op("InterleavedToShardedDeviceOperation", [rows], [rows], ns=1e6)
    ops = table(move, op("Matmul", [rows], ns=1e6))
    assert ask.saving(ops=ops).ns == pytest.approx(1e6 - 60_000)
    assert (ask(ops=ops).reason or "").endswith(", 1 slow input conversion among them")


def test_what_to_do_names_both_ends_and_gaps_go_with_moves() -> None:
    near = INPUT._replace(memory="DRAM_INTERLEAVED")
    rows = (
        op("MatmulDeviceOperation", [INPUT, INPUT], [near], ns=9e3),
        op("CopyDeviceOperation", [near], [INPUT], ns=2e3, gap_ns=700.0),
        op("LayerNormDeviceOperation", [INPUT], [INPUT], ns=9e3),
    )
    assert ask.fix(ops=table(*rows)) == (
        "Have Matmul write the memory config that LayerNorm reads."
    )
    assert ask.saving(ops=table(*rows)).ns == 2_000.0
    traced = table(*(row._replace(trace=0, replay=1) for row in rows))
    assert ask.saving(ops=traced).ns == 2_700.0


NORM = op("LayerNormDeviceOperation", [INPUT], [INPUT])
SHARDED = op(
    "MatmulDeviceOperation",
    [INPUT, INPUT],
    [INPUT],
    attributes="{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(a=1)'}",
)


@pytest.mark.parametrize(
    ("producer", "consumer", "fix"),
    [
        (NORM, "BinaryNg", "Have BinaryNg read the shards that LayerNorm writes."),
        (SHARDED, "BinaryNg", "Have BinaryNg read the shards that Matmul writes."),
        (SHARDED, "ReduceScatter", "Look at the exchange that follows first (TTP703)."),
        (SHARDED, "Copy", "Merge consecutive moves into one, or keep one sharding throughout."),
    ],
)
def test_ops_that_can_only_write_their_own_shards(producer: Op, consumer: str, fix: str) -> None:
    far = INPUT._replace(memory="DRAM_INTERLEAVED")
    move = op("ShardedToInterleavedDeviceOperation", [INPUT], [far])
    ops = table(producer, move, op(f"{consumer}DeviceOperation", [far], [far]))
    assert ask.fix(ops=ops) == fix


def test_stale_shapes_tell_no_ends() -> None:
    huge, near = tensor(1, 1, 32000, 3200), tensor(1, 1, 320, 320)
    stale = op("BinaryNgDeviceOperation", [huge], [huge], ns=100.0)  # far above the bandwidth
    move = op("CopyDeviceOperation", [near], [near._replace(memory="L1_INTERLEAVED")], ns=9e3)
    ops = table(
        op("MatmulDeviceOperation", [near, near], [near], ns=9e3),
        stale,
        move,
        op("Softmax", [near], [near], ns=9e3),
        op("Unary", [near._replace(memory="L1_INTERLEAVED")], ns=9e3),
    )
    (found,) = ask(ops=ops).evidence
    assert found.subject == "Copy 1x1x320x320 DRAM → L1, after BinaryNg"


def test_a_table_comes_before_a_report() -> None:
    moved = report([Operation(1, "ttnn.conv2d", reshard=Reshard.HIDDEN)])
    assert ask(Subject(ops=table(op("Matmul")), report=moved)) == LIMIT.clean(0.0)


def test_reshards_of_a_report() -> None:
    operations = [
        Operation(4, "ttnn.to_memory_config", inputs=(1,), outputs=(2,), reshard=Reshard.EXPLICIT),
        Operation(5, "ttnn.conv2d", inputs=(2,), outputs=(3,), reshard=Reshard.HIDDEN),
        Operation(6, "ttnn.relu", inputs=(3,), outputs=(3,), reshard=Reshard.NONE),
    ]
    asked = Subject(report=report(operations, [TALL, BLOCK, SPREAD]))
    assert ask(asked) == found(
        "2 reshards, 1 hidden inside another operation",
        value=2.0,
        limit=0,
        unit="reshards",
        evidence=[
            Evidence("ttnn.to_memory_config (operation 4) 1x1x1024x32, HEIGHT → BLOCK"),
            Evidence("ttnn.conv2d (operation 5) 1x1x1024x32, BLOCK → interleaved"),
        ],
    )
    assert ask.with_limits(reshards=2)(asked) == clean(2.0, limit=2, unit="reshards")


def test_a_move_without_a_graph_is_told_by_its_tensors() -> None:
    first = TALL._replace(shard=Shard((32, 32), (CoreRange(0, 0, 7, 3),)))
    other = TALL._replace(id=2, shard=Shard((64, 32), (CoreRange(0, 0, 7, 1),)))
    moves = [Operation(1, "ttnn.to_memory_config", inputs=(1,), outputs=(2,))]
    assert ask(report=report(moves, [first, other])) == found(
        "1 reshard",
        value=1.0,
        limit=0,
        unit="reshards",
        evidence=[Evidence("ttnn.to_memory_config (operation 1) 1x1x1024x32, HEIGHT → HEIGHT")],
    )
    kept = Subject(report=report(moves, [first, first._replace(id=2)]))
    spread = Subject(report=report(moves, [first, SPREAD._replace(id=2)]))
    unavailable = not_measured("what ran inside is not given by 1 of 1 operation")
    assert ask(kept) == ask(spread) == unavailable


def test_what_failed_moved_nothing_and_what_was_asked_for_is_said() -> None:
    config = NOT_ASKED._replace(reshard_if_not_optimal=True)
    conv = Operation(
        5, "ttnn.conv2d", inputs=(1,), outputs=(2,), reshard=Reshard.HIDDEN, conv=config
    )
    made = report([conv], [TALL, BLOCK])
    (evidence,) = ask(report=made).evidence
    assert evidence == Evidence(
        "ttnn.conv2d (operation 5) 1x1x1024x32, HEIGHT → BLOCK, by reshard_if_not_optimal"
    )
    failed = replace(made, errors=(OperationError(5, "ttnn.conv2d", None, "no room"),))
    assert ask(report=failed) == clean(0.0, limit=0, unit="reshards")


def test_a_report_without_reshards() -> None:
    asked = Subject(report=report([Operation(1, "ttnn.relu", reshard=Reshard.NONE)]))
    assert ask(asked) == clean(0.0, limit=0, unit="reshards")
