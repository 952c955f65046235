"""Double buffers of activations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp603_act_double_buffer_off import (
    act_double_buffer_off,
)
from pytest_ttnn_perf.records.finding import Evidence, RuleOutcome, Severity, Subject
from tests.rules.answers import ask
from tests.rules.convolving import NOT_ASKED, called, conv, convolving, output
from tests.rules.tables import op, table

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ttnn_report import Report

ON, OFF = "{'enable_act_double_buffer': 'true'}", "{'enable_act_double_buffer': 'false'}"
UNIT = "of convolutions"


def test_some_have_none() -> None:
    ops = table(
        conv(attributes=ON),
        conv(attributes=OFF, ns=30.0),
        conv(attributes=OFF, ns=30.0),
        conv(attributes=OFF, pixels=64, ns=90.0),
        conv(),
    )
    assert ask(act_double_buffer_off, Subject(ops=ops)) == found(
        "activations not double-buffered in 3 of 4 convolutions",
        value=0.75,
        limit=0.0,
        unit=UNIT,
        evidence=[
            Evidence("Conv2d 1x1x64x32", 90.0, "ns", 90 / 350),
            Evidence("2 x Conv2d 1x1x1024x32", 60.0, "ns", 60 / 350),
        ],
    )
    limit = act_double_buffer_off.with_limits(share=0.75)
    assert ask(limit, Subject(ops=ops)) == clean(0.75, limit=0.75, unit=UNIT)


FITS = convolving((called(1, circular=4_000, tensors=2_000), output(1)))


@pytest.mark.parametrize(
    ("ideal_ns", "made", "severity"),
    [
        (65.0, FITS, None),
        (64.9, FITS, Severity.INFO),
        (None, FITS, Severity.INFO),
        (65.0, None, Severity.INFO),
        (65.0, convolving((called(1, circular=4_000, tensors=2_001), output(1))), Severity.INFO),
        (65.0, convolving((called(1, circular=None), output(1))), Severity.INFO),
    ],
    ids=["pays", "not compute-bound", "no model", "no report", "no room", "room not told"],
)
def test_a_warning_only_where_it_is_known_to_pay(
    ideal_ns: float | None, made: Report | None, severity: Severity | None
) -> None:
    ops = table(
        conv(attributes=OFF, ns=100.0)._replace(ideal_ns=ideal_ns),
        conv(attributes=ON, ns=100.0)._replace(ideal_ns=99.0),
    )
    answer = act_double_buffer_off.check(Subject(ops=ops, report=made))
    assert (answer.outcome, answer.severity) == (RuleOutcome.FOUND, severity)
    assert act_double_buffer_off.severity is Severity.WARNING


def test_all_have_them() -> None:
    ops = table(conv(attributes=ON), op("Unary", attributes=OFF))
    assert ask(act_double_buffer_off, Subject(ops=ops)) == clean(0.0, limit=0.0, unit=UNIT)


def test_a_report_without_a_table() -> None:
    on, off = (NOT_ASKED._replace(enable_act_double_buffer=switch) for switch in (True, False))
    made = convolving((called(1, asked=on), output(1)), (called(2, asked=off), output(2)))
    assert ask(act_double_buffer_off, Subject(report=made)) == found(
        "activations not double-buffered in 1 of 2 convolutions",
        value=0.5,
        limit=0.0,
        unit=UNIT,
        evidence=[Evidence("ttnn.conv2d (operation 2)")],
    )


def test_inputs_that_do_not_tell() -> None:
    rule = act_double_buffer_off
    assert ask(rule, Subject()) == not_measured("needs an op table or a report database")
    assert ask(rule, Subject(ops=table(op("Unary")))) == not_applicable("no convolutions")
    unavailable = not_measured("the capture does not tell whether activations are double-buffered")
    assert ask(rule, Subject(ops=table(conv()))) == unavailable
    unasked = convolving((called(1, asked=None), output(1)))
    assert ask(rule, Subject(report=unasked)) == unavailable
