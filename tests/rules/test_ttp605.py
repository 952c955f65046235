"""Batch norms beside convolutions."""

from __future__ import annotations

from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable
from tests.rules.convolving import called, conv, convolving, output
from tests.rules.reports import Operation, report
from tests.rules.tables import op, table, tensor

ask = Ask("TTP605")
LIMIT = limit(0, "batch norms")
NORM = op("BatchNormOperation", [tensor(1, 64, 32, 32)], ns=70.0)


def test_batch_norms_that_run() -> None:
    ops = table(conv(), NORM, conv(), NORM)
    assert ask(ops=ops) == LIMIT.found(
        2,
        "2 batch norms beside 2 convolutions",
        [Evidence("2 x BatchNorm 1x64x32x32", 140.0, "ns", 140 / 340)],
    )
    assert ask.with_limits(batch_norms=2)(ops=ops).value == 2


def test_none_is_no_evidence() -> None:
    assert ask(ops=table(conv(), op("BinaryNgDeviceOperation"))) == LIMIT.clean(
        0, reason="no evidence: a batch norm written as products and sums is not seen"
    )


def test_a_report_without_a_table() -> None:
    convolution = convolving((called(1), output(1)))
    operations = (*convolution.operations, Operation(2, "ttnn.batch_norm"))
    assert ask(Subject(report=report(operations))) == LIMIT.found(
        1, "1 batch norm beside 1 convolution", [Evidence("ttnn.batch_norm (operation 2)")]
    )


def test_nothing_to_look_at() -> None:
    assert ask(Subject(ops=table(NORM))) == not_applicable("no convolutions")
