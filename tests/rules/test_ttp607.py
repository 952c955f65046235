"""Efficiency of convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp607_low_conv_efficiency import low_conv_efficiency
from pytest_ttnn_perf.records.finding import Evidence, Subject
from tests.rules.answers import ask
from tests.rules.tables import op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Op

OPERANDS = (tensor(1, 1, 32, 128), tensor(1, 1, 128, 64))
UNIT = "of the ideal"


def working(ns: float, ideal_ns: float | None) -> Op:
    """Return an op with the time that its model gives it."""
    return op("Conv2dDeviceOperation", OPERANDS, ns=ns, ideal_ns=ideal_ns)


def test_far_from_the_ideal() -> None:
    ops = table(working(100.0, 20.0), working(60.0, 20.0), op("Unary", ns=1.0, ideal_ns=1000.0))
    assert ask(low_conv_efficiency, Subject(ops=ops)) == found(
        "2 convolutions at 25.0 % of what the profiler's model allows",
        value=0.25,
        limit=0.5,
        unit=UNIT,
        evidence=[Evidence("2 x Conv2d 1x1x32x128", 120.0, "ns", 120 / 161)],
    )


def test_exactly_at_the_limit_is_clean() -> None:
    ops = table(working(100.0, 50.0))
    assert ask(low_conv_efficiency, Subject(ops=ops)) == clean(0.5, limit=0.5, unit=UNIT)


def test_one_that_beats_its_model_does_not_make_up_for_another() -> None:
    ops = table(working(100.0, 100_000.0), working(100.0, 20.0))
    assert ask(low_conv_efficiency, Subject(ops=ops)) == clean(0.6, limit=0.5, unit=UNIT)


def test_without_a_model_nothing_is_counted() -> None:
    ops = table(working(100.0, 80.0), working(900.0, None))
    assert ask(low_conv_efficiency, Subject(ops=ops)) == clean(
        0.8, limit=0.5, unit=UNIT, reason="no model of 1 of 2 convolutions"
    )
    assert ask(low_conv_efficiency, Subject(ops=table(working(9.0, None)))) == not_measured(
        "the profiler has no model of these convolutions"
    )


def test_nothing_to_look_at() -> None:
    assert ask(low_conv_efficiency, Subject()) == not_measured("needs an op table")
    others = Subject(ops=table(op("Unary")))
    assert ask(low_conv_efficiency, others) == not_applicable("no convolutions")
