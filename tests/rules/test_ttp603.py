"""Double buffers of activations (TTP603) and of weights (TTP604)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.checklist.runner import rule_of
from pytest_ttnn_perf.records.finding import RuleOutcome, Severity
from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.convolving import NOT_ASKED, called, conv, convolving, output
from tests.rules.tables import op, table

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ttnn_report import Report

UNIT = "of convolutions"
LIMIT = limit(0.0, UNIT)
BOTH = pytest.mark.parametrize(
    ("ask", "key", "noun"),
    [
        (Ask("TTP603"), "enable_act_double_buffer", "activations"),
        (Ask("TTP604"), "enable_weights_double_buffer", "weights"),
    ],
    ids=["TTP603", "TTP604"],
)


def switched(key: str) -> tuple[str, str]:
    """Return the attributes that switch something on, and off."""
    return f"{{'{key}': 'true'}}", f"{{'{key}': 'false'}}"


@BOTH
def test_some_have_none(ask: Ask, key: str, noun: str) -> None:
    on, off = switched(key)
    ops = table(
        conv(attributes=on),
        conv(attributes=off, ns=30.0),
        conv(attributes=off, ns=30.0),
        conv(attributes=off, pixels=64, ns=90.0),
        conv(),
    )
    assert ask(ops=ops) == LIMIT.found(
        0.75,
        f"{noun} not double-buffered in 3 of 4 convolutions",
        [
            Evidence("Conv2d 1x1x64x32", 90.0, "ns", 90 / 350),
            Evidence("2 x Conv2d 1x1x1024x32", 60.0, "ns", 60 / 350),
        ],
    )
    assert ask.with_limits(share=0.75)(ops=ops) == clean(0.75, limit=0.75, unit=UNIT)
    assert ask(ops=table(conv(attributes=on), op("Unary", attributes=off))) == LIMIT.clean(0.0)


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
    on, off = switched("enable_act_double_buffer")
    ops = table(
        conv(attributes=off, ns=100.0)._replace(ideal_ns=ideal_ns),
        conv(attributes=on, ns=100.0)._replace(ideal_ns=99.0),
    )
    answer = rule_of("TTP603").check(Subject(ops=ops, report=made))
    assert (answer.outcome, answer.severity) == (RuleOutcome.FOUND, severity)
    assert rule_of("TTP603").severity is Severity.WARNING


@BOTH
def test_a_report_without_a_table(ask: Ask, key: str, noun: str) -> None:
    on, off = (NOT_ASKED._replace(**{key: switch}) for switch in (True, False))  # type: ignore[arg-type]
    made = convolving((called(1, asked=on), output(1)), (called(2, asked=off), output(2)))
    assert ask(report=made) == LIMIT.found(
        0.5,
        f"{noun} not double-buffered in 1 of 2 convolutions",
        [Evidence("ttnn.conv2d (operation 2)")],
    )
    untold = not_measured(f"the capture does not tell whether {noun} are double-buffered")
    assert ask(ops=table(conv())) == untold
    assert ask(report=convolving((called(1, asked=None), output(1)))) == untold


@pytest.mark.parametrize("ask", [Ask("TTP603"), Ask("TTP604")])
def test_nothing_to_look_at(ask: Ask) -> None:
    assert ask(ops=table(op("Unary"))) == not_applicable("no convolutions")
