"""Analyses of cores, DRAM and queues."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.analyses.tensors import DRAM
from pytest_ttnn_perf.analysis.checklist.analyses.times import CORES, QUEUES
from pytest_ttnn_perf.records.finding import Analysis, Figure, Subject
from tests.rules.analyses import section, why_not_measured
from tests.rules.kernel_logs import printed, program
from tests.rules.reports import Operation, record, report
from tests.rules.tables import op, table, tensor

#: Of 2048 bytes each.
WIDE = tensor(1, 1, 32, 32)
CUT = tensor(1, 1, 32, 32, memory="L1_HEIGHT_SHARDED")
BINARY = "BinaryNgDeviceOperation"


SHARDED = "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig()'}"
LEFT_OUT = (
    "idle cores: without collectives and DRAM-sharded matmuls, whose number of cores says little"
)
NO_SKEW = "even work on all cores (TTP306): not measured: the capture does not give times per core"


def test_cores() -> None:
    ops = table(
        op(BINARY, [CUT], [CUT], ns=6000.0, cores=16),
        op(BINARY, [CUT], ns=2000.0, cores=64),
        op("MatmulDeviceOperation", [CUT], ns=1000.0, cores=8, attributes=SHARDED),
        op("AllGatherDeviceOperation", [CUT], ns=1000.0, cores=1),
    )
    used = (6000 * 16 + 2000 * 64 + 1000 * 8 + 1000) / (64 * 10_000)
    assert CORES.analysis(Subject(ops=ops)) == Analysis(
        "cores",
        "cores that ops and kernels run on",
        figures=(
            Figure("cores in use, all ops, weighted by time", used, "of cores"),
            Figure("cores available", 64, "cores"),
            Figure("more cores for ops on few (TTP305)", 0.0, "of a step"),
        ),
        sections=(
            section(
                "cores",
                "ns",
                "of kernel time",
                ("16 cores", 6000.0, 0.6),
                ("64 cores", 2000.0, 0.2),
                ("1 core", 1000.0, 0.1),
                ("8 cores", 1000.0, 0.1),
            ),
            section(
                "idle cores", "ns", "of kernel time", ("16 cores, BinaryNg 1x1x32x32", 4500.0, 0.45)
            ),
        ),
        notes=(LEFT_OUT, NO_SKEW),
    )


def test_cores_of_kernels() -> None:
    found = CORES.analysis(printed(program(1, cores=16, cycles=3000), program(2, cycles=1000)))
    assert found.figures == (Figure("cores in use, kernels (TTP801)", 0.4375, "of the cores"),)
    assert found.sections == (
        section(
            "kernels",
            "cycles",
            "of kernel time",
            ("program 1 (kernel), 16 cores", 3000.0, 0.75),
            ("program 2 (kernel), 64 cores", 1000.0, 0.25),
        ),
    )


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (
            Subject(ops=table(op(BINARY, cores=None))),
            "the capture does not say how many cores ops ran on",
        ),
        (printed(), "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1"),
    ],
)
def test_cores_that_are_not_told(subject: Subject, reason: str) -> None:
    assert why_not_measured(CORES.analysis(subject)) == reason


def test_dram() -> None:
    # At 288 bytes per nanosecond, 2 x 2048 bytes take 14.2 ns.
    ops = table(op(BINARY, [WIDE], [WIDE], ns=100.0), op("Softmax", [CUT], ns=300.0))
    busy = 4096 / 288
    unit = "of the DRAM bandwidth"
    found = DRAM.analysis(Subject(ops=ops))
    assert found.figures[0].label == "bandwidth in use, weighted by time"
    assert found.figures[0].value == pytest.approx(busy / 400)
    at_full, running, stored = found.sections
    assert [row.label for row in at_full.rows] == ["BinaryNg", "Softmax"]
    assert [row.value for row in at_full.rows] == pytest.approx([busy, 0.0])
    assert [row.share for row in at_full.rows] == pytest.approx([busy / 400, 0.0])
    assert (running.unit, running.of) == (unit, unit)
    assert [row.value for row in running.rows] == pytest.approx([busy / 100, 0.0])
    assert stored == section("operands in DRAM", "B", "of such bytes", ("BinaryNg", 4096.0, 1.0, 2))
    assert found.notes[0] == (
        "an estimate: each operand in DRAM counts once, and none of those that ops read a part of"
    )


def test_an_unknown_bandwidth_is_said_to_be() -> None:
    found = DRAM.analysis(Subject(ops=table(op(BINARY, [WIDE]), arch="grayskull")))
    assert [section.heading for section in found.sections] == ["operands in DRAM"]
    assert found.notes[0] == "what part of the DRAM bandwidth of grayskull ops use is unknown"


def test_dram_of_kernels() -> None:
    found = DRAM.analysis(printed(program(1, bytes_read=3072, bytes_written=1024, bandwidth=19.3)))
    assert found.sections == (
        section(
            "bytes that kernels move",
            "B",
            "of such bytes",
            ("program 1 (kernel), read", 3072.0, 0.75, 256),
            ("program 1 (kernel), written", 1024.0, 0.25, 256),
        ),
        section("effective bandwidth of kernels", "GB/s", "", ("program 1 (kernel)", 19.3)),
    )


def test_queues() -> None:
    calls = (
        Operation(1, "ttnn.from_torch", outputs=(1,)),
        Operation(2, "ttnn.to_torch", inputs=(2,), arguments={"cq_id": "1"}),
        Operation(3, "ttnn.to_torch", inputs=(2,), arguments={"cq_id": "1"}),
    )
    subject = Subject(report=report(calls, [record(1, 64, 32), record(2, 32, 32)]))
    of = "of the bytes"
    assert QUEUES.analysis(subject) == Analysis(
        "queues",
        "transfers between host and device, and their command queues",
        figures=(
            Figure("padding (TTP504)", 0.0, "of the bytes"),
            Figure("outputs to the host (TTP505)", 4096.0, "B"),
        ),
        sections=(
            section(
                "ways",
                "B",
                of,
                ("to the device, queue unknown", 4096.0, 0.5),
                ("to the host, queue 1", 4096.0, 0.5, 2),
            ),
            section(
                "transfers",
                "B",
                of,
                ("ttnn.from_torch 64x32", 4096.0, 0.5),
                ("ttnn.to_torch 32x32", 4096.0, 0.5, 2),
            ),
        ),
        notes=(
            "times of transfers: not measured: no profiler sees transfers: measure them with "
            "ttnn_perf.measure_io_overlap(compute=, transfer=, both=)",
        ),
    )
