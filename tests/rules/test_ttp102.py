from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from tests.rules.answers import Ask, Evidence, clean, limit, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import on_host, op, table, tensor

ask = Ask("TTP102")
LIMIT = limit(0.01, "of operand bytes")
HALF, FULL = tensor(1, 1, 32, 32), tensor(1, 1, 32, 64, dtype="FLOAT32")
HALF_BYTES, FULL_BYTES = 32 * 32 * 2, 32 * 64 * 4


def test_float32_operands() -> None:
    ops = table(
        op("UnaryDeviceOperation", [FULL], [HALF]), op("UnaryDeviceOperation", [FULL], [HALF])
    )
    share = FULL_BYTES / (FULL_BYTES + HALF_BYTES)
    assert ask(ops=ops) == LIMIT.found(
        share,
        "80.0 % of the bytes that ops take and give are float32",
        [Evidence("Unary 1x1x32x64", 2 * FULL_BYTES, "B")],
    )


def test_bfloat16_and_integers_are_clean() -> None:
    indices = tensor(1, 1, 32, 32, dtype="UINT32", layout="ROW_MAJOR")
    ops = table(op("EmbeddingsDeviceOperation", [indices, HALF], [HALF]))
    assert ask(ops=ops) == LIMIT.clean(0.0)


def test_a_share_at_the_limit_is_clean() -> None:
    ops = table(op("UnaryDeviceOperation", [FULL], [HALF]))
    answer = ask.with_limits(share=0.8)(ops=ops)
    assert answer == clean(0.8, limit=0.8, unit="of operand bytes")


def test_a_report_counts_tensors_on_the_device() -> None:
    call = Operation(1, "ttnn.to_torch", inputs=(1, 2), outputs=(3,))
    tensors = [
        record(1, 50, 100, dtype="FLOAT32"),
        record(2, 50, 100, layout="ROW_MAJOR"),
        record(3, 50, 100, dtype="FLOAT32", memory=None),
    ]
    wide, narrow = 64 * 128 * 4, 50 * 100 * 2
    assert ask(report=report([call], tensors)) == LIMIT.found(
        wide / (wide + narrow),
        "76.6 % of the bytes that ops take and give are float32",
        [Evidence("ttnn.to_torch 64x128", wide, "B")],
    )


def test_a_capture_without_operands() -> None:
    ops = table(op("UnaryDeviceOperation"), on_host("(torch) cat"))
    assert ask(ops=ops) == not_measured(NO_OPERANDS)
