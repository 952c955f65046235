"""Analyses of sharding, reshards and memory."""

from __future__ import annotations

from dataclasses import replace

from pytest_ttnn_perf.analysis.checklist.analyses.tensors import MEMORY, RESHARDS, SHARDING
from pytest_ttnn_perf.records.finding import Analysis, Figure, Row, Section, Subject
from pytest_ttnn_perf.records.ttnn_report import BufferType, Reshard
from tests.rules.analyses import section
from tests.rules.convolving import DEVICE
from tests.rules.reports import Operation, record, report
from tests.rules.tables import op, table, tensor

#: Of 2048 bytes each.
WIDE = tensor(1, 1, 32, 32)
CUT = tensor(1, 1, 32, 32, memory="L1_HEIGHT_SHARDED")
BINARY = "BinaryNgDeviceOperation"


def test_sharding() -> None:
    ops = table(op("Embedding", outputs=[WIDE]), op(BINARY, [WIDE], [CUT]), op(BINARY, [CUT, CUT]))
    assert SHARDING.analysis(Subject(ops=ops)) == Analysis(
        "sharding",
        "memory layouts of operands and activations",
        figures=(Figure("interleaved activations", 1 / 3, "of activation bytes"),),
        sections=(
            section(
                "operands",
                "B",
                "of operand bytes",
                ("L1_HEIGHT_SHARDED", 6144.0, 0.6, 3),
                ("DRAM_INTERLEAVED", 4096.0, 0.4, 2),
            ),
            section(
                "activations that ops read",
                "B",
                "of activation bytes",
                ("L1_HEIGHT_SHARDED", 4096.0, 2 / 3, 2),
                ("DRAM_INTERLEAVED", 2048.0, 1 / 3),
            ),
            section(
                "interleaved activations",
                "B",
                "of activation bytes",
                ("BinaryNg 1x1x32x32", 2048.0, 1 / 3),
            ),
        ),
    )


def test_sharding_of_a_report() -> None:
    calls = [
        Operation(1, "ttnn.relu", outputs=(1,), device_operations=("Unary",)),
        Operation(2, "ttnn.add", inputs=(1,), device_operations=("Binary",)),
    ]
    subject = Subject(report=report(calls, [record(1, 32, 32)], [(1, 1, 2)]))
    found = SHARDING.analysis(subject)
    assert found.sections[2].rows == (Row("ttnn.add 32x32", 2048.0, 1.0),)


RESHARD = op("ReshardDeviceOperation", [CUT], [CUT._replace(memory="L1_BLOCK_SHARDED")], ns=100.0)
TO_SHARDED = op("InterleavedToShardedDeviceOperation", [WIDE], [CUT], ns=300.0)
MOVES = (
    Operation(1, "ttnn.conv2d", reshard=Reshard.HIDDEN),
    Operation(2, "ttnn.to_memory_config", reshard=Reshard.EXPLICIT),
    Operation(3, "ttnn.relu", reshard=Reshard.NONE),
    Operation(4, "ttnn.relu", reshard=Reshard.NONE),
)


def test_reshards_by_cost_and_in_the_report() -> None:
    ops = table(RESHARD, TO_SHARDED, op(BINARY, [CUT], ns=600.0))
    of = "of kernel time"
    assert RESHARDS.analysis(Subject(ops=ops, report=report(MOVES))) == Analysis(
        "reshards",
        "ops that only cut tensors anew",
        figures=(
            Figure("moves that can go (TTP302)", 0.3, "of a step"),
            Figure("moves in the report (TTP302)", 2.0, "reshards"),
        ),
        sections=(
            section(
                "kinds", "ns", of, ("InterleavedToSharded", 300.0, 0.3), ("Reshard", 100.0, 0.1)
            ),
            section(
                "ways",
                "ns",
                of,
                ("DRAM_INTERLEAVED to L1_HEIGHT_SHARDED", 300.0, 0.3),
                ("L1_HEIGHT_SHARDED to L1_BLOCK_SHARDED", 100.0, 0.1),
            ),
            section(
                "ops",
                "ns",
                of,
                ("InterleavedToSharded 1x1x32x32 DRAM → L1_HEIGHT_SHARDED", 300.0, 0.3),
                ("Reshard 1x1x32x32 L1_HEIGHT_SHARDED → L1_BLOCK_SHARDED", 100.0, 0.1),
            ),
            *reported(),
        ),
    )


def reported() -> tuple[Section, ...]:
    """Return what the report alone tells."""
    return (
        section(
            "operations of the report",
            "operations",
            "of operations",
            ("no reshard", 2.0, 0.5, 2),
            ("asked for", 1.0, 0.25),
            ("hidden inside another operation", 1.0, 0.25),
        ),
        section(
            "reshards of the report",
            "operations",
            "",
            ("ttnn.conv2d (operation 1), hidden inside another operation", 1.0),
            ("ttnn.to_memory_config (operation 2), asked for", 1.0),
        ),
    )


def test_reshards_of_a_report_alone() -> None:
    found = RESHARDS.analysis(Subject(report=report(MOVES)))
    assert found.figures == (Figure("moves that can go (TTP302)", 2.0, "reshards"),)
    assert found.sections == reported()


CALLS = (
    Operation(
        1,
        "ttnn.relu",
        outputs=(1,),
        device_operations=("Unary",),
        cb_bytes_per_core=4000,
        bytes_per_bank={BufferType.L1: 1000, BufferType.DRAM: 64},
    ),
    Operation(
        2,
        "ttnn.add",
        inputs=(1,),
        device_operations=("Binary",),
        bytes_per_bank={BufferType.L1: 2000},
    ),
)


def test_memory() -> None:
    plain = report(CALLS, [record(1, 32, 32, memory="L1_INTERLEAVED")])
    of = "of operand bytes"
    assert MEMORY.analysis(Subject(report=replace(plain, devices=(DEVICE,)))) == Analysis(
        "memory",
        "where tensors lie, and how full L1 gets",
        figures=(Figure("L1 of a core for tensors and circular buffers", 10_000, "B"),),
        sections=(
            section("operands", "B", of, ("L1", 4096.0, 1.0, 2)),
            section("ops", "B", of, ("ttnn.add L1", 2048.0, 0.5), ("ttnn.relu L1", 2048.0, 0.5)),
            section(
                "most alive at one operation, per bank", "B", "", ("DRAM", 64.0), ("L1", 2000.0)
            ),
            section(
                "L1 of a core in use",
                "B",
                "of L1",
                ("ttnn.relu (operation 1)", 5000.0, 0.5),
                ("ttnn.add (operation 2) 32x32", 2000.0, 0.2),
            ),
        ),
        notes=(
            "what L1 holds is a lower bound: not every operation gives its circular buffers",
            "activations in L1 instead of DRAM (TTP303): not applicable: no op reads what another "
            "one made",
            "L1 left free (TTP304): not measured: circular buffers are not given by 1 of 2 "
            "operations; what is known leaves 50.0 % of L1",
        ),
    )


def test_memory_without_operands() -> None:
    found = MEMORY.analysis(Subject(ops=table(op(BINARY))))
    assert found.reason == "the capture does not say where tensors lie"
