from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ttnn_perf.analysis.checklist import progress
from pytest_ttnn_perf.analysis.checklist.progress import Bottleneck, BottleneckKind
from pytest_ttnn_perf.records.finding import Subject
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Source
from pytest_ttnn_perf.records.ttlang import Roofline, ThreadWork
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
    return progress.bottleneck_of(subject, {})


def test_transfers_come_first() -> None:
    subject = replace(io_measured(4e6, 6e6, 6e6), ops=table(*WAITING))
    assert bottleneck_of(subject) == Bottleneck(
        BottleneckKind.TRANSFER,
        "transfer-bound: transfers take 6 ms, compute 4 ms: 1.50 times as long",
        1.5,
        1.0,
        "times the compute time",
    )


def test_the_host_comes_next() -> None:
    assert bottleneck_of(Subject(ops=table(*WAITING))) == Bottleneck(
        BottleneckKind.HOST,
        "host-bound: devices wait 50.0 % of the time for their next op, in 1 replay",
        0.5,
        0.2,
        "of the time",
    )


@pytest.mark.parametrize("device_ns", [0.5e6, 1e6])
def test_the_time_without_a_profiler_decides_over_gaps(device_ns: float) -> None:
    device = timed(device_ns, name=KERNEL_TIME, source=Source.DEVICE)
    found = bottleneck_of(replace(measured(timed(1e6), device), ops=table(*WAITING)))
    if device_ns == 1e6:
        assert found is None
    else:
        assert found == Bottleneck(
            BottleneckKind.HOST,
            "host-bound: of the 1 ms of a call, the slowest device works 0.5 ms: 50.0 % goes by "
            "without a kernel",
            0.5,
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
    assert bottleneck_of(printed(program(sizes={2048: None}), roofline=MEMORY)) == Bottleneck(
        BottleneckKind.SMALL_TRANSFERS,
        "small transfers: 100.0 % of 512 transfers move 2048 B or less",
        1.0,
        0.5,
        "of the transfers",
    )


def test_kernels_that_read_again_and_again() -> None:
    subject = printed(program(bytes_read=12 << 20, sizes={4096: None}), roofline=MEMORY)
    assert bottleneck_of(subject) == Bottleneck(
        BottleneckKind.DRAM_TRAFFIC,
        "excess DRAM traffic: for each byte that they write to DRAM, programs read 12.0",
        12.0,
        4.0,
        "bytes read per byte written",
    )


def test_kernels_that_are_bound_by_memory() -> None:
    subject = printed(program(bytes_read=4 << 20, sizes={4096: None}), roofline=MEMORY)
    found = bottleneck_of(subject)
    assert found is not None
    assert (found.kind, found.value, found.limit) == (BottleneckKind.MEMORY, 0.18, 0.1)
    assert found.sentence.startswith(
        "memory-bound: computing takes 18.0 % fewer cycles than moving"
    )


def test_kernels_whose_threads_all_wait() -> None:
    threads = (ThreadWork("NCRISC", 1906, 1127, 779), ThreadWork("TRISC_1", 2106, 1470, 636))
    found = bottleneck_of(printed(roofline=replace(MEMORY, threads=threads)))
    assert found is not None
    assert found.kind is BottleneckKind.WAITING
    assert found.sentence == (
        "waiting threads: even NCRISC, which waits least, waits for 59.1 % of its cycles"
    )


def test_small_transfers_do_not_matter_to_a_kernel_that_computes() -> None:
    found = bottleneck_of(printed(program(sizes={2048: None}), roofline=COMPUTE))
    assert found is not None
    assert (found.kind, found.value, found.limit) == (BottleneckKind.COMPUTE, 0.3, 0.1)


def matmul(ns: float, *, cores: int = 64, fidelity: str = "HiFi4") -> Op:
    """4096 by 4096 weights from DRAM: 116.5 µs at full bandwidth, 16.3 µs of computing."""
    return op("Matmul", [ROWS, WEIGHTS], [ROWS], ns=ns, cores=cores, fidelity=fidelity)


def test_ops_that_wait_for_dram() -> None:
    assert bottleneck_of(Subject(ops=table(matmul(150_000)))) == Bottleneck(
        BottleneckKind.MEMORY,
        "memory-bound: 100.0 % of the kernel time goes into ops that use 65.0 % or more of the "
        "DRAM bandwidth",
        1.0,
        0.5,
        "of kernel time",
    )


def test_ops_that_fetch_activations_from_dram() -> None:
    passed = tensor(1, 1, 2048, 2048)  # 29.1 µs at full bandwidth
    rows = [op("Add", [passed], [passed], ns=60_000) for _ in range(2)]
    found = bottleneck_of(Subject(ops=table(*rows)))
    assert found is not None
    assert (found.kind, found.limit, found.unit) == (BottleneckKind.DRAM_TRAFFIC, 0.2, "of a step")
    assert found.value == pytest.approx(0.9 * 2 * 29_127 / 120_000, rel=1e-3)
    assert found.sentence == (
        "excess DRAM traffic: 16.00 MiB of activations go through DRAM, in 2 ops: up to 43.7 % of "
        "a step"
    )


def test_ops_on_few_cores() -> None:
    # The 4096 tiles of 1024 rows: for one row of them, DRAM-sharded weights are as good.
    wide = tensor(1, 1, 1024, 4096, memory="L1_INTERLEAVED")
    slow = op("BinaryNg", [wide], [wide], ns=1e6, cores=8)
    assert bottleneck_of(Subject(ops=table(slow))) == Bottleneck(
        BottleneckKind.CORES,
        "underutilised cores: 1,000.0 µs of a step in 1 op that uses less than 50.0 % of the cores "
        "it could",
        1 - 8 / 64,
        0.2,
        "of a step",
    )


def test_ops_that_compute_all_the_time() -> None:
    assert bottleneck_of(Subject(ops=table(matmul(1.1e6, cores=1)))) == Bottleneck(
        BottleneckKind.COMPUTE,
        "compute-bound: 100.0 % of the kernel time goes into ops at 65.0 % or more of what their "
        "cores compute",
        1.0,
        0.5,
        "of kernel time",
    )


def test_what_binds_together_is_said_together() -> None:
    rows = [matmul(150_000), matmul(1.1e6, cores=1)]
    beside = op("Unary", [SMALL], [SMALL], ns=1.15e6)
    found = bottleneck_of(Subject(ops=table(*rows, beside)))
    assert found is not None
    assert found.kind is BottleneckKind.COMPUTE
    assert found.value == pytest.approx(1.25 / 2.4)
    assert found.sentence == (
        "compute-bound: 45.8 % of the kernel time goes into ops at 65.0 % or more of what their "
        "cores compute, 6.2 % into ops that use 65.0 % or more of the DRAM bandwidth"
    )


def test_weights_are_no_excess_traffic() -> None:
    # They are read once: what comes next reads as well what the matmul made, and is small.
    made = tensor(1, 1, 32, 4096)
    row = op("Matmul", [made, WEIGHTS], [made], ns=150_000, fidelity="HiFi4")
    found = bottleneck_of(Subject(ops=table(row, row, row)))
    assert found is not None
    assert found.kind is BottleneckKind.MEMORY


def test_ops_that_come_near_nothing() -> None:
    assert bottleneck_of(Subject(ops=table(matmul(1e6)))) == Bottleneck(
        BottleneckKind.SLOW,
        "slow ops: 100.0 % of the kernel time goes into ops that come near neither the DRAM "
        "bandwidth nor what their cores compute",
        1.0,
        0.5,
        "of kernel time",
    )


@pytest.mark.parametrize("subject", [Subject(), measured(), printed(program())])
def test_what_cannot_be_told(subject: Subject) -> None:
    assert bottleneck_of(subject) is None


def test_what_binds_ops_must_take_most_of_the_time() -> None:
    bound, other = matmul(150_000), op("Unary", [SMALL], [SMALL], ns=150_000)
    assert bottleneck_of(Subject(ops=table(bound, other))) is None
    found = bottleneck_of(Subject(ops=table(bound, bound, other)))
    assert found is not None
    assert (found.kind, found.value) == (BottleneckKind.MEMORY, 2 / 3)


def test_without_a_known_bandwidth_dram_is_not_blamed() -> None:
    row = op("Matmul", [SMALL, WEIGHTS], [SMALL], ns=150_000)
    assert bottleneck_of(Subject(ops=table(row, arch="quasar"))) is None


def test_many_reads_do_not_matter_to_a_kernel_that_is_balanced() -> None:
    kernel = program(bytes_read=12 << 20, sizes={4096: None})
    assert bottleneck_of(printed(kernel, roofline=Roofline("balanced", 0, 9, "N", 9))) is None
