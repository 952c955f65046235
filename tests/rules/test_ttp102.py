"""Tensors in float32: all operands (TTP102), and outputs alone (TTP104)."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from tests.rules.answers import Ask, Evidence, clean, limit, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import on_host, op, table, tensor

operands, outputs = Ask("TTP102"), Ask("TTP104")
OF_OPERANDS, OF_OUTPUTS = limit(0.01, "of operand bytes"), limit(0.01, "of output bytes")
#: Of 2048 and 8192 bytes.
HALF, FULL = tensor(1, 1, 32, 32), tensor(1, 1, 32, 64, dtype="FLOAT32")
UNARY = op("UnaryDeviceOperation", [FULL], [HALF])


def test_operands() -> None:
    assert operands(ops=table(UNARY, UNARY)) == OF_OPERANDS.found(
        0.8,
        "80.0 % of the bytes that ops take and give are float32",
        [Evidence("Unary 1x1x32x64", 2 * 8192, "B")],
    )
    at_limit = operands.with_limits(share=0.8)(ops=table(UNARY))
    assert at_limit == clean(0.8, limit=0.8, unit="of operand bytes")


def test_outputs() -> None:
    typecast = op("TypecastDeviceOperation", [HALF], [FULL])
    assert outputs(ops=table(typecast, UNARY)) == OF_OUTPUTS.found(
        0.8,
        "80.0 % of the bytes that ops give are float32",
        [Evidence("Typecast 1x1x32x64", 8192, "B")],
    )
    split = table(op("SplitDeviceOperation", [HALF], [FULL, HALF]))
    at_limit = outputs.with_limits(share=0.8)(ops=split)
    assert at_limit == clean(0.8, limit=0.8, unit="of output bytes")
    assert outputs(ops=table(UNARY)) == OF_OUTPUTS.clean(0.0)  # inputs do not count


def test_bfloat16_and_integers_are_clean() -> None:
    indices = tensor(1, 1, 32, 32, dtype="UINT32", layout="ROW_MAJOR")
    ops = table(op("EmbeddingsDeviceOperation", [indices, HALF], [HALF]))
    assert operands(ops=ops) == OF_OPERANDS.clean(0.0)


def test_a_report_counts_tensors_on_the_device() -> None:
    call = Operation(1, "ttnn.to_torch", inputs=(1, 2), outputs=(3,))
    tensors = [
        record(1, 50, 100, dtype="FLOAT32"),
        record(2, 50, 100, layout="ROW_MAJOR"),
        record(3, 50, 100, dtype="FLOAT32", memory=None),
    ]
    wide, narrow = 64 * 128 * 4, 50 * 100 * 2
    assert operands(report=report([call], tensors)) == OF_OPERANDS.found(
        wide / (wide + narrow),
        "76.6 % of the bytes that ops take and give are float32",
        [Evidence("ttnn.to_torch 64x128", wide, "B")],
    )


def test_outputs_in_a_report() -> None:
    call = Operation(1, "ttnn.softmax", inputs=(1,), outputs=(2,))
    tensors = [record(1, 32, 32), record(2, 32, 32, dtype="FLOAT32")]
    answer = outputs(report=report([call], tensors))
    assert (answer.value, answer.evidence) == (1.0, (Evidence("ttnn.softmax 32x32", 4096, "B"),))


@pytest.mark.parametrize("ask", [operands, outputs])
def test_a_capture_without_operands(ask: Ask) -> None:
    ops = table(op("UnaryDeviceOperation"), on_host("(torch) cat"))
    assert ask(ops=ops) == not_measured(NO_OPERANDS)
