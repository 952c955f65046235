"""A finding as it is printed, and its numbers in their units."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.report.checklist import shown


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.05, "of kernel time", "5.0 % of kernel time"),
        (0.1, "above the mean", "10.0 % above the mean"),
        (202_500, "ns", "202.5 us"),
        (1, "B", "1 B"),
        (430_080, "bytes", "420.0 KiB"),
        (15_728_640, "B saved", "15.00 MiB saved"),
        (1, "ops", "1 op"),
        (2, "ops", "2 ops"),
        (0, "losses", "0 losses"),
        (1, "processes", "1 process"),
        (1.0, "transfers per barrier", "1 transfer per barrier"),
        (1, "GB/s", "1 GB/s"),
        (1, "fps", "1 fps"),
        (1, "x the median", "1 x the median"),
        (1234.5, "", "1,234"),
    ],
)
def test_a_number_in_its_unit(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text
