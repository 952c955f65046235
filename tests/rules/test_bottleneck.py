from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist import bottleneck
from pytest_ttnn_perf.analysis.checklist.bottleneck import Bottleneck, BottleneckKind
from pytest_ttnn_perf.analysis.readers.ttlang import Roofline, ThreadWork
from pytest_ttnn_perf.core.finding import Subject
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Source
from tests.rules.kernel_logs import printed, program
from tests.rules.observations import io_measured, measured, timed
from tests.rules.tables import Op, op, table, tensor

#: 32 MiB in DRAM: read in 0.12 ms at 288 GB/s.
WEIGHTS = tensor(1, 1, 4096, 4096)
ROWS = tensor(1, 1, 32, 4096, memory="L1_INTERLEAVED")
SMALL = tensor(1, 1, 32, 32, memory="L1_INTERLEAVED")
WAITING = (op("Add", ns=400, gap_ns=9, replay=(1, 1)), op("Add", ns=400, gap_ns=800, replay=(1, 1)))
MEMORY, COMPUTE = Roofline("memory", 18, 779, "N", 636, "T"), Roofline("compute", 30, 70, "N", 100)


def bottleneck_of(subject: Subject) -> Bottleneck | None:
    return bottleneck.bottleneck_of(subject, {})


def test_transfers_come_first() -> None:
    subject = replace(io_measured(4e6, 6e6, 6e6), ops=table(*WAITING))
    assert bottleneck_of(subject) == Bottleneck(
        BottleneckKind.TRANSFER,
        "transfer-bound: transfers take 6 ms, compute 4 ms: 1.50 times as long",
        1.5,
        1.0,
        "times the compute time",
    )


def test_gaps_come_next() -> None:
    rows = (WAITING[0], WAITING[1]._replace(gap_ns=1200))
    assert bottleneck_of(Subject(ops=table(*rows))) == Bottleneck(
        BottleneckKind.GAPS,
        "gaps between ops: devices wait 60.0 % of the time for their next op",
        0.6,
        0.5,
        "of the time",
    )


def test_gaps_that_are_not_most_of_the_time_are_one_part_of_it() -> None:
    assert bottleneck_of(Subject(ops=table(*WAITING))) == Bottleneck(
        BottleneckKind.MIXED, "mixed: gaps 50 %, other ops 50 %", 0.5, 0.5, "of a step"
    )


def windowed(*gaps_ns: float) -> Subject:
    rows = (op("UnaryDeviceOperation", ns=10_000, gap_ns=gap) for gap in gaps_ns)
    return Subject(ops=replace(table(*rows), windowed=True))


def test_a_host_that_is_late_for_each_op() -> None:
    assert bottleneck_of(windowed(9e9, 30_000, 30_000, 30_000)) == Bottleneck(
        BottleneckKind.HOST,
        "host-bound: devices wait at most 69.2 % of the time for their next op, longer than "
        "without the profiler",
        90 / 130,
        0.5,
        "of the time",
    )


def test_two_long_gaps_do_not_make_a_model_host_bound() -> None:
    found = bottleneck_of(windowed(9e9, 90_000, 600, 600, 600, 90_000))
    assert found is not None
    assert found.kind is BottleneckKind.ONE_KIND


@pytest.mark.parametrize("device_ns", [0.4e6, 0.7e6])
def test_the_time_without_a_profiler_decides_over_gaps(device_ns: float) -> None:
    device = timed(device_ns, name=KERNEL_TIME, source=Source.DEVICE)
    found = bottleneck_of(replace(measured(timed(1e6), device), ops=table(*WAITING)))
    assert found is not None
    if device_ns > 0.5e6:
        assert found.kind is BottleneckKind.MIXED
    else:
        assert found == Bottleneck(
            BottleneckKind.HOST,
            "host-bound: of the 1 ms of a call, the slowest device works 0.4 ms: 60.0 % goes by "
            "without a kernel",
            0.6,
            0.2,
            "of the wall time",
        )


def test_kernels_on_few_cores() -> None:
    assert bottleneck_of(printed(program(cores=16), roofline=MEMORY)) == Bottleneck(
        BottleneckKind.CORES,
        "underutilised cores: programs run on 25.0 % of the cores, weighted by their time",
        0.25,
        0.5,
        "of the cores",
    )


