"""Bottlenecks of small subjects: kind, value and limit; wording is in golden checks."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.bottleneck import BottleneckKind as Kind
from pytest_ttnn_perf.analysis.checklist.bottleneck import bottleneck_of
from pytest_ttnn_perf.analysis.readers.ttlang import Roofline, ThreadWork
from pytest_ttnn_perf.core.finding import Subject
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Source
from tests.analysis.rules.kernel_logs import printed, program
from tests.analysis.rules.observations import io_measured, measured, timed
from tests.analysis.rules.tables import Op, op, table, tensor

#: 32 MiB in DRAM: read in 0.12 ms at 288 GB/s.
WEIGHTS = tensor(1, 1, 4096, 4096)
NARROW = tensor(1, 1, 4096, 4096, dtype="BFLOAT4_B")
ROWS = tensor(1, 1, 32, 4096, memory="L1_INTERLEAVED")
#: More rows than a decode step has.
MANY_ROWS = tensor(1, 1, 128, 4096, memory="L1_INTERLEAVED")
TALL = tensor(1, 1, 1024, 4096, memory="L1_INTERLEAVED")
SMALL = tensor(1, 1, 32, 32, memory="L1_INTERLEAVED")
PASSED = tensor(1, 1, 2048, 2048)  # 29.1 µs at full bandwidth
WAITING = (op("Add", ns=400, gap_ns=9, replay=(1, 1)), op("Add", ns=400, gap_ns=800, replay=(1, 1)))
MEMORY = Roofline("memory", 18, 779, "N", 636, "T")
SHARDED = "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig()'}"
KINDS = ("Unary", "AllGather", "LayerNorm", "SDPA", "Reshard", "Conv2d", "ArgMax", "Foo")


def of(*rows: Op) -> Subject:
    return Subject(ops=table(*rows))


def windowed(*gaps_ns: float) -> Subject:
    rows = (op("UnaryDeviceOperation", ns=10_000, gap_ns=gap) for gap in gaps_ns)
    return Subject(ops=replace(table(*rows), windowed=True))


def called(device_ns: float) -> Subject:
    """Return a call of 1 ms, and a capture with gaps."""
    device = timed(device_ns, name=KERNEL_TIME, source=Source.DEVICE)
    return replace(measured(timed(1e6), device), ops=table(*WAITING))


def waits(waited: int) -> Subject:
    """Return a kernel whose threads all wait for a part of 1000 cycles."""
    threads = tuple(ThreadWork(name, 1000, waited, 1000 - waited) for name in ("N", "T"))
    kernel = program(bytes_read=4 << 20, sizes={4096: None})
    return printed(kernel, roofline=replace(MEMORY, threads=threads))


def matmul(ns: float, *, cores: int = 64, rows: object = ROWS, **fields: object) -> Op:
    """4096 by 4096 weights from DRAM: 116.5 µs at full bandwidth, 16.3 µs of computing."""
    weights = fields.pop("weights", WEIGHTS)
    row = op("Matmul", [rows, weights], [rows], ns=ns, cores=cores, fidelity="HiFi4")  # type: ignore[list-item]
    return row._replace(**fields)  # type: ignore[arg-type]


LONG = matmul(150_000, rows=MANY_ROWS)
ELEMENTWISE = op("Unary", [SMALL], [SMALL], ns=150_000)
READS_AGAIN = program(bytes_read=12 << 20, sizes={4096: None})


@pytest.mark.parametrize(
    ("subject", "kind", "value", "words"),
    [
        (replace(io_measured(4e6, 6e6, 6e6), ops=table(*WAITING)), Kind.TRANSFER, 1.5, "6 ms"),
        (of(WAITING[0], WAITING[1]._replace(gap_ns=1200)), Kind.GAPS, 0.6, "wait 60.0 %"),
        (of(*WAITING), Kind.MIXED, 0.5, "mixed: gaps 50 %, other ops 50 %"),
        (windowed(9e9, 30_000, 30_000, 30_000), Kind.HOST, 90 / 130, "at most 69.2 %"),
        (windowed(9e9, 90_000, 600, 600, 600, 90_000), Kind.ONE_KIND, 1.0, "(Unary)"),
        # The time without a profiler decides over gaps.
        (called(0.4e6), Kind.HOST, 0.6, "the slowest device works 0.4 ms"),
        (called(0.7e6), Kind.MIXED, 0.5, "gaps 50 %"),
        # Kernels.
        (printed(program(cores=16), roofline=MEMORY), Kind.CORES, 0.25, "25.0 % of the cores"),
        (printed(program(sizes={512: None}), roofline=MEMORY), Kind.SMALL_TRANSFERS, 1.0, "512"),
        (printed(READS_AGAIN, roofline=MEMORY), Kind.DRAM_TRAFFIC, 12.0, "programs read 12.0"),
        (waits(510), Kind.TURNS, 0.51, "even N, which waits least"),
        (waits(500), Kind.MEMORY, 0.18, "computing takes 18.0 % fewer cycles"),
        (
            printed(program(sizes={2048: None}), roofline=Roofline("compute", 30, 70, "N", 100)),
            Kind.COMPUTE, 0.3, "moving data takes 30.0 % fewer cycles",
        ),
        # Matmuls of few rows wait for their weights, or for the cores at the banks of DRAM.
        (of(matmul(150_000)), Kind.WEIGHTS, 1.0, "77.7 % of the DRAM bandwidth, near what"),
        (of(matmul(1e6, cores=8)), Kind.WEIGHTS, 1.0, "at 11.7 % of the DRAM bandwidth"),
        (
            of(matmul(110_000, attributes=SHARDED, weights=NARROW)),
            Kind.WEIGHTS, 1.0, "held up by computing on the 12 cores of DRAM-sharded matmuls",
        ),
        (of(LONG), Kind.MEMORY, 1.0, "65.0 % or more of the DRAM bandwidth"),
        (of(LONG, LONG, ELEMENTWISE), Kind.MEMORY, 2 / 3, "66.7 % of a step"),
        (of(LONG, ELEMENTWISE), Kind.MIXED, 0.5, "mixed: elementwise ops 50 %, matmuls 50 %"),
        (
            of(*[op("Add", [PASSED], [PASSED], ns=60_000)] * 2),
            Kind.DRAM_TRAFFIC, 0.9 * 2 * 29_127 / 120_000, "16.00 MiB of activations go through",
        ),
        (of(op("BinaryNg", [TALL], [TALL], ns=3e6, cores=8)), Kind.CORES, 1.0, "more cores"),
        (of(matmul(4.4e6, cores=1, rows=MANY_ROWS)), Kind.COMPUTE, 1.0, "65.0 % or more of what"),
        (
            of(
                op("ArgMaxDeviceOperation", [SMALL], [SMALL], ns=300_000),
                op("ReduceDeviceOperation", [SMALL], [SMALL], ns=300_000),
                matmul(200_000, rows=MANY_ROWS),
            ),
            Kind.ONE_KIND, 0.75, "searches: 75.0 % of a step (ArgMax 37.5 %, Reduce 37.5 %)",
        ),
        (
            of(matmul(1e6, rows=MANY_ROWS)),
            Kind.ONE_KIND, 1.0, "at 6.5 % of what their cores compute and 11.7 % of the DRAM",
        ),
        (
            of(*(op(kind, ns=1000.0 + at) for at, kind in enumerate(KINDS))),
            Kind.MIXED, 1007 / 8028, "mixed: other ops 13 %, ",
        ),
        (
            Subject(ops=table(op("Matmul", [SMALL, WEIGHTS], [SMALL], ns=1e5), arch="quasar")),
            Kind.ONE_KIND, 1.0, "matmuls: 100.0 % of a step (Matmul)",
        ),
    ],
)  # fmt: skip
def test_what_holds_back(subject: Subject, kind: Kind, value: float, words: str) -> None:
    found = bottleneck_of(subject, {})
    assert found is not None
    assert found.kind is kind
    assert found.value == pytest.approx(value, rel=1e-3)
    assert words in found.sentence


@pytest.mark.parametrize(
    "subject",
    [
        Subject(), measured(), printed(program()),
        printed(READS_AGAIN, roofline=Roofline("balanced", 0, 9, "N", 9)),
        # More cores would wait as well.
        printed(program(1, cores=2, cycles=2_000_000, bytes_read=262_144, bytes_written=262_144),
                program(2, cores=4, cycles=50_000)),
    ],
)  # fmt: skip
def test_what_cannot_be_told(subject: Subject) -> None:
    assert bottleneck_of(subject, {}) is None
