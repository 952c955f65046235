"""A calibration laid out, and its progress in one line."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.core.baseline import MetricBaseline, Session
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.experiments.calibrate import (
    MetricNoise,
    calibration_listing,
)
from pytest_ttnn_perf.report.tables import Style

TIME = Metric("latency", "ms")
RATE = Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
SESSIONS = (Session(10.0, 0.1, 5), Session(10.2, 0.1, 5))


def row(
    metric: Metric = TIME,
    *,
    between: float | None = 0.02,
    false_alarms: float | None = 0.0005,
    caught: float | None = 0.25,
) -> MetricNoise:
    """Return a calibrated metric."""
    return MetricNoise(
        test="t.py::t",
        baseline=MetricBaseline(metric, SESSIONS),
        centre=10.1,
        within=0.0151,
        between=between,
        limit=0.05,
        false_alarms=false_alarms,
        caught=caught,
    )


def cells_of(*rows: MetricNoise) -> list[list[str]]:
    """Return the cells of the table's rows, without its headings."""
    lines = calibration_listing(rows, {}, remarks=()).text("table", Style()).splitlines()
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[2:]]


def test_limits_of_a_throughput_read_as_in_the_gates_own_table() -> None:
    """A time that is 25 % longer is a throughput that is 20 % lower."""
    ((*_, limit, _, caught),) = cells_of(row(RATE))
    assert (limit, caught) == ("4.8 %", "20.0 %")


def test_one_session_leaves_open_what_only_two_can_tell() -> None:
    ((*_, between, limit, rate, caught),) = cells_of(
        row(between=None, false_alarms=None, caught=None)
    )
    assert (between, limit, rate, caught) == ("-", "5.0 %", "-", "-")


@pytest.mark.parametrize(
    ("rate", "said"), [(0.0, "< 0.01 %"), (0.00009, "< 0.01 %"), (0.0001, "0.01 %")]
)
def test_a_rate_that_nobody_could_check_is_told_as_below_one(rate: float, said: str) -> None:
    ((*_, found, _),) = cells_of(row(false_alarms=rate))
    assert found == said
