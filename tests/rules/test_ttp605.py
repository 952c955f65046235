"""Batch norms beside convolutions."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp605_batchnorm_not_folded import (
    batchnorm_not_folded,
)
from pytest_ttnn_perf.records.finding import Evidence, Subject
from pytest_ttnn_perf.records.ttnn_report import Operation
from tests.rules.answers import ask
from tests.rules.convolving import called, conv, convolving, output
from tests.rules.reports import report
from tests.rules.tables import op, table, tensor

NORM = op("BatchNormOperation", [tensor(1, 64, 32, 32)], ns=70.0)


def test_batch_norms_that_run() -> None:
    ops = table(conv(), NORM, conv(), NORM)
    assert ask(batchnorm_not_folded, Subject(ops=ops)) == found(
        "2 batch norms beside 2 convolutions",
        value=2,
        limit=0,
        unit="batch norms",
        evidence=[Evidence("2 x BatchNorm 1x64x32x32", 140.0, "ns", 140 / 340)],
    )
    limit = batchnorm_not_folded.with_limits(batch_norms=2)
    assert ask(limit, Subject(ops=ops)).value == 2


def test_none_is_no_evidence() -> None:
    answer = ask(batchnorm_not_folded, Subject(ops=table(conv(), op("BinaryNgDeviceOperation"))))
    assert answer == clean(
        0,
        limit=0,
        unit="batch norms",
        reason="no evidence: a batch norm written as products and sums is not seen",
    )


def test_a_report_without_a_table() -> None:
    convolution = convolving((called(1), output(1)))
    operations = (*convolution.operations, Operation(2, "ttnn.batch_norm"))
    asked = Subject(report=report(operations))
    assert ask(batchnorm_not_folded, asked) == found(
        "1 batch norm beside 1 convolution",
        value=1,
        limit=0,
        unit="batch norms",
        evidence=[Evidence("ttnn.batch_norm (operation 2)")],
    )


def test_nothing_to_look_at() -> None:
    assert ask(batchnorm_not_folded, Subject()) == not_measured(
        "needs an op table or a report database"
    )
    alone = Subject(ops=table(NORM))
    assert ask(batchnorm_not_folded, alone) == not_applicable("no convolutions")
