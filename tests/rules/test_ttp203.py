"""Conversions between rows and tiles."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import clean, found
from pytest_ttnn_perf.analysis.checklist.rules.ttp203_layout_conversions import layout_conversions
from pytest_ttnn_perf.records.finding import Evidence, Subject
from tests.rules.answers import ask
from tests.rules.tables import op, table, tensor

RULE = layout_conversions
INPUT = tensor(1, 1, 32, 64)
UNIT = "of kernel time"


def test_one_conversion() -> None:
    ops = table(op("TilizeDeviceOperation", [INPUT], ns=10.0), op("Matmul", ns=90.0))
    assert ask(RULE, Subject(ops=ops)) == found(
        "10.0 % of the kernel time goes into 1 conversion",
        value=0.1,
        limit=0.05,
        unit=UNIT,
        evidence=[Evidence("Tilize 1x1x32x64", 10.0, "ns", 0.1)],
    )


def test_conversions_of_two_kinds() -> None:
    rows = [op("UntilizeDeviceOperation", [INPUT], ns=20.0)] * 2
    ops = table(op("TilizeDeviceOperation", [INPUT], ns=10.0), *rows, op("Matmul", ns=50.0))
    assert ask(RULE, Subject(ops=ops)) == found(
        "50.0 % of the kernel time goes into 3 conversions",
        value=0.5,
        limit=0.05,
        unit=UNIT,
        evidence=[
            Evidence("2 x Untilize 1x1x32x64", 40.0, "ns", 0.4),
            Evidence("Tilize 1x1x32x64", 10.0, "ns", 0.1),
        ],
    )


@pytest.mark.parametrize(("ns", "share"), [(5.0, 0.05), (0.0, 0.0)])
def test_up_to_the_limit_it_is_clean(ns: float, share: float) -> None:
    ops = table(op("TilizeDeviceOperation", [INPUT], ns=ns), op("Matmul", ns=100.0 - ns))
    assert ask(RULE, Subject(ops=ops)) == clean(share, limit=0.05, unit=UNIT)
