"""Times of single cores, which no table holds yet."""

from __future__ import annotations

from pytest_ttnn_perf.checklist.rule import not_measured
from pytest_ttnn_perf.checklist.rules.ttp306_core_skew import CoreSkew
from pytest_ttnn_perf.model.subject import Subject
from tests.rules.answers import ask
from tests.rules.tables import op, table


def test_it_cannot_tell() -> None:
    asked = Subject(ops=table(op("Matmul")))
    assert ask(CoreSkew(), asked) == not_measured("the capture does not tell times per core")
    assert ask(CoreSkew(), Subject()) == not_measured("needs an op table")
