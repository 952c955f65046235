"""Two runs laid out side by side: the whole of every shape, and each note by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.cli.files import RunComparison, comparison_listing
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.observation import JudgedTest, Observation, Run
from pytest_ttnn_perf.experiments.paired import Pair, Reading
from pytest_ttnn_perf.report.tables import Style

if TYPE_CHECKING:
    from pytest_ttnn_perf.report.tables import Listing

TIME = Metric("latency", "ms")
RATE = Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
PCC = Metric("pcc", "", Better.HIGHER, Kind.ACCURACY)
COUNT = Metric("ops", "", Better.LOWER, Kind.COUNT)
LEVEL = Metric("ops", "", Better.EQUAL, Kind.COUNT)
BYTES = Metric("peak", "B", Better.LOWER, Kind.BYTES)
LONGER = Metric("uptime", "ms", Better.HIGHER)

AFTER = Run(None, {"t.py::a": JudgedTest(Observation("t.py::a"))}, complete=False)


def listing(*pairs: Pair) -> Listing:
    """Lay out some pairs of runs of which nothing else is known."""
    return comparison_listing(RunComparison(AFTER, AFTER, pairs), names=("b.json", "a.json"))


def pair(metric: Metric, before: float | None, after: float | None) -> Pair:
    """Return one metric, measured in both runs."""
    return Pair("t.py::t", metric.name, Reading(metric, before), Reading(metric, after))


def cells(row: Pair) -> list[str]:
    """Return the values, the change and the note of a row."""
    line = listing(row).text("table", Style()).splitlines()[6]
    return [cell.strip() for cell in line.split("  ") if cell.strip()][2:]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (pair(TIME, 8.0, 6.0), ["8.000 ms", "6.000 ms", "-25.0 %", "better"]),
        (pair(RATE, 200.0, 150.0), ["200.0 tok/s", "150.0 tok/s", "-25.0 %", "worse"]),
        (pair(RATE, 200.0, 250.0), ["200.0 tok/s", "250.0 tok/s", "+25.0 %", "better"]),
        (pair(LONGER, 8.0, 6.0), ["8.000 ms", "6.000 ms", "-25.0 %", "worse"]),
        (pair(LEVEL, 12, 9), ["12", "9", "-25.0 %", "different"]),
        (pair(LEVEL, 12, 12), ["12", "12", "0.0 %", "unchanged"]),
        # The unit is that of the value before, so that nobody compares ms with us.
        (pair(TIME, 8.0, 0.4), ["8.000 ms", "0.4000 ms", "-95.0 %", "better"]),
        (pair(PCC, -0.5, 0.5), ["-0.5", "0.5", "+200.0 %", "better"]),
    ],
)
def test_plus_is_more_and_the_note_says_whether_that_is_worse(
    row: Pair, expected: list[str]
) -> None:
    assert cells(row) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        # A time is read by its per cent ...
        (pair(TIME, 10.0, 10.004), ["10.00 ms", "10.00 ms", "0.0 %", "unchanged"]),
        (pair(TIME, 10.0, 10.006), ["10.00 ms", "10.01 ms", "+0.1 %", "worse"]),
        # ... an accuracy, an amount and a count by the digits that are shown ...
        (pair(PCC, 0.9999, 0.9996), ["0.9999", "0.9996", "0.0 %", "worse"]),
        (pair(PCC, 0.9999, 0.99990001), ["0.9999", "0.9999", "0.0 %", "unchanged"]),
        (pair(BYTES, 2**30, 2**30 + 1), ["1.000 GiB", "1.000 GiB", "0.0 %", "unchanged"]),
        (pair(COUNT, 100_000, 100_001), ["100000", "100001", "0.0 %", "worse"]),
        # ... and what must not change by every digit it has.
        (pair(LEVEL, 0.5, 0.500001), ["0.5000", "0.5000", "0.0 %", "different"]),
    ],
)
def test_what_differs_only_by_rounding_is_unchanged(row: Pair, expected: list[str]) -> None:
    assert cells(row) == expected


@pytest.mark.parametrize("before", [0.0, 1e-300])
def test_a_change_that_is_beyond_any_measure_has_a_direction_but_no_size(before: float) -> None:
    row = pair(COUNT, before, 1e99)
    assert (row.change, cells(row)[2:]) == (None, ["-", "worse"])
