"""Series of a metric over runs, as tables and sparklines."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import median
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.core.verdict import Outcome
from pytest_ttnn_perf.report.tables import (
    BELOW,
    DROPPED,
    METRIC,
    OUTCOME_COLOURS,
    UNLIMITED,
    Column,
    Columns,
    Fit,
    Line,
    Listing,
    format_change,
    format_value,
    id_column,
    stdout_style,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.history.runs import Reading, RecordedRun

    Setting = tuple[tuple[str, Scalar], ...]
    from collections.abc import Iterator

    from pytest_ttnn_perf.history.runs import RunHistory
    from pytest_ttnn_perf.report.tables import Block


# Series: one metric of one test on one hardware key, run after run.


class Point(NamedTuple):
    """One run's value; ``number`` is the run's position."""

    number: int
    run: RecordedRun
    reading: Reading


class Series(Struct, frozen=True):
    """Comparable values of one metric of a test, in run order.

    ``setting`` is the configuration of the test: with another one, another series begins.
    """

    test: str
    metric: Metric
    key: str
    setting: Setting
    points: tuple[Point, ...]

    @property
    def values(self) -> list[float]:
        """The numbers alone."""
        return [point.reading.value for point in self.points]

    @property
    def last(self) -> Point:
        """The newest number."""
        return self.points[-1]

    @property
    def gated(self) -> bool:
        """Whether the last run judged it by itself."""
        return self.last.reading.gated and not self.last.reading.explains

    @property
    def by_ratio(self) -> bool:
        """Whether its changes are ratios: times and throughputs, all above zero."""
        return self.metric.compared_by_ratio and min(self.values) > 0

    @property
    def since_accept(self) -> float | None:
        """Relative change of the last runs from the accepted baseline.

        None where the last run has no baseline to compare with.
        """
        verdict = self.last.reading.verdict
        if verdict is None or not verdict.centre:
            return None
        return median(self.values[-LATEST:]) / verdict.centre - 1


#: So many runs say where a series is now.
LATEST: Final = 3
#: Outcomes whose number becomes what the next one is compared with, once it is stored.
_ACCEPTING: Final = frozenset({Outcome.REGRESSED, Outcome.IMPROVED, Outcome.SHIFTED})


def series_of(
    runs: Sequence[RecordedRun], *, metric: str | None = None, across_hosts: bool = False
) -> list[Series]:
    """Group the readings of ordered runs into series.

    Where keys have the host in them, each host has series of its own, unless ``across_hosts``.
    """
    found: dict[tuple[str, Metric, str, Setting], list[Point]] = defaultdict(list)
    for number, run in enumerate(runs):
        for reading in run.readings:
            if metric is None or reading.metric.name == metric:
                key = _without_host(reading.key) if across_hosts else reading.key
                identity = (reading.test, reading.metric, key, reading.setting)
                found[identity].append(Point(number, run, reading))
    return [Series(*identity, tuple(points)) for identity, points in found.items()]


@cache
def _without_host(key: str) -> str:
    """Return the key that hosts of one kind share.

    >>> _without_host("wormhole_b0-n150-1x1-host_lab7"), _without_host("anything else")
    ('wormhole_b0-n150-1x1', 'anything else')
    """
    hardware = Hardware.from_key(key)
    return replace(hardware, host=None).key if hardware and hardware.host else key


def chosen(series: Sequence[Series], tests: Collection[str]) -> list[Series]:
    """Series of some tests, sorted by test, metric and key."""
    kept = (each for each in series if each.test in tests)
    return sorted(kept, key=lambda s: (s.test, s.metric.name, s.key, s.last.number))


def mark_of(point: Point) -> str:
    """Effect of a run on the baseline: accepted, stored, or none."""
    reading = point.reading
    if not reading.written or reading.verdict is None:
        return ""
    if reading.verdict.outcome in _ACCEPTING:
        return "accepted"
    return "" if reading.verdict.outcome is Outcome.WITHIN else "stored"


def change(before: float | None, after: float) -> float | None:
    """Relative change (0.05 = 5 %); None from zero."""
    return None if not before else (after - before) / abs(before)


_BARS: Final = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """Draw numbers in at most ``width`` characters.

    >>> sparkline([1.0, 1.0, 2.0, 3.0], 8), sparkline([5.0, 5.0], 8), sparkline(range(100), 4)
    ('▁▁▅█', '▄▄', '▁▃▆█')
    """
    count = min(len(values), width)
    bounds = [round(place * len(values) / count) for place in range(count + 1)] if count else []
    drawn = [median(values[begin:end]) for begin, end in pairwise(bounds)]
    low, high = min(drawn, default=0.0), max(drawn, default=0.0)
    if low == high:
        return _BARS[3] * count
    # Noise of a tenth of a per cent is no mountain range.
    span = max(high - low, abs(high) * 0.01)
    return "".join(_BARS[round((value - low) / span * (len(_BARS) - 1))] for value in drawn)


#: A sparkline in a table, and the widest one above a table.
_IN_TABLE: Final = 12
_WIDEST: Final = 72


def overview_listing(series: Sequence[Series], history: RunHistory) -> Listing:
    """Lay out one row per series."""
    lines: list[Block] = [*_OVERVIEW.table(series)]
    count = f"{counted(len(series), 'metric')} of {counted(len({s.test for s in series}), 'test')}"
    lines += [f"{count} in {counted(len(history.runs), 'run')}", *history_lines(history)]
    document = {"series": _OVERVIEW.objects(series), **history_document(history)}
    return Listing(tuple(lines), document, _OVERVIEW.names, _OVERVIEW.rows(series))


def _verdict(point: Point) -> str | None:
    verdict = point.reading.verdict
    return verdict.outcome.value if verdict else None


def _verdict_colour(point: Point) -> str | None:
    verdict = point.reading.verdict
    return OUTCOME_COLOURS.get(verdict.outcome) if verdict else None


_OVERVIEW: Final[Columns[Series]] = Columns(
    Column("key", lambda s: s.key, "key", once=True, title=lambda s: s.key),
    id_column(lambda s: s.test),
    Column("metric", lambda s: s.metric.name, "metric", fit=METRIC),
    Column("unit", lambda s: s.metric.unit),
    Column("last", lambda s: s.last.reading.value, "last",
           lambda s: format_value(s.metric, s.last.reading.value), right=True),
    Column("", lambda s: sparkline(s.values, _IN_TABLE), "history", fit=DROPPED[2]),
    Column("runs", lambda s: len(s.points), "runs", right=True),
    Column("since_accept", lambda s: s.since_accept, "since accept",
           lambda s: format_change(s.since_accept), right=True),
    Column("verdict", lambda s: _verdict(s.last), "last verdict", lambda s: _verdict(s.last) or "-",
           fit=DROPPED[1], colour=lambda s: _verdict_colour(s.last)),
    Column("at", lambda s: s.last.run.at),
    Column("commit", lambda s: s.last.run.commit),
)  # fmt: skip


class _Row(NamedTuple):
    """A run of a series, after the one before it."""

    series: Series
    point: Point
    before: Point | None

    @property
    def change(self) -> float | None:
        """How much more than in the run before."""
        if self.before is None:
            return None
        return change(self.before.reading.value, self.point.reading.value)

    @property
    def from_baseline(self) -> float | None:
        """How much more than the baseline, as that run had it."""
        verdict = self.point.reading.verdict
        return verdict.change_as_read if verdict else None

    @property
    def marks(self) -> str:
        """Notes on the run."""
        run = self.point.run
        marks = (
            mark_of(self.point),
            "dirty" if run.environment.dirty else "",
            "" if run.complete else "cut short",
            run.label or "",
        )
        return ", ".join(filter(None, marks))


_ROWS: Final[Columns[_Row]] = Columns(
    Column("test", lambda r: r.series.test),
    Column("metric", lambda r: r.series.metric.name),
    Column("key", lambda r: r.series.key),
    Column("unit", lambda r: r.series.metric.unit),
    Column("at", lambda r: r.point.run.at, "date", lambda r: r.point.run.day),
    Column("commit", lambda r: r.point.run.commit, "commit", lambda r: r.point.run.short_commit),
    Column("host", lambda r: r.point.run.host, "host", fit=Fit(least=8, middle=True)),
    Column("value", lambda r: r.point.reading.value, "value",
           lambda r: format_value(r.series.metric, r.point.reading.value,
                                  beside=r.series.last.reading.value), right=True),
    Column("change", lambda r: r.change, "change", lambda r: format_change(r.change), right=True),
    Column("from_baseline", lambda r: r.from_baseline, "of baseline",
           lambda r: format_change(r.from_baseline), right=True, fit=DROPPED[1]),
    Column("verdict", lambda r: _verdict(r.point), "verdict", lambda r: _verdict(r.point) or "-",
           colour=lambda r: _verdict_colour(r.point)),
    Column("accept", lambda r: mark_of(r.point) or None),
    Column("dirty", lambda r: r.point.run.environment.dirty),
    Column("complete", lambda r: r.point.run.complete),
    Column("label", lambda r: r.point.run.label),
    Column("run", lambda r: r.point.run.id),
    Column("", lambda r: r.marks, "marks", fit=BELOW),
)  # fmt: skip


def runs_listing(series: Sequence[Series], history: RunHistory, *, all_metrics: bool) -> Listing:
    """Lay out one row per run of each series."""
    judged = [each for each in series if each.gated]
    shown = series if all_metrics or not judged else judged
    rows = [
        [_Row(s, point, before) for before, point in zip((None, *s.points), s.points, strict=False)]
        for s in shown
    ]
    lines: list[Block] = []
    for each, own in zip(shown, rows, strict=True):
        lines += [_heading(each), Line(f"  {_drawn(each)}", drawn=True), *_ROWS.table(own), ""]
    other = len(series) - len(shown)
    if other:
        lines.append(f"{counted(other, 'metric')} not shown, as no verdict is given on them: "
                     "--metric NAME")  # fmt: skip
    lines += history_lines(history)
    every = list(chain.from_iterable(rows))
    document = {"runs": _ROWS.objects(every), **history_document(history)}
    return Listing(tuple(lines), document, _ROWS.names, _ROWS.rows(every))


def _heading(series: Series) -> str:
    setting = ", ".join(f"{name}={value}" for name, value in series.setting)
    parts = (series.test, series.metric.name, series.key, counted(len(series.points), "run"))
    return ", ".join(filter(None, (*parts, setting)))


def _drawn(series: Series) -> str:
    """Draw a series in the width there is."""
    width = stdout_style().width
    return sparkline(series.values, _WIDEST if width == UNLIMITED else min(width - 4, _WIDEST))


def history_lines(history: RunHistory) -> Iterator[str]:
    """Yield excluded runs and notes on the order."""
    for why, count in history.left_out:
        yield f"left out: {counted(count, 'run')} {why}"
    if history.unreadable:
        yield f"left out: {counted(len(history.unreadable), 'file')} that cannot be read:"
        yield from (f"  {problem}" for problem in history.unreadable)
    yield from history.notes


def history_document(history: RunHistory) -> dict[str, object]:
    """Return the same for programs."""
    return {
        "left_out": [{"why": why, "runs": count} for why, count in history.left_out],
        "unreadable": list(history.unreadable),
        "notes": list(history.notes),
    }