def test_kernels_with_small_transfers() -> None:
    assert bottleneck_of(printed(program(sizes={512: None}), roofline=MEMORY)) == Bottleneck(
        BottleneckKind.SMALL_TRANSFERS,
        "small transfers: 100.0 % of 512 transfers move less than a tile, or a tile in programs "
        "that wait after every 2 transfers or fewer",
        1.0,
        0.5,
        "of the transfers",
    )


def test_cores_of_programs_that_mostly_wait_hold_nothing_back() -> None:
    waits = program(1, cores=2, cycles=2_000_000, bytes_read=262_144, bytes_written=262_144)
    found = bottleneck_of(printed(waits, program(2, cores=4, cycles=50_000)))
    assert found is None or found.kind is not BottleneckKind.CORES


def test_kernels_that_read_again_and_again() -> None:
    subject = printed(program(bytes_read=12 << 20, sizes={4096: None}), roofline=MEMORY)
    assert bottleneck_of(subject) == Bottleneck(
        BottleneckKind.DRAM_TRAFFIC,
        "excess DRAM traffic: for each byte that they write to DRAM, programs read 12.0",
        12.0,
        4.0,
        "bytes read per byte written",
    )


def test_kernels_whose_threads_all_wait() -> None:
    threads = (ThreadWork("NCRISC", 1906, 1127, 779), ThreadWork("TRISC_1", 2106, 1470, 636))
    found = bottleneck_of(printed(roofline=replace(MEMORY, threads=threads)))
    assert found is not None
    assert found.kind is BottleneckKind.TURNS
    assert found.sentence == (
        "waiting threads: even NCRISC, which waits least, waits for 59.1 % of its cycles"
    )


def matmul(ns: float, *, cores: int = 64, fidelity: str = "HiFi4") -> Op:
    """4096 by 4096 weights from DRAM: 116.5 µs at full bandwidth, 16.3 µs of computing."""
    return op("Matmul", [ROWS, WEIGHTS], [ROWS], ns=ns, cores=cores, fidelity=fidelity)


def test_matmuls_of_few_rows_wait_for_their_weights() -> None:
    assert bottleneck_of(Subject(ops=table(matmul(150_000)))) == Bottleneck(
        BottleneckKind.WEIGHTS,
        "weight reads: 100.0 % of a step goes into matmuls of up to 32 rows, which read their "
        "weights at 77.7 % of the DRAM bandwidth, near what real ones reach",
        1.0,
        0.5,
        "of a step",
    )


def test_the_cores_at_the_banks_of_dram_can_be_what_holds_matmuls_up() -> None:
    config = "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig()'}"
    row = matmul(400_000)._replace(attributes=config, fidelity="HiFi4")
    small = tensor(1, 1, 4096, 4096, dtype="BFLOAT4_B")
    row = row._replace(signature=row.signature._replace(inputs=(ROWS, small)), kernel_ns=110_000)
    found = bottleneck_of(Subject(ops=table(row)))
    assert found is not None
    assert found.sentence == (
        "weight reads: 100.0 % of a step goes into matmuls of up to 32 rows, which read their "
        "weights at 29.8 % of the DRAM bandwidth, held up by computing on the 12 cores of "
        "DRAM-sharded matmuls"
    )


#: 128 rows by the same weights: more than a decode step has.
MANY_ROWS = tensor(1, 1, 128, 4096, memory="L1_INTERLEAVED")


def long_matmul(ns: float, *, cores: int = 64) -> Op:
    return op("Matmul", [MANY_ROWS, WEIGHTS], [MANY_ROWS], ns=ns, cores=cores, fidelity="HiFi4")


def test_ops_that_wait_for_dram() -> None:
    assert bottleneck_of(Subject(ops=table(long_matmul(150_000)))) == Bottleneck(
        BottleneckKind.MEMORY,
        "memory-bound: 100.0 % of a step goes into ops that use 65.0 % or more of the DRAM "
        "bandwidth",
        1.0,
        0.5,
        "of a step",
    )


def test_ops_that_fetch_activations_from_dram() -> None:
    passed = tensor(1, 1, 2048, 2048)  # 29.1 µs at full bandwidth
    rows = [op("Add", [passed], [passed], ns=60_000) for _ in range(2)]
    found = bottleneck_of(Subject(ops=table(*rows)))
    assert found is not None
    assert (found.kind, found.unit) == (BottleneckKind.DRAM_TRAFFIC, "of a step")
    assert found.value == pytest.approx(0.9 * 2 * 29_127 / 120_000, rel=1e-3)
    assert found.sentence.startswith("excess DRAM traffic: 16.00 MiB of activations go through")


