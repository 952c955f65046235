"""A calibration, laid out, and its progress in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.report.listing import Listing
from pytest_ttnn_perf.report.numbers import format_fraction, format_value
from pytest_ttnn_perf.report.tables import table_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.model.calibration import Calibrated, Progress

_HEADINGS: Final = (
    "test", "metric", "median", "within", "between", "limit", "false alarms", "caught in 80 %",
)  # fmt: skip
_BAR: Final = 24
#: A rate below this is told as below it: nobody could check a smaller one.
_LEAST_RATE: Final = 0.0001
_MINUTE_S: Final = 60


def calibration_listing(
    rows: Sequence[Calibrated], troubles: Mapping[str, str], *, remarks: Sequence[str]
) -> Listing:
    """Lay out what sessions tell; ``remarks`` follow the table."""
    cells = [_cells(row) for row in rows]
    lines = table_lines(_HEADINGS, cells, right=frozenset(range(2, 8))) if rows else []
    lines += [f"failed {test}: {why}" for test, why in troubles.items()]
    fields = ("test", "metric", "unit", "sessions", "median", "within_sd", "between_sd", "limit",
              "false_alarm_rate", "smallest_caught")  # fmt: skip
    values = tuple(_values(row) for row in rows)
    document = {
        "tests": [dict(zip(fields, each, strict=True)) for each in values],
        "failed": dict(troubles),
        "remarks": list(remarks),
    }
    return Listing((*lines, *remarks), document, fields, values)


def progress_line(progress: Progress) -> str:
    """Return a bar, what is under way, and how long the rest will take."""
    filled = round(progress.fraction * _BAR)
    bar = "#" * filled + "-" * (_BAR - filled)
    tests = "" if progress.tests is None else f", test {progress.done} of {progress.tests}"
    left = "" if progress.left_s is None else f", about {_duration(progress.left_s)} left"
    side = "" if progress.side is None else f", {progress.side}"
    session = f"{progress.word} {progress.session} of {progress.sessions}{side}"
    return f"[{bar}] {session}{tests}{left}"


def _duration(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    minutes = seconds / _MINUTE_S
    return f"{minutes:.0f} min" if minutes < _MINUTE_S else f"{minutes / _MINUTE_S:.1f} h"


def _cells(row: Calibrated) -> tuple[str, ...]:
    metric = row.baseline.metric
    # As the gate's own table has them: half the throughput is a loss of 50 %.
    return (
        row.test,
        metric.name,
        format_value(metric, row.centre),
        _percent(row.within),
        _percent(row.between),
        format_fraction(metric.as_read(row.limit)),
        _rate(row.false_alarms),
        format_fraction(metric.as_read(row.caught)),
    )


def _values(row: Calibrated) -> tuple[object, ...]:
    metric = row.baseline.metric
    sessions = len(row.baseline.sessions)
    return (row.test, metric.name, metric.unit, sessions, row.centre, row.within, row.between,
            row.limit, row.false_alarms, row.caught)  # fmt: skip


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction * 100:.2f} %"


def _rate(rate: float | None) -> str:
    if rate is None:
        return "-"
    return f"< {_LEAST_RATE * 100:.2f} %" if rate < _LEAST_RATE else f"{rate * 100:.2f} %"
