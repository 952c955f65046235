"""Analyses of gaps, traces, convolutions, matmuls, devices and bottlenecks; and what they need."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.analyses import ANALYSES
from pytest_ttnn_perf.analysis.checklist.analyses.times import (
    BOTTLENECKS,
    CONV,
    DEVICES,
    HOST_OVERHEAD,
    MATMUL,
    TRACE,
)
from pytest_ttnn_perf.records.finding import Analysis, AnalysisOutcome, Figure, Input, Row, Subject
from pytest_ttnn_perf.records.ttlang import Roofline
from tests.rules.analyses import section, why_not_measured
from tests.rules.convolving import called, conv, convolving, output
from tests.rules.kernel_logs import printed, program
from tests.rules.tables import TraceReplays, on_host, op, table, tensor

TIME = "of kernel time"
CUT = tensor(1, 1, 32, 32, memory="L1_HEIGHT_SHARDED")
BINARY, MATMULS = "BinaryNgDeviceOperation", "MatmulDeviceOperation"


def test_host_overhead() -> None:
    ops = table(
        op("Softmax", [CUT], ns=6000.0, gap_ns=9e9, replay=(0, 1)),
        op(BINARY, [CUT], ns=3000.0, gap_ns=500.0, replay=(0, 1)),
        op("Softmax", [CUT], ns=3000.0, gap_ns=2500.0, replay=(0, 1)),
    )
    assert HOST_OVERHEAD.analysis(Subject(ops=ops)) == Analysis(
        "host-overhead",
        "how long devices wait for their next op",
        figures=(
            Figure("devices wait (TTP401)", 0.2, "of the time"),
            Figure("waited, all devices", 3000.0, "ns"),
            Figure("worked, all devices", 12000.0, "ns"),
        ),
        sections=(
            section(
                "lengths of gaps",
                "ns",
                "of the gaps",
                ("below 1 us", 500.0, 1 / 6),
                ("1 to 10 us", 2500.0, 5 / 6),
            ),
            section(
                "waits before",
                "ns",
                "of the gaps",
                ("Softmax 1x1x32x32", 2500.0, 5 / 6),
                ("BinaryNg 1x1x32x32", 500.0, 1 / 6),
            ),
        ),
        notes=("counted in 1 replay, without the gap before the first op of each",),
    )


def test_host_overhead_of_a_whole_capture_is_not_measured() -> None:
    found = HOST_OVERHEAD.analysis(Subject(ops=table(op(BINARY, gap_ns=5.0))))
    assert found.outcome is AnalysisOutcome.NOT_MEASURED
    assert str(found.reason).startswith("the capture has neither replays of a trace nor a window")


def test_trace() -> None:
    ops = table(
        op(BINARY, [CUT], ns=400.0),
        op("Softmax", [CUT], ns=100.0, replay=(3, 1)),
        op("Softmax", [CUT], ns=200.0, replay=(3, 2)),
        op("Softmax", [CUT], ns=300.0, replay=(3, 3)),
        on_host("(torch) add"),
    )
    assert TRACE.analysis(Subject(ops=ops)) == Analysis(
        "trace",
        "what runs from a trace, and its replays",
        figures=(
            Figure("runs from a trace", 0.6, "of kernel time"),
            Figure("executions unlike the first (TTP403)", 0, "executions that differ"),
        ),
        sections=(
            section(
                "ops", "ns", TIME, ("trace 3, device 0", 600.0, 0.6, 3), ("not traced", 400.0, 0.4)
            ),
            section(
                "executions, median time of one", "ns", "", ("trace 3 on device 0", 200.0, None, 3)
            ),
            section("ops that are in no trace", "ns", TIME, ("BinaryNg 1x1x32x32", 400.0, 0.4)),
        ),
        notes=("1 op ran on the host: not counted (TTP007)",),
    )


def test_replays_that_differ_are_named() -> None:
    ops = table(
        op("Softmax", [CUT], replay=(0, 1)),
        op(BINARY, [CUT], replay=(0, 2)),
        traces=(TraceReplays(0, 0, 2, complete=False),),
    )
    notes = TRACE.analysis(Subject(ops=ops)).notes
    assert notes[0] == (
        "differs: trace 0 on device 0, replay 2: BinaryNg 1x1x32x32 instead of Softmax 1x1x32x32"
    )
    assert notes[-1] == (
        "no time of this capture can be trusted: the replays of trace 0 on device 0 ran "
        "different ops"
    )


ATTRIBUTES = (
    "{'enable_act_double_buffer': 'true'; 'act_block_h_ntiles': '2'; "
    "'per_core_out_matrix_height_ntile': '4'}"
)


def test_conv() -> None:
    fast = conv(ns=300.0, attributes=ATTRIBUTES)._replace(ideal_ns=200.0)
    ops = table(fast, conv("BLOCK", ns=100.0), op(BINARY, [CUT], ns=600.0))
    found = CONV.analysis(Subject(ops=ops))
    assert {figure.label: figure.value for figure in found.figures} == {
        "slices of convolutions (TTP608)": 0.0,
        "changes of sharding (TTP601)": 1.0,
        "sharding unsuited to the shape (TTP606)": 0.0,
        "activations not double-buffered (TTP603)": 0.0,
        "not folded (TTP605)": 0,
    }
    unit, of = "convolutions", "of convolutions"
    assert found.sections == (
        section("sharding", unit, of, ("BLOCK", 1.0, 0.5), ("HEIGHT", 1.0, 0.5)),
        section("activation double buffer", unit, of, ("on", 1.0, 0.5), ("unknown", 1.0, 0.5)),
        section("weight double buffer", unit, of, ("unknown", 2.0, 1.0, 2)),
        section("act_block_h", unit, of, ("64 of 128 rows", 1.0, 0.5), ("unknown", 1.0, 0.5)),
        section("convolutions", "ns", TIME, ("Conv2d 1x1x1024x32", 400.0, 0.4, 2)),
    )
    assert [note.partition(": ")[0] for note in found.notes] == [
        "slow convolutions (TTP607)",
        "weights not double-buffered (TTP604)",
        "room for a larger act_block_h (TTP602)",
    ]


def test_time_beyond_the_roofline() -> None:
    computing = 2 * 1024 * 64 * 288 / (64 * 148 / 72 * 1000)
    ops = table(conv(ns=computing + 700.0)._replace(fidelity="HiFi2"))
    lost = CONV.analysis(Subject(ops=ops)).sections[-1]
    assert (lost.heading, lost.rows[0].label) == ("time beyond the roofline", "Conv2d 1x1x1024x32")
    assert lost.rows[0].value == pytest.approx(700.0)


def test_conv_of_a_report_has_no_times() -> None:
    found = CONV.analysis(Subject(report=convolving((called(1), output(1, rows=64)))))
    assert [(section.heading, section.unit) for section in found.sections] == [
        ("sharding", "convolutions"),
        ("activation double buffer", "convolutions"),
        ("weight double buffer", "convolutions"),
        ("act_block_h", "convolutions"),
    ]
    assert found.sections[0].rows == (Row("HEIGHT", 1.0, 1.0),)


def test_matmul() -> None:
    config = (
        "{'program_config': 'operations::matmul::MatmulMultiCoreReuseProgramConfig"
        "(in0_block_w=2;per_core_M=1)'}"
    )
    ops = table(
        op(MATMULS, [CUT, CUT], ns=300.0, attributes=config, ideal_ns=100.0),
        op(MATMULS, [CUT, CUT], ns=100.0, attributes="{'program_config': 'std::nullopt'}"),
        op(BINARY, [CUT], ns=600.0),
    )
    found = MATMUL.analysis(Subject(ops=ops))
    assert {figure.label: figure.value for figure in found.figures} == {
        "weights read slowly, not DRAM-sharded (TTP311)": 0.0,
    }
    name = "Matmul 1x1x32x32 @ 32x32"
    assert found.sections == (
        section(
            "program config",
            "ns",
            "of matmul time",
            ("MatmulMultiCoreReuse", 300.0, 0.75),
            ("none", 100.0, 0.25),
        ),
        section(
            "in0_block_w",
            "ns",
            "of matmul time",
            ("2 tiles", 300.0, 0.75),
            ("unknown", 100.0, 0.25),
        ),
        section("matmuls", "ns", TIME, (name, 400.0, 0.4, 2)),
    )
    untold = "not measured: no matmul gives its operands, cores and fidelity"
    assert found.notes == (
        f"slow for no other reason (TTP314): {untold}",
        f"without a program config (TTP313): {untold}",
        f"very small blocks (TTP312): {untold}",
    )


def test_devices() -> None:
    ops = table(
        op(BINARY, [CUT], ns=300.0),
        op(BINARY, [CUT], ns=100.0, device=1),
        op("AllGatherDeviceOperation", [CUT], ns=100.0),
        op("AllGatherDeviceOperation", [CUT], ns=300.0, device=1),
    )
    assert DEVICES.analysis(Subject(ops=ops)) == Analysis(
        "devices",
        "kernel time by device, and collectives",
        figures=(
            Figure("fewer, narrower exchanges (TTP703)", 0.0, "of a step"),
            Figure("even work on all devices (TTP704)", 0.25, "of a step"),
        ),
        sections=(
            section(
                "devices", "ns", TIME, ("device 0", 400.0, 0.5, 2), ("device 1", 400.0, 0.5, 2)
            ),
            section(
                "devices without collectives",
                "ns",
                "of such time",
                ("device 0", 300.0, 0.75),
                ("device 1", 100.0, 0.25),
            ),
            section("collectives", "ns", TIME, ("AllGather 1x1x32x32", 400.0, 0.5, 2)),
        ),
    )


def test_bottlenecks() -> None:
    wide = tensor(1, 1, 32, 2048, memory="L1_INTERLEAVED")
    add = op(BINARY, [wide, wide], [wide], ns=90_000.0, cores=8)
    ops = table(add, op("Softmax", [CUT], ns=60_000.0, cores=8))
    found = BOTTLENECKS.analysis(Subject(ops=ops))
    assert found.figures == (
        Figure("bottleneck, underutilised cores", 0.6, "of a step"),
        Figure("its limit", 0.5, "of a step"),
    )
    assert found.sections == (
        section(
            "kinds of work",
            "ns",
            TIME,
            ("elementwise", 90_000.0, 0.6),
            ("norm and reduce", 60_000.0, 0.4),
        ),
        section("op codes", "ns", TIME, ("BinaryNg", 90_000.0, 0.6), ("Softmax", 60_000.0, 0.4)),
        section(
            "ops",
            "ns",
            TIME,
            ("BinaryNg 1x1x32x2048", 90_000.0, 0.6),
            ("Softmax 1x1x32x32", 60_000.0, 0.4),
        ),
    )
    assert found.notes[0] == (
        "underutilised cores: 60.0 % of a step goes into ops that could run on more cores"
    )


def test_bottlenecks_of_kernels() -> None:
    line = Roofline("memory", 40, 1000, "reader", 600, "compute")
    found = BOTTLENECKS.analysis(printed(program(1), roofline=line))
    assert [figure.label for figure in found.figures] == [
        "bottleneck, memory-bound",
        "its limit",
        "imbalance of the roofline (TTP804)",
    ]
    assert found.sections[0].rows == (Row("program 1 (kernel)", 1000.0, 1.0),)


def test_what_cannot_be_named() -> None:
    found = BOTTLENECKS.analysis(Subject(ops=table(op(BINARY, [CUT], ns=0.0))))
    assert found.notes[0] == "no bottleneck can be named from this"


@pytest.mark.parametrize("name", ANALYSES)
def test_every_analysis_says_what_it_needs(name: str) -> None:
    found = ANALYSES[name].analysis(Subject())
    assert found.outcome is AnalysisOutcome.NOT_MEASURED
    assert str(found.reason).startswith("needs ")
    assert (found.name, found.figures, found.sections) == (name, (), ())


@pytest.mark.parametrize("name", [n for n in ANALYSES if Input.OPS in ANALYSES[n].needs])
def test_a_capture_of_the_host_alone_has_no_ops(name: str) -> None:
    for ops in (table(), table(on_host("(torch) add"))):
        found = ANALYSES[name].analysis(Subject(ops=ops))
        assert why_not_measured(found) == "the capture has no op that ran on a device"


def test_a_known_reason_for_an_absent_input_is_told() -> None:
    subject = Subject(absent={Input.OPS: "the profiler is off"})
    assert ANALYSES["dtype"].analysis(subject).reason == "the profiler is off"
    assert ANALYSES["dtype"].analysis(Subject()).reason == (
        "needs an op table or a report database"
    )
    assert ANALYSES["queues"].analysis(Subject()).reason == (
        "needs a report database: op tables have no transfers or command queues"
    )
