"""The history of tests, laid out: one row per run, or one per series."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.history.series import change, mark_of, sparkline
from pytest_ttnn_perf.report.layout import (
    BELOW,
    DROPPED,
    METRIC,
    UNLIMITED,
    Fit,
    Line,
    stdout_style,
)
from pytest_ttnn_perf.report.numbers import (
    Column,
    Columns,
    Listing,
    format_change,
    format_value,
    id_column,
    outcome_colour,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.history.runs import RunHistory
    from pytest_ttnn_perf.history.series import Point, Series
    from pytest_ttnn_perf.report.layout import Block

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
    return outcome_colour(verdict.outcome) if verdict else None


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
        """What else is to be known of the run."""
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
    """Lay out one row per run of each series: of those that are judged, or of all."""
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
    """Say which runs are not looked at, and how far their order can be trusted."""
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
