"""Numbers at every boundary of their units."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.report.tables import format_change, format_value

TIME = Metric("t", "ns")
BYTES = Metric("b", "B", kind=Kind.BYTES)
COUNT = Metric("c", "", kind=Kind.COUNT)
RATE = Metric("r", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
PCC = Metric("p", "", Better.HIGHER, Kind.ACCURACY)


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        (TIME, 1, "1.000 ns"),
        (TIME, 999.94, "999.9 ns"),
        (TIME, 999.96, "1.000 µs"),
        (TIME, 12_410, "12.41 µs"),
        (TIME, 9_999_999.9, "10.00 ms"),
        (TIME, 1e9, "1.000 s"),
        (TIME, 7_200e9, "7200 s"),
        (Metric("t", "ms"), 0.5, "500.0 µs"),
        (BYTES, 1023, "1023 B"),
        (BYTES, 1024, "1.000 KiB"),
        (BYTES, 3 * 1024**3, "3.000 GiB"),
        (COUNT, 12, "12"),
        (COUNT, 12.5, "12.50"),
        (RATE, 21.4, "21.40 tok/s"),
        (RATE, 1e-9, "1.000e-09 tok/s"),
        (PCC, 0.99123456, "0.991235"),
        (PCC, 1 - 1e-9, ">0.999999"),
        (TIME, None, "-"),
    ],
)
def test_value_with_its_unit(metric: Metric, value: float | None, text: str) -> None:
    assert format_value(metric, value) == text


def test_a_value_takes_the_unit_of_the_one_beside_it() -> None:
    assert format_value(TIME, 990_000, beside=1_000_000) == "0.9900 ms"


@pytest.mark.parametrize(
    ("change", "text"),
    [(0.218, "+21.8 %"), (-0.05, "-5.0 %"), (0.0004, "0.0 %"), (-0.0004, "0.0 %"), (None, "-")],
)
def test_change(change: float | None, text: str) -> None:
    assert format_change(change) == text
