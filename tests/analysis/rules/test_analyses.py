"""Analyses of small captures: what is grouped by what, and what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import BufferType, Reshard
from pytest_ttnn_perf.analysis.show.groups import ANALYSES, AnalysisOutcome, Figure, Row
from pytest_ttnn_perf.cli.captures import ANALYSIS_NAMES as NAMES
from pytest_ttnn_perf.core.finding import Input, Subject
from tests.analysis.rules.convolving import DEVICE, called, conv, convolving, output
from tests.analysis.rules.kernel_logs import printed, program
from tests.analysis.rules.reports import Operation, record, report
from tests.analysis.rules.tables import Op, Tensor, TraceReplays, on_host, op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.show.groups import Analysis

#: Of 1024 elements each: 2048, 1088 and 4096 bytes.
BF16, BFP8, FP32 = (
    tensor(1, 1, 32, 32, dtype=name) for name in ("BFLOAT16", "BFLOAT8_B", "FLOAT32")
)
CUT = tensor(1, 1, 32, 32, memory="L1_HEIGHT_SHARDED")
MATMUL, BINARY = "MatmulDeviceOperation", "BinaryNgDeviceOperation"

Rows = list[tuple[str, float, float | None, int]]


def of_ops(name: str, *ops: Op) -> Analysis:
    return ANALYSES[name].analysis(Subject(ops=table(*ops)))


def rows(analysis: Analysis) -> dict[str, Rows]:
    """Return label, value, share and count of each row, by the heading of its section."""
    assert analysis.outcome is AnalysisOutcome.MEASURED, analysis.reason
    return {
        section.heading: [(row.label, row.value, row.share, row.count) for row in section.rows]
        for section in analysis.sections
    }


def test_dtype() -> None:
    in_l1 = BF16._replace(memory="L1_INTERLEAVED")
    found = of_ops(
        "dtype",
        op(MATMUL, [in_l1, BFP8], [in_l1], ns=300.0),
        op(MATMUL, [in_l1, BFP8], [in_l1], ns=300.0),
        op(BINARY, [in_l1], [FP32], ns=400.0),
    )
    whole = 16512
    assert rows(found) == {
        "operands": [
            ("BFLOAT16", 10240, 10240 / whole, 5), ("FLOAT32", 4096, 4096 / whole, 1),
            ("BFLOAT8_B", 2176, 2176 / whole, 2),
        ],
        "ops": [
            ("Matmul BFLOAT16", 8192, 8192 / whole, 4), ("BinaryNg FLOAT32", 4096, 4096 / whole, 1),
            ("Matmul BFLOAT8_B", 2176, 2176 / whole, 2),
            ("BinaryNg BFLOAT16", 2048, 2048 / whole, 1),
        ],
        "weights, alike ones once": [("BFLOAT8_B", 1088.0, 1.0, 1)],
        "activations that ops hand on": [("BFLOAT16", 4096.0, 1.0, 2)],
        "matmuls and convolutions": [("BFLOAT16 x BFLOAT8_B", 600.0, 1.0, 2)],
    }  # fmt: skip
    assert {each.heading: (each.unit, each.of) for each in found.sections} == {
        "operands": ("B", "of operand bytes"), "ops": ("B", "of operand bytes"),
        "weights, alike ones once": ("B", "of weight bytes"),
        "activations that ops hand on": ("B", "of activation bytes"),
        "matmuls and convolutions": ("ns", "of their time"),
    }  # fmt: skip


def test_fidelity_is_of_matmuls_and_convolutions_by_their_time() -> None:
    found = of_ops(
        "fidelity",
        op(MATMUL, [BF16, BFP8], ns=300.0, fidelity="HiFi4"),
        op("Conv2dDeviceOperation", [BF16, BFP8], ns=100.0, fidelity="LoFi"),
        op(MATMUL, [BF16], ns=100.0),
        op("ReshardDeviceOperation", [BF16], ns=9000.0, fidelity="HiFi4"),
    )
    labels = {
        "fidelity": ("HiFi4", "LoFi", "unknown"),
        "fidelity and weights": (
            "HiFi4, BFLOAT8_B", "LoFi, BFLOAT8_B", "unknown, weights unknown",
        ),
        "ops": (
            "HiFi4 Matmul 1x1x32x32 @ 32x32", "LoFi Conv2d 1x1x32x32", "unknown Matmul 1x1x32x32",
        ),
    }  # fmt: skip
    assert rows(found) == {
        heading: [(high, 300.0, 0.6, 1), (low, 100.0, 0.2, 1), (none, 100.0, 0.2, 1)]
        for heading, (high, low, none) in labels.items()
    }
    assert {each.of for each in found.sections} == {"of matmul and conv time"}


def test_padding() -> None:
    short = tensor(1, 1, 32, 32, logical=(1, 1, 19, 32))
    found = of_ops(
        "padding", op(BINARY, [short, BF16]), op(BINARY, [short, BF16]), op("Softmax", [short])
    )
    wanted, extra = 3 * 19 * 32 + 2 * 1024, 3 * 13 * 32
    assert found.figures == (Figure("padding adds", extra / wanted, "of the elements"),)
    assert rows(found) == {
        "ops": [("BinaryNg", 832.0, 2 / 3, 2), ("Softmax", 416.0, 1 / 3, 1)],
        "shapes": [
            ("BinaryNg 1x1x19x32 in 1x1x32x32", 832.0, 2 / 3, 2),
            ("Softmax 1x1x19x32 in 1x1x32x32", 416.0, 1 / 3, 1),
        ],
    }


def test_sharding_and_memory() -> None:
    ops = (op("Embedding", outputs=[BF16]), op(BINARY, [BF16], [CUT]), op(BINARY, [CUT, CUT]))
    found = rows(of_ops("sharding", *ops))
    assert found["operands"] == [
        ("L1_HEIGHT_SHARDED", 6144.0, 0.6, 3), ("DRAM_INTERLEAVED", 4096.0, 0.4, 2)
    ]  # fmt: skip
    assert found["activations that ops read"] == [
        ("L1_HEIGHT_SHARDED", 4096.0, 2 / 3, 2), ("DRAM_INTERLEAVED", 2048.0, 1 / 3, 1)
    ]  # fmt: skip
    assert rows(of_ops("memory", *ops))["operands"] == [
        ("L1", 6144.0, 0.6, 3), ("DRAM", 4096.0, 0.4, 2)
    ]  # fmt: skip


CONV = Operation(
    1, "ttnn.conv2d", device_operations=("Conv2d",), cb_bytes_per_core=2_500,
    l1_by_core={(0, 0): 5_000, (1, 0): 1_000, (1, 1): 10},
)  # fmt: skip
RELU = Operation(2, "ttnn.relu", device_operations=("Unary",), bytes_per_bank={BufferType.L1: 100})
VIEW = Operation(3, "ttnn.reshape", bytes_per_bank={BufferType.DRAM: 64})


MOVES = (
    Operation(1, "ttnn.conv2d", reshard=Reshard.HIDDEN),
    Operation(2, "ttnn.to_memory_config", reshard=Reshard.EXPLICIT),
    *(Operation(number, "ttnn.relu", reshard=Reshard.NONE) for number in (3, 4)),
)


def test_reshards_by_cost_and_in_the_report() -> None:
    blocks = CUT._replace(memory="L1_BLOCK_SHARDED")
    ops = table(
        op("ReshardDeviceOperation", [CUT], [blocks], ns=100.0),
        op("InterleavedToShardedDeviceOperation", [BF16], [CUT], ns=300.0),
        op(BINARY, [CUT], ns=600.0),
    )
    told = {
        "operations of the report": [
            ("no reshard", 2.0, 0.5, 2), ("asked for", 1.0, 0.25, 1),
            ("hidden inside another operation", 1.0, 0.25, 1),
        ],
        "reshards of the report": [
            ("ttnn.conv2d (operation 1), hidden inside another operation", 1.0, None, 1),
            ("ttnn.to_memory_config (operation 2), asked for", 1.0, None, 1),
        ],
    }  # fmt: skip
    both = rows(ANALYSES["reshards"].analysis(Subject(ops=ops, report=report(MOVES))))
    assert both == {
        "ways": [
            ("DRAM_INTERLEAVED to L1_HEIGHT_SHARDED", 300.0, 0.3, 1),
            ("L1_HEIGHT_SHARDED to L1_BLOCK_SHARDED", 100.0, 0.1, 1),
        ],
        "ops": [
            ("InterleavedToSharded 1x1x32x32 DRAM → L1_HEIGHT_SHARDED", 300.0, 0.3, 1),
            ("Reshard 1x1x32x32 L1_HEIGHT_SHARDED → L1_BLOCK_SHARDED", 100.0, 0.1, 1),
        ],
        **told,
    }
    assert rows(ANALYSES["reshards"].analysis(Subject(report=report(MOVES)))) == told


def test_host_overhead() -> None:
    found = of_ops(
        "host-overhead",
        op("Softmax", [CUT], ns=6000.0, gap_ns=9e9, replay=(0, 1)),
        op("Softmax", [CUT], ns=3000.0, gap_ns=2500.0, replay=(0, 1)),
        op(BINARY, [CUT], ns=3000.0, gap_ns=500.0, replay=(0, 1)),
    )
    assert found.figures == (
        Figure("devices wait", 0.2, "of the time"),
        Figure("waited, all devices", 3000.0, "ns"),
        Figure("worked, all devices", 12000.0, "ns"),
    )
    assert rows(found) == {
        "lengths of gaps": [("below 1 us", 500.0, 1 / 6, 1), ("1 to 10 us", 2500.0, 5 / 6, 1)],
        "waits before": [
            ("Softmax 1x1x32x32", 2500.0, 5 / 6, 1), ("BinaryNg 1x1x32x32", 500.0, 1 / 6, 1)
        ],
    }  # fmt: skip
    assert found.notes == ("counted in 1 replay, without the gap before the first op of each",)


def test_trace() -> None:
    replays = (op("Softmax", [CUT], ns=100.0 * number, replay=(3, number)) for number in (1, 2, 3))
    found = of_ops("trace", op(BINARY, [CUT], ns=400.0), *replays, on_host("(torch) add"))
    assert rows(found) == {
        "ops": [("trace 3, device 0", 600.0, 0.6, 3), ("not traced", 400.0, 0.4, 1)],
        "executions, median time of one": [("trace 3 on device 0", 200.0, None, 3)],
    }


def test_a_capture_in_doubt_says_so() -> None:
    ops = table(
        op("Softmax", [CUT], replay=(0, 1)),
        op(BINARY, [CUT], replay=(0, 2)),
        traces=(TraceReplays(0, 0, 2, complete=False),),
    )
    assert ANALYSES["trace"].analysis(Subject(ops=ops)).notes == (
        "no time of this capture can be trusted: the replays of trace 0 on device 0 ran "
        "different ops",
    )


def test_conv() -> None:
    attributes = (
        "{'enable_act_double_buffer': 'true'; 'act_block_h_ntiles': '2'; "
        "'per_core_out_matrix_height_ntile': '4'}"
    )
    found = of_ops(
        "conv", conv(ns=300.0, attributes=attributes), conv("BLOCK", ns=100.0),
        op(BINARY, [CUT], ns=600.0),
    )  # fmt: skip
    settings = {
        "sharding": [("BLOCK", 1.0, 0.5, 1), ("HEIGHT", 1.0, 0.5, 1)],
        "activation double buffer": [("on", 1.0, 0.5, 1), ("unknown", 1.0, 0.5, 1)],
        "weight double buffer": [("unknown", 2.0, 1.0, 2)],
        "act_block_h": [("64 of 128 rows", 1.0, 0.5, 1), ("unknown", 1.0, 0.5, 1)],
    }
    assert rows(found) == {**settings, "convolutions": [("Conv2d 1x1x1024x32", 400.0, 0.4, 2)]}
    told = Subject(report=convolving((called(1), output(1, rows=64))))
    of_report = rows(ANALYSES["conv"].analysis(told))
    assert list(of_report) == list(settings), "a report has no times"
    assert of_report["sharding"] == [("HEIGHT", 1.0, 1.0, 1)]


def test_matmul() -> None:
    config = (
        "{'program_config': 'operations::matmul::MatmulMultiCoreReuseProgramConfig"
        "(in0_block_w=2;per_core_M=1)'}"
    )
    found = of_ops(
        "matmul",
        op(MATMUL, [CUT, CUT], ns=300.0, attributes=config),
        op(MATMUL, [CUT, CUT], ns=100.0, attributes="{'program_config': 'std::nullopt'}"),
        op(BINARY, [CUT], ns=600.0),
    )
    assert rows(found) == {
        "matmuls": [("Matmul 1x1x32x32 @ 32x32", 400.0, 0.4, 2)],
        "program config": [("MatmulMultiCoreReuse", 300.0, 0.75, 1), ("none", 100.0, 0.25, 1)],
        "in0_block_w": [("2 tiles", 300.0, 0.75, 1), ("unknown", 100.0, 0.25, 1)],
    }


def test_devices() -> None:
    computing = (op(BINARY, [CUT], ns=300.0), op(BINARY, [CUT], ns=100.0, device=1))
    found = of_ops(
        "devices", *computing, op("AllGatherDeviceOperation", [CUT], ns=100.0),
        op("AllGatherDeviceOperation", [CUT], ns=300.0, device=1),
    )  # fmt: skip
    apart = [("device 0", 300.0, 0.75, 1), ("device 1", 100.0, 0.25, 1)]
    assert rows(found) == {
        "devices": [("device 0", 400.0, 0.5, 2), ("device 1", 400.0, 0.5, 2)],
        "devices without collectives": apart,
        "collectives": [("AllGather 1x1x32x32", 400.0, 0.5, 2)],
    }
    assert rows(of_ops("devices", *computing)) == {"devices": apart}


def test_cores() -> None:
    found = of_ops(
        "cores", op(BINARY, [CUT], [CUT], ns=6000.0, cores=16), op(BINARY, ns=4000.0, cores=64)
    )
    assert found.figures == (
        Figure("cores in use, all ops, weighted by time", 0.55, "of cores"),
        Figure("cores available", 64, "cores"),
    )
    assert rows(found) == {"cores": [("16 cores", 6000.0, 0.6, 1), ("64 cores", 4000.0, 0.4, 1)]}


def test_cores_and_times_of_kernels() -> None:
    log = printed(program(1, cores=16, cycles=3000), program(2, cycles=1000))
    told = {
        "kernels": [
            ("program 1 (kernel), 16 cores", 3000.0, 0.75, 1),
            ("program 2 (kernel), 64 cores", 1000.0, 0.25, 1),
        ]
    }
    assert rows(ANALYSES["cores"].analysis(log)) == told
    assert rows(ANALYSES["bottlenecks"].analysis(log)) == told


def test_dram() -> None:
    # At 288 bytes per nanosecond, 2 x 2048 bytes take 14.2 ns.
    found = of_ops("dram", op(BINARY, [BF16], [BF16], ns=100.0), op("Softmax", [CUT], ns=300.0))
    busy = 4096 / 288
    (used,) = found.figures
    assert used.label == "bandwidth in use, weighted by time"
    assert used.value == pytest.approx(busy / 400)
    running, stored = found.sections
    assert (running.unit, running.of) == ("of the DRAM bandwidth", "of the DRAM bandwidth")
    assert [row.label for row in running.rows] == ["BinaryNg", "Softmax"]
    assert [row.value for row in running.rows] == pytest.approx([busy / 100, 0.0])
    assert stored.rows == (Row("BinaryNg", 4096.0, 1.0, 2),)
    assert found.notes == (
        "an estimate: each operand in DRAM counts once, and none of those that ops read a part of",
    )
    strange = ANALYSES["dram"].analysis(Subject(ops=table(op(BINARY, [BF16]), arch="grayskull")))
    assert list(rows(strange)) == ["operands in DRAM"]
    assert strange.notes == ("what part of the DRAM bandwidth of grayskull ops use is unknown",)


def test_dram_of_kernels() -> None:
    log = printed(program(1, bytes_read=3072, bytes_written=1024, bandwidth=19.3))
    assert rows(ANALYSES["dram"].analysis(log)) == {
        "bytes that kernels move": [
            ("program 1 (kernel), read", 3072.0, 0.75, 256),
            ("program 1 (kernel), written", 1024.0, 0.25, 256),
        ],
        "effective bandwidth of kernels": [("program 1 (kernel)", 19.3, None, 1)],
    }


def test_queues() -> None:
    calls = (
        Operation(1, "ttnn.from_torch", outputs=(1,)),
        *(Operation(n, "ttnn.to_torch", inputs=(2,), arguments={"cq_id": "1"}) for n in (2, 3)),
    )
    tensors = [record(1, 64, 32), record(2, 32, 32)]
    ways = [
        ("to the device, queue unknown", 4096.0, 0.5, 1),
        ("to the host, queue 1", 4096, 0.5, 2),
    ]
    programs = (replace(CONV, id=4, queues=(0, 0)), replace(RELU, id=5, queues=(0,)))
    queues = ANALYSES["queues"].analysis(Subject(report=report((*calls, *programs), tensors)))
    assert rows(queues) == {
        "ways": ways,
        "transfers": [
            ("ttnn.from_torch 64x32", 4096.0, 0.5, 1), ("ttnn.to_torch 32x32", 4096.0, 0.5, 2)
        ],
        "programs": [("queue 0", 3.0, 1.0, 3)],
    }  # fmt: skip
    assert queues.notes[0].startswith("times of transfers: not measured: no profiler sees")


def test_l1_over_the_operations_and_by_core() -> None:
    subject = Subject(report=replace(report([RELU, CONV, VIEW]), devices=(DEVICE,)))
    found = ANALYSES["l1"].analysis(subject)
    assert found.figures == (
        Figure("most in use, at ttnn.conv2d", 7_500, "B"),
        Figure("left free there", 2_500, "B"),
        Figure("L1 of a core for tensors and circular buffers", 10_000, "B"),
    )
    conv, relu = "ttnn.conv2d (operation 1)", "ttnn.relu (operation 2)"
    assert rows(found) == {
        "in use on the fullest core": [(conv, 7_500, 0.75, 1), (relu, 100, 0.01, 1)],
        "tensors by core": [
            (f"{conv}, core {core}", held, held / 10_000, 1)
            for core, held in (("0-0", 5_000), ("1-0", 1_000), ("1-1", 10))
        ],
    }
    assert found.notes[0].startswith("circular buffers are not given by 1 of 2 operations")


def test_the_names_of_the_command_line_are_those_of_the_analyses() -> None:
    assert tuple(ANALYSES) == NAMES


def of_op(code: str = BINARY, *operands: Tensor, **fields: Any) -> Subject:
    return Subject(ops=table(op(code, operands, **fields)))


def of_calls(*calls: Operation, **fields: Any) -> Subject:
    return Subject(report=replace(report(calls), **fields))


NOT_MEASURED, NOT_APPLICABLE = AnalysisOutcome.NOT_MEASURED, AnalysisOutcome.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("names", "subject", "outcome", "reason"),
    [
        (NAMES, Subject(), NOT_MEASURED, "needs "),
        ("dtype", Subject(), NOT_MEASURED, "needs an op table or a report database"),
        ("queues l1", of_op(), NOT_MEASURED, "needs a report database"),
        ("dtype", Subject(absent={Input.OPS: "it is off"}), NOT_MEASURED, "it is off"),
        ("dtype layout sharding memory padding dram", of_op(), NOT_MEASURED,
         "the capture says nothing about the tensors that ops take and give"),
        ("fidelity", of_op(fidelity="HiFi4"), NOT_APPLICABLE, "no matmul and no convolution ran"),
        ("fidelity", of_op(MATMUL), NOT_MEASURED, "no matmul or convolution gives its fidelity"),
        ("padding", of_op(BINARY, BF16._replace(logical=None)), NOT_MEASURED,
         "the capture has no logical shapes"),
        ("padding", of_op(BINARY, BF16._replace(layout="ROW_MAJOR")), NOT_APPLICABLE,
         "no tensor is in tiles"),
        ("reshards", of_op(), NOT_APPLICABLE, "no op only cuts tensors anew"),
        ("host-overhead", of_op(gap_ns=5.0), NOT_MEASURED,
         "the capture has neither replays of a trace nor a window"),
        ("conv", of_op(), NOT_APPLICABLE, "no convolutions"),
        ("matmul", of_op(), NOT_APPLICABLE, "no matmuls"),
        ("cores", of_op(cores=None), NOT_MEASURED,
         "the capture does not say how many cores ops ran on"),
        ("cores bottlenecks dram", printed(), NOT_MEASURED,
         "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1"),
        ("queues", of_calls(RELU), NOT_APPLICABLE, "the report has no transfer between host"),
        ("l1", of_calls(CONV), NOT_MEASURED, "the report does not say how much L1 a core has"),
        ("l1", of_calls(VIEW, devices=(DEVICE,)), NOT_MEASURED,
         "the report does not say what ran inside its operations"),
    ],
)  # fmt: skip
def test_what_is_not_there_has_a_reason(
    names: str | tuple[str, ...], subject: Subject, outcome: AnalysisOutcome, reason: str
) -> None:
    for name in names.split() if isinstance(names, str) else names:
        found = ANALYSES[name].analysis(subject)
        assert (found.name, found.outcome, found.sections) == (name, outcome, ())
        assert (found.reason or "").startswith(reason)


@pytest.mark.parametrize("name", [n for n in NAMES if Input.OPS in ANALYSES[n].needs])
def test_a_capture_of_the_host_alone_has_no_ops(name: str) -> None:
    for ops in ((), (on_host("(torch) add"),)):
        assert of_ops(name, *ops).reason == "the capture has no op that ran on a device"
