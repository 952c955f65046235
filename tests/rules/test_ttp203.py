"""Conversions between rows and tiles."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit
from tests.rules.tables import op, table, tensor

ask = Ask("TTP203")
LIMIT = limit(0.05, "of kernel time")
INPUT = tensor(1, 1, 32, 64)


def test_one_conversion() -> None:
    ops = table(op("TilizeDeviceOperation", [INPUT], ns=10.0), op("Matmul", ns=90.0))
    assert ask(ops=ops) == LIMIT.found(
        0.1,
        "10.0 % of the kernel time goes into 1 conversion",
        [Evidence("Tilize 1x1x32x64", 10.0, "ns", 0.1)],
    )


def test_conversions_of_two_kinds() -> None:
    rows = [op("UntilizeDeviceOperation", [INPUT], ns=20.0)] * 2
    ops = table(op("TilizeDeviceOperation", [INPUT], ns=10.0), *rows, op("Matmul", ns=50.0))
    assert ask(ops=ops) == LIMIT.found(
        0.5,
        "50.0 % of the kernel time goes into 3 conversions",
        [
            Evidence("2 x Untilize 1x1x32x64", 40.0, "ns", 0.4),
            Evidence("Tilize 1x1x32x64", 10.0, "ns", 0.1),
        ],
    )


@pytest.mark.parametrize(("ns", "share"), [(5.0, 0.05), (0.0, 0.0)])
def test_up_to_the_limit_it_is_clean(ns: float, share: float) -> None:
    ops = table(op("TilizeDeviceOperation", [INPUT], ns=ns), op("Matmul", ns=100.0 - ns))
    assert ask(ops=ops) == LIMIT.clean(share)