def test_ops_on_few_cores() -> None:
    # The 4096 tiles of 1024 rows: for one row of them, DRAM-sharded weights are as good.
    wide = tensor(1, 1, 1024, 4096, memory="L1_INTERLEAVED")
    slow = op("BinaryNg", [wide], [wide], ns=3e6, cores=8)
    assert bottleneck_of(Subject(ops=table(slow))) == Bottleneck(
        BottleneckKind.CORES,
        "underutilised cores: 100.0 % of a step goes into ops that could run on more cores",
        1.0,
        0.5,
        "of a step",
    )


def test_ops_that_compute_all_the_time() -> None:
    assert bottleneck_of(Subject(ops=table(long_matmul(4.4e6, cores=1)))) == Bottleneck(
        BottleneckKind.COMPUTE,
        "compute-bound: 100.0 % of a step goes into ops at 65.0 % or more of what their cores "
        "compute",
        1.0,
        0.5,
        "of a step",
    )


def test_one_kind_of_op_that_takes_most_of_a_step_is_named_with_what_it_reaches() -> None:
    search = op("ArgMaxDeviceOperation", [SMALL], [SMALL], ns=300_000)
    other = op("ReduceDeviceOperation", [SMALL], [SMALL], ns=300_000)
    found = bottleneck_of(Subject(ops=table(search, other, long_matmul(200_000))))
    assert found is not None
    assert found.kind is BottleneckKind.ONE_KIND
    assert found.value == pytest.approx(0.75)
    assert found.sentence == (
        "reductions and searches: 75.0 % of a step (ArgMax 37.5 %, Reduce 37.5 %)"
    )
    slow = bottleneck_of(Subject(ops=table(long_matmul(1e6))))
    assert slow is not None
    assert slow.sentence == (
        "matmuls: 100.0 % of a step (Matmul), at 6.5 % of what their cores compute and 11.7 % of "
        "the DRAM bandwidth"
    )


def test_what_a_step_goes_into_is_all_of_it() -> None:
    kinds = ("Unary", "AllGather", "LayerNorm", "SDPA", "Reshard", "Conv2d", "ArgMax", "Foo")
    rows = [op(kind, ns=1000.0 + at) for at, kind in enumerate(kinds)]
    found = bottleneck_of(Subject(ops=table(*rows)))
    assert found is not None
    parts = [int(part.split()[-2]) for part in found.sentence.split(", ")]
    assert found.sentence.startswith("mixed: other ops 13 %, ")
    assert found.sentence.endswith(", others 36 %")
    assert sum(parts) == 100


@pytest.mark.parametrize("subject", [Subject(), measured(), printed(program())])
def test_what_cannot_be_told(subject: Subject) -> None:
    assert bottleneck_of(subject) is None


def test_what_binds_ops_must_take_most_of_the_time() -> None:
    bound, other = long_matmul(150_000), op("Unary", [SMALL], [SMALL], ns=150_000)
    mixed = bottleneck_of(Subject(ops=table(bound, other)))
    assert mixed is not None
    assert mixed.sentence == "mixed: elementwise ops 50 %, matmuls 50 %"
    found = bottleneck_of(Subject(ops=table(bound, bound, other)))
    assert found is not None
    assert (found.kind, found.value) == (BottleneckKind.MEMORY, 2 / 3)


def test_threads_that_wait_for_each_other_are_bound_by_neither() -> None:
    def held_by(waited: int) -> BottleneckKind | None:
        threads = tuple(ThreadWork(name, 1000, waited, 1000 - waited) for name in ("N", "T"))
        kernel = program(bytes_read=4 << 20, sizes={4096: None})
        found = bottleneck_of(printed(kernel, roofline=replace(MEMORY, threads=threads)))
        return found.kind if found is not None else None

    assert held_by(510) is BottleneckKind.TURNS
    assert held_by(500) is BottleneckKind.MEMORY


def test_many_reads_do_not_matter_to_a_kernel_that_is_balanced() -> None:
    kernel = program(bytes_read=12 << 20, sizes={4096: None})
    assert bottleneck_of(printed(kernel, roofline=Roofline("balanced", 0, 9, "N", 9))) is None
