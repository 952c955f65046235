"""Rules on layouts, padding, memory and sharding."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.readers.report_db import CoreRange, Shard
from pytest_ttnn_perf.core.finding import Subject
from tests.analysis.rules.cases import CLEAN, FOUND, UNKNOWN, Case, of_cases, of_ops
from tests.analysis.rules.reports import Operation, record, report
from tests.analysis.rules.tables import op, tensor

TILES, ROWS = tensor(1, 1, 32, 64), tensor(1, 1, 32, 64, layout="ROW_MAJOR")
BINARY, UNARY = "BinaryNgDeviceOperation", "UnaryDeviceOperation"
#: 32 users, each with a tile of its own for a single row.
APART = tensor(1, 32, 32, 64, logical=(1, 32, 1, 64))
BROUGHT = op("TilizeWithValPaddingDeviceOperation", [TILES], [APART])
EXPERTS = op("MatmulDeviceOperation", [APART, tensor(1, 32, 64, 64)], [APART])
CONVERTED = (
    op("Matmul", ns=45.0),
    op("TilizeDeviceOperation", [TILES], ns=10.0),
    *[op("UntilizeDeviceOperation", [TILES], ns=20.0)] * 2,
    op("Matmul", ns=5.0),
)
#: An op makes what the next one reads: 2.88 MB, 10 µs at 288 GB/s.
FAR, WEIGHTS = tensor(1, 1, 1200, 1200), tensor(1, 1, 1200, 1216)
GIVEN = WEIGHTS._replace(memory="L1_INTERLEAVED")
HANDED_ON = (
    op(UNARY, [tensor(1, 1, 64, 64)], [FAR], ns=25_000.0),
    op("MatmulDeviceOperation", [FAR, WEIGHTS], [GIVEN], ns=50_000.0),
    op(UNARY, [GIVEN], [WEIGHTS._replace(dtype="FLOAT32")], ns=100_000.0),
)
TALL = record(1, 1, 1, 1024, 32, memory="L1_HEIGHT_SHARDED")
FIRST = TALL._replace(shard=Shard((32, 32), (CoreRange(0, 0, 7, 3),)))
OTHER = TALL._replace(id=2, shard=Shard((64, 32), (CoreRange(0, 0, 7, 1),)))
MOVES = [Operation(1, "ttnn.to_memory_config", inputs=(1,), outputs=(2,))]


CASES = [
    Case("TTP202", of_ops(BROUGHT), FOUND, 31 / 32),
    # What is brought into the shape that experts want is no advice.
    Case("TTP202", of_ops(BROUGHT, EXPERTS), CLEAN, 0.0),
    Case("TTP203", of_ops(*CONVERTED), FOUND, 0.5, 50.0, "3 layout conversions"),
    Case("TTP302", Subject(report=report(MOVES, [FIRST, OTHER])), FOUND, 1, told="HEIGHT → HEIGHT"),
    Case("TTP302", Subject(report=report(MOVES, [FIRST, FIRST._replace(id=2)])), UNKNOWN),
    Case("TTP302", Subject(report=report(MOVES, [FIRST, record(2, 1, 1, 1024, 32)])), UNKNOWN),
    Case("TTP303", of_ops(*HANDED_ON), FOUND, 18 / 175, 18_000.0, "5.493 MiB of activations"),
]


@of_cases(CASES)
def test_answers(case: Case) -> None:
    case.check()
