from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp104_activations_above_bfloat16 import (
    activations_above_bfloat16,
)
from pytest_ttnn_perf.records.finding import Evidence, Subject
from pytest_ttnn_perf.records.ttnn_report import Operation
from tests.rules.answers import ask
from tests.rules.reports import record, report
from tests.rules.tables import op, table, tensor

RULE = activations_above_bfloat16
HALF, FULL = tensor(1, 1, 32, 32), tensor(1, 1, 32, 32, dtype="FLOAT32")


def test_results_in_float32() -> None:
    ops = table(
        op("TypecastDeviceOperation", [HALF], [FULL]), op("UnaryDeviceOperation", [FULL], [HALF])
    )
    assert ask(RULE, Subject(ops=ops)) == found(
        "66.7 % of the bytes that ops give are float32",
        value=4 / 6,
        limit=0.01,
        unit="of output bytes",
        evidence=[Evidence("Typecast 1x1x32x32", 4096, "B")],
    )


def test_float32_inputs_are_not_counted() -> None:
    ops = table(op("UnaryDeviceOperation", [FULL], [HALF]))
    assert ask(RULE, Subject(ops=ops)) == clean(0.0, limit=0.01, unit="of output bytes")


def test_a_share_at_the_limit_is_clean() -> None:
    ops = table(op("SplitDeviceOperation", [HALF], [FULL, HALF]))
    answer = ask(activations_above_bfloat16.with_limits(share=4 / 6), Subject(ops=ops))
    assert answer == clean(4 / 6, limit=4 / 6, unit="of output bytes")


def test_results_in_a_report() -> None:
    call = Operation(1, "ttnn.softmax", inputs=(1,), outputs=(2,))
    tensors = [record(1, 32, 32), record(2, 32, 32, dtype="FLOAT32")]
    answer = ask(RULE, Subject(report=report([call], tensors)))
    assert (answer.value, answer.evidence) == (1.0, (Evidence("ttnn.softmax 32x32", 4096, "B"),))


def test_a_capture_without_operands() -> None:
    answer = ask(RULE, Subject(ops=table(op("UnaryDeviceOperation"))))
    assert answer == not_measured(NO_OPERANDS)


def test_without_input() -> None:
    assert ask(RULE, Subject()) == not_measured("needs an op table or a report database")
