from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from tests.rules.answers import Ask, Evidence, clean, limit, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import op, table, tensor

ask = Ask("TTP104")
LIMIT = limit(0.01, "of output bytes")
HALF, FULL = tensor(1, 1, 32, 32), tensor(1, 1, 32, 32, dtype="FLOAT32")


def test_results_in_float32() -> None:
    ops = table(
        op("TypecastDeviceOperation", [HALF], [FULL]), op("UnaryDeviceOperation", [FULL], [HALF])
    )
    assert ask(ops=ops) == LIMIT.found(
        4 / 6,
        "66.7 % of the bytes that ops give are float32",
        [Evidence("Typecast 1x1x32x32", 4096, "B")],
    )


def test_float32_inputs_are_not_counted() -> None:
    assert ask(ops=table(op("UnaryDeviceOperation", [FULL], [HALF]))) == LIMIT.clean(0.0)


def test_a_share_at_the_limit_is_clean() -> None:
    ops = table(op("SplitDeviceOperation", [HALF], [FULL, HALF]))
    answer = ask.with_limits(share=4 / 6)(ops=ops)
    assert answer == clean(4 / 6, limit=4 / 6, unit="of output bytes")


def test_results_in_a_report() -> None:
    call = Operation(1, "ttnn.softmax", inputs=(1,), outputs=(2,))
    tensors = [record(1, 32, 32), record(2, 32, 32, dtype="FLOAT32")]
    answer = ask(report=report([call], tensors))
    assert (answer.value, answer.evidence) == (1.0, (Evidence("ttnn.softmax 32x32", 4096, "B"),))


def test_a_capture_without_operands() -> None:
    assert ask(ops=table(op("UnaryDeviceOperation"))) == not_measured(NO_OPERANDS)
