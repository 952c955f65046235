"""Rules on memory and sharding."""

from __future__ import annotations

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import (
    BufferType,
    CoreRange,
    Device,
    Shard,
)
from tests.analysis.rules.answers import (
    Ask,
    Evidence,
    Subject,
    clean,
    found,
    limit,
    not_measured,
)
from tests.analysis.rules.reports import Operation, Report, record, report
from tests.analysis.rules.tables import OpTable, Tensor, op, table, tensor

ttp302 = Ask("TTP302")
TALL = record(1, 1, 1, 1024, 32, memory="L1_HEIGHT_SHARDED")
SPREAD = record(3, 1, 1, 1024, 32)


def test_a_move_without_a_graph_is_told_by_its_tensors() -> None:
    first = TALL._replace(shard=Shard((32, 32), (CoreRange(0, 0, 7, 3),)))
    other = TALL._replace(id=2, shard=Shard((64, 32), (CoreRange(0, 0, 7, 1),)))
    moves = [Operation(1, "ttnn.to_memory_config", inputs=(1,), outputs=(2,))]
    assert ttp302(report=report(moves, [first, other])) == found(
        "1 reshard",
        value=1.0,
        limit=0,
        unit="reshards",
        evidence=[Evidence("ttnn.to_memory_config (operation 1) 1x1x1024x32, HEIGHT → HEIGHT")],
    )
    kept = Subject(report=report(moves, [first, first._replace(id=2)]))
    spread = Subject(report=report(moves, [first, SPREAD._replace(id=2)]))
    unavailable = not_measured("what ran inside is not given by 1 of 1 operation")
    assert ttp302(kept) == ttp302(spread) == unavailable


ttp303 = Ask("TTP303")
LIMIT_303 = limit(0.02, "of a step")
INPUT_303 = tensor(1, 1, 64, 64)
#: 2.88 MB: 10 µs at 288 GB/s.
FAR = tensor(1, 1, 1200, 1200)
WEIGHTS = tensor(1, 1, 1200, 1216)
GIVEN = tensor(1, 1, 1200, 1216, memory="L1_INTERLEAVED")


def chain(handed: Tensor, *, ns: float = 50_000.0, first_ns: float = 25_000.0) -> OpTable:
    """An op makes what the next one reads; the last gives what nobody reads."""
    return table(
        op("UnaryDeviceOperation", [INPUT_303], [handed], ns=min(ns, first_ns)),
        op("MatmulDeviceOperation", [handed, WEIGHTS], [GIVEN], ns=ns),
        op("UnaryDeviceOperation", [GIVEN], [WEIGHTS._replace(dtype="FLOAT32")], ns=100_000.0),
    )


def test_what_is_written_and_read_again() -> None:
    part = 18_000 / 175_000
    assert ttp303(ops=chain(FAR)) == LIMIT_303.found(
        part,
        "5.493 MiB of activations go through DRAM, in 2 ops: up to 10.3 % of a step",
        [
            Evidence("Matmul 1x1x1200x1200 @ 1200x1216", 9_000.0, "ns", part / 2),
            Evidence("Unary 1x1x64x64", 9_000.0, "ns", part / 2),
        ],
    )
    assert ttp303.saving(ops=chain(FAR)) == (
        18_000.0,
        "5.493 MiB ÷ 288 GB/s, less a tenth, but not below each op's minimum: 18.0 µs",
    )


ttp304 = Ask("TTP304")
LIMIT_304 = limit(0.1, "of L1")
DEVICE_304 = Device(0, 64, 1000, None, 1100)


def on_device(*operations: Operation, device: Device = DEVICE_304) -> Report:
    """Return a report of one device whose cores have 1000 bytes to give."""
    return replace(report(operations, [record(1, 1, 1, 64, 32)]), devices=(device, device))


def running(number: int, tensors: int, circular: int | None) -> Operation:
    """Return an operation with what it takes of L1."""
    return Operation(
        number,
        "ttnn.conv2d",
        inputs=(1,),
        device_operations=("Conv2dDeviceOperation",),
        cb_bytes_per_core=circular,
        bytes_per_bank={BufferType.L1: tensors, BufferType.DRAM: 10**6, BufferType.L1_SMALL: 500},
    )


def test_the_fullest_operation_is_named() -> None:
    full = on_device(running(1, 600, 350), running(2, 100, 100), running(3, 500, 410))
    assert ttp304(report=full) == LIMIT_304.found(
        1 - 950 / 1000,
        "ttnn.conv2d (operation 1) 1x1x64x32 leaves 5.0 % of a core's L1",
        [
            Evidence("ttnn.conv2d (operation 1) 1x1x64x32", 950.0, "bytes"),
            Evidence("ttnn.conv2d (operation 3) 1x1x64x32", 910.0, "bytes"),
        ],
    )


def test_exactly_enough_room_is_clean() -> None:
    asked = Subject(report=on_device(running(1, 500, 250), Operation(2, "ttnn.deallocate")))
    assert ttp304.with_limits(free=0.25)(asked) == clean(0.25, limit=0.25, unit="of L1")
