"""What a page shows of earlier runs: the history of each metric, and trends."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import visible
from pytest_ttnn_perf.history.series import mark_of, series_of
from pytest_ttnn_perf.history.trends_report import changed_beside, changes_of, headline
from pytest_ttnn_perf.records.metric import Better, Kind
from pytest_ttnn_perf.report.page.contents import PageChange, PageHistory, PageRun, PageTrend

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.history.runs import RecordedRun, RunHistory
    from pytest_ttnn_perf.history.series import Series
    from pytest_ttnn_perf.history.trends_report import Told
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.metric import Metric

    #: A metric of a test, on hardware, in a configuration.
    Identity = tuple[str, Metric, str, tuple[tuple[str, Scalar], ...]]

#: So many runs are shown if nobody says otherwise.
USUAL_RUNS: Final = 50
#: So many tests are named of one change.
_MOST_TESTS: Final = 50
_NO_HISTORY: Final = PageHistory()


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """Runs, the history of each metric in them, and what changed for many of them or for good."""

    runs: tuple[PageRun, ...] = ()
    histories: Mapping[Identity, PageHistory] | None = None
    trends: tuple[PageTrend, ...] = ()

    def of(self, identity: Identity) -> PageHistory:
        """Return the history of a metric; an empty one where no run has it."""
        return (self.histories or {}).get(identity, _NO_HISTORY)


def earlier_runs(history: RunHistory) -> EarlierRuns:
    """Return what a page shows of runs that are in order."""
    groups = changes_of(history).groups
    changed: dict[Identity, list[Told]] = defaultdict(list)
    for group in groups:
        for told in group:
            if told.series is not None:
                changed[_identity(told.series)].append(told)
    histories = {
        _identity(series): _history(series, changed.get(_identity(series), ()))
        for series in series_of(history.runs)
    }
    trends = tuple(_trend(group) for group in groups)
    return EarlierRuns(tuple(map(_run, history.runs)), histories, trends)


def seen(metric: Metric, value: float) -> float:
    """Return a number in as many digits as can be seen; counts and accuracies are exact.

    Of a PCC, the last digits are those that matter: what is short of 1 never reads as 1.

    >>> from pytest_ttnn_perf.records.metric import Metric
    >>> seen(Metric("wall_time", "ns"), 12_345_678.9), seen(Metric("wall_time", "ms"), 1 / 3)
    (12345700, 0.333333)
    """
    exact = metric.kind in {Kind.COUNT, Kind.BYTES, Kind.ACCURACY} or metric.better is Better.EQUAL
    rounded = value if exact else float(f"{value:.6g}")
    whole = int(rounded) if abs(rounded) < 1e15 else None
    return whole if whole == rounded else rounded


def _identity(series: Series) -> Identity:
    return series.test, series.metric, series.key, series.setting


def _run(run: RecordedRun) -> PageRun:
    texts = (run.id, run.at, run.commit, run.environment.branch, run.host, run.label)
    return PageRun(*(visible(text or "") for text in texts))


def _history(series: Series, told: Sequence[Told]) -> PageHistory:
    points = series.points
    verdicts = (point.reading.verdict for point in points)
    return PageHistory(
        runs=tuple(point.number for point in points),
        values=tuple(seen(series.metric, point.reading.value) for point in points),
        outcomes=tuple(verdict.outcome.value if verdict else "" for verdict in verdicts),
        marks=tuple(map(mark_of, points)),
        changes=tuple(_changes(series, told)),
    )


def _changes(series: Series, told: Sequence[Told]) -> Iterator[PageChange]:
    places = {point.number: place for place, point in enumerate(series.points)}
    for one in sorted(told, key=lambda each: each.trend.bad):
        yield PageChange(
            before=places[one.trend.good],
            after=places[one.trend.bad],
            change=round(one.change or 0.0, 4),
            worse=one.direction == "worse",
            cause=visible("; or ".join(one.causes)),
            command=one.command or "",
        )


def _trend(group: Sequence[Told]) -> PageTrend:
    first = group[0]
    tests = dict.fromkeys(one.series.test for one in group if one.series is not None)
    detail = [*changed_beside(first)]
    detail += [
        f"{one.series.test} by op: {one.by_op}"
        for one in group[:_MOST_TESTS]
        if one.series is not None and one.by_op is not None
    ]
    if len(tests) > _MOST_TESTS:
        detail.append(f"and {len(tests) - _MOST_TESTS} more tests; ttnn-perf trends lists all")
    return PageTrend(
        title=visible(headline(first)),
        detail=tuple(map(visible, detail)),
        worse=any(one.direction == "worse" for one in group),
        kind=first.trend.kind.value,
        tests=tuple(map(visible, tests))[:_MOST_TESTS],
        command=next((one.command for one in group if one.command), ""),
    )
