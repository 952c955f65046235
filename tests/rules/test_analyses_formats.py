"""Analyses of data formats, fidelity, layouts and padding."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.analyses.tensors import DTYPE, FIDELITY, LAYOUT, PADDING
from pytest_ttnn_perf.records.finding import (
    Analysis,
    AnalysisOutcome,
    Figure,
    Row,
    Section,
    Subject,
)
from tests.rules.analyses import section, why_not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import on_host, op, table, tensor

#: Of 1024 elements each: 2048, 1088 and 4096 bytes.
BF16, BFP8, FP32 = (
    tensor(1, 1, 32, 32, dtype=name) for name in ("BFLOAT16", "BFLOAT8_B", "FLOAT32")
)
MATMUL, BINARY = "MatmulDeviceOperation", "BinaryNgDeviceOperation"


def test_dtype() -> None:
    in_l1 = BF16._replace(memory="L1_INTERLEAVED")
    ops = table(
        op(MATMUL, [in_l1, BFP8], [in_l1], ns=300.0),
        op(MATMUL, [in_l1, BFP8], [in_l1], ns=300.0),
        op(BINARY, [in_l1], [FP32], ns=400.0),
    )
    assert DTYPE.analysis(Subject(ops=ops)) == Analysis(
        "dtype",
        "data formats of what ops take and give",
        figures=(
            Figure("weights wider than bfloat8_b (TTP101)", 0.0, "of a step"),
            Figure("float32 (TTP102)", 2048 / 288 / 1000, "of a step"),
            Figure("activations wider than bfloat8_b (TTP104)", 0.0, "of a step"),
        ),
        sections=(
            sizes("operands", ("BFLOAT16", 10240, 5), ("FLOAT32", 4096, 1), ("BFLOAT8_B", 2176, 2)),
            sizes(
                "ops",
                ("Matmul BFLOAT16", 8192, 4),
                ("BinaryNg FLOAT32", 4096, 1),
                ("Matmul BFLOAT8_B", 2176, 2),
                ("BinaryNg BFLOAT16", 2048, 1),
            ),
            section("weights, alike ones once", "B", "of weight bytes", ("BFLOAT8_B", 1088.0, 1.0)),
            section(
                "activations that ops hand on",
                "B",
                "of activation bytes",
                ("BFLOAT16", 4096.0, 1.0, 2),
            ),
            section(
                "matmuls and convolutions",
                "ns",
                "of their time",
                ("BFLOAT16 x BFLOAT8_B", 600.0, 1.0, 2),
            ),
        ),
    )


def sizes(heading: str, *rows: tuple[str, float, int]) -> Section:
    """Return a section of bytes: label, bytes and count."""
    total = sum(size for _, size, _ in rows)
    bars = tuple(Row(label, size, size / total, count) for label, size, count in rows)
    return Section(heading, "B", bars, "of operand bytes")


def test_formats_of_unknown_size_are_named() -> None:
    ops = table(op(BINARY, [BF16._replace(dtype="BFLOAT3_C")]))
    found = DTYPE.analysis(Subject(ops=ops))
    assert found.sections[0].rows == (Row("BFLOAT3_C", 0.0, None),)
    assert found.notes[0] == "of unknown size: BFLOAT3_C"


def test_dtype_of_a_report_counts_each_weight_once() -> None:
    shared = record(2, 32, 32, dtype="BFLOAT8_B")
    calls = [Operation(n, "ttnn.linear", inputs=(1, 2)) for n in (5, 6)]
    found = DTYPE.analysis(Subject(report=report(calls, [record(1, 32, 32), shared])))
    assert found.sections[2] == section(
        "weights, each once", "B", "of weight bytes", ("BFLOAT8_B", 1088.0, 1.0)
    )


def test_captures_without_operands() -> None:
    found = DTYPE.analysis(Subject(ops=table(op(BINARY))))
    assert (
        why_not_measured(found)
        == "the capture says nothing about the tensors that ops take and give"
    )


def test_fidelity_is_of_matmuls_and_convolutions_by_their_time() -> None:
    ops = table(
        op(MATMUL, [BF16, BFP8], ns=300.0, fidelity="HiFi4"),
        op("Conv2dDeviceOperation", [BF16, BFP8], ns=100.0, fidelity="LoFi"),
        op(MATMUL, [BF16], ns=100.0),
        op("ReshardDeviceOperation", [BF16], ns=9000.0, fidelity="HiFi4"),
    )
    of = "of matmul and conv time"
    labels = {
        "fidelity": ("HiFi4", "LoFi", "unknown"),
        "fidelity and weights": (
            "HiFi4, BFLOAT8_B",
            "LoFi, BFLOAT8_B",
            "unknown, weights unknown",
        ),
        "ops": (
            "HiFi4 Matmul 1x1x32x32 @ 32x32",
            "LoFi Conv2d 1x1x32x32",
            "unknown Matmul 1x1x32x32",
        ),
    }
    assert FIDELITY.analysis(Subject(ops=ops)) == Analysis(
        "fidelity",
        "math fidelity of matmuls and convolutions",
        figures=(Figure("fidelity above what weights need (TTP103)", 0.0, "of a step"),),
        sections=tuple(
            section(heading, "ns", of, (high, 300.0, 0.6), (low, 100.0, 0.2), (no, 100.0, 0.2))
            for heading, (high, low, no) in labels.items()
        ),
        notes=(
            "60.0 % of matmul and conv time runs above LoFi with weights of bfloat8_b or "
            "bfloat4_b: begin with LoFi there, and raise it where PCC asks for it",
            "other ops are left out: those that move data report a fidelity that they do not use",
        ),
    )


def test_fidelity_that_is_not_there() -> None:
    without = FIDELITY.analysis(Subject(ops=table(op(BINARY, fidelity="HiFi4"))))
    assert (without.outcome, without.reason) == (
        AnalysisOutcome.NOT_APPLICABLE,
        "no matmul and no convolution ran",
    )
    empty = FIDELITY.analysis(Subject(ops=table(op(MATMUL))))
    assert why_not_measured(empty) == "no matmul or convolution gives its fidelity"


def test_layout() -> None:
    rows = BF16._replace(layout="ROW_MAJOR")
    ops = table(
        op("TilizeDeviceOperation", [rows], [BF16], ns=100.0),
        op(BINARY, [BF16, BF16], ns=700.0),
        op(BINARY, [rows], ns=200.0),
        on_host("(torch) add"),
    )
    assert LAYOUT.analysis(Subject(ops=ops)) == Analysis(
        "layout",
        "layouts of tensors, and conversions",
        figures=(
            Figure("conversions that can go (TTP203)", 0.0, "of a step"),
            Figure("in tiles instead of rows (TTP201)", 0.01, "of a step"),
        ),
        sections=(
            section(
                "layouts",
                "B",
                "of operand bytes",
                ("TILE", 6144.0, 0.6, 3),
                ("ROW_MAJOR", 4096.0, 0.4, 2),
            ),
            section(
                "ops with row-major operands",
                "B",
                "of such bytes",
                ("BinaryNg", 2048.0, 0.5),
                ("Tilize", 2048.0, 0.5),
            ),
            section(
                "conversions",
                "ns",
                "of kernel time",
                ("Tilize 1x1x32x32 ROW_MAJOR → TILE", 100.0, 0.1),
            ),
        ),
        notes=("1 op ran on the host: not counted (TTP007)",),
    )


def test_padding() -> None:
    short = tensor(1, 1, 32, 32, logical=(1, 1, 19, 32))
    ops = table(op(BINARY, [short, BF16]), op(BINARY, [short, BF16]), op("Softmax", [short]))
    wanted, extra = 3 * 19 * 32 + 2 * 1024, 3 * 13 * 32
    of = "of the padding"
    assert PADDING.analysis(Subject(ops=ops)) == Analysis(
        "padding",
        "padding of tiled tensors",
        figures=(
            Figure("padding adds", extra / wanted, "of the elements"),
            Figure("single rows that could be one matrix (TTP202)", 0.0, "of a step"),
        ),
        sections=(
            section(
                "ops", "elements", of, ("BinaryNg", 832.0, 2 / 3, 2), ("Softmax", 416.0, 1 / 3)
            ),
            section(
                "shapes",
                "elements",
                of,
                ("BinaryNg 1x1x19x32 in 1x1x32x32", 832.0, 2 / 3, 2),
                ("Softmax 1x1x19x32 in 1x1x32x32", 416.0, 1 / 3),
            ),
        ),
    )


def test_padding_that_is_not_told_is_not_none() -> None:
    old = BF16._replace(logical=None)
    found = PADDING.analysis(Subject(ops=table(op(BINARY, [old]))))
    assert why_not_measured(found) == "the capture has no logical shapes"
    rows = BF16._replace(layout="ROW_MAJOR")
    assert (
        PADDING.analysis(Subject(ops=table(op(BINARY, [rows])))).reason == "no tensor is in tiles"
    )
