"""Changes of many series, laid out: by what they come from, the newest first."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache, cached_property
from math import log
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.history.history_report import history_document, history_lines
from pytest_ttnn_perf.history.series import series_of
from pytest_ttnn_perf.history.steps import LEAST_SERIES
from pytest_ttnn_perf.history.trends import NOTHING_RECORDED, Kind, find_trends, tracks_of
from pytest_ttnn_perf.records.metric import median
from pytest_ttnn_perf.report.layout import DROPPED, METRIC, Line
from pytest_ttnn_perf.report.numbers import (
    Column,
    Columns,
    Listing,
    format_change,
    format_value,
    id_column,
)
from pytest_ttnn_perf.report.sentences import command_line, place_of
from pytest_ttnn_perf.run.judge import observed_change_by_op

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_ttnn_perf.history.runs import RecordedRun, RunHistory
    from pytest_ttnn_perf.history.series import Series
    from pytest_ttnn_perf.history.trends import Difference, Trend
    from pytest_ttnn_perf.records.observation import Observation, Run
    from pytest_ttnn_perf.report.layout import Block

#: Of one cause, so many tests are shown; the other formats have all.
_SHOWN: Final = 10
#: So much of a commit's name is given to git.
_COMMIT: Final = 12
#: The runs beside a change that its levels are taken of.
_BESIDE: Final = 5


class Told:
    """A change with all that is said of it; ``series`` is None for one of most tests.

    ``every`` are the series that were looked at.
    """

    def __init__(
        self,
        trend: Trend,
        every: Sequence[Series],
        runs: Sequence[RecordedRun],
        record: Callable[[int], Run | None],
    ) -> None:
        self.trend, self._record = trend, record
        self.series = None if trend.track is None else every[trend.track]
        self._alike = [s for s in every if (s.key, s.metric.source.value) == trend.group]
        self.good, self.bad = runs[trend.good], runs[trend.bad]

    @property
    def change(self) -> float | None:
        """How much more there is than before, as a reader finds it from two values."""
        worse = self.trend.change
        return self.series.metric.as_read(worse) if self.series else worse

    @property
    def direction(self) -> str:
        """Whether that is for the better."""
        return "worse" if self.trend.size > 0 else "better"

    @cached_property
    def levels(self) -> tuple[float, float] | None:
        """The medians of the runs beside it, before and after."""
        return None if self.series is None else self._levels(self.series)

    def _levels(self, series: Series) -> tuple[float, float] | None:
        # Hosts differ: they are of one host that shows the change, if there is one.
        trend, points = self.trend, series.points
        count = Counter(p.run.host for p in points if p.run.host in trend.hosts)
        (host, _), *_ = (*count.most_common(1), (None, 0))
        own = [p for p in points if host in {None, p.run.host}]
        then = [p.reading.value for p in own if p.number < trend.since]
        now = [p.reading.value for p in own if p.number >= trend.since]
        return (median(then[-_BESIDE:]), median(now[:_BESIDE])) if then and now else None

    def _moved(self, series: Series) -> float:
        before, after = self._levels(series) or (1.0, 1.0)
        return abs(log(after / before))

    @cached_property
    def by_op(self) -> str | None:
        """Which ops make it up; None where a run has no op table."""
        if self.series is None:
            return None
        then, now = (self._observed(self.series, n) for n in (self.trend.good, self.trend.bad))
        return None if then is None or now is None else observed_change_by_op(then, now)

    def _observed(self, series: Series, number: int) -> Observation | None:
        """Return what a run observed of a test, under the name that it had then."""
        names = {point.number: point.reading.recorded_as for point in series.points}
        record = self._record(number)
        judged = record.tests.get(names.get(number) or series.test) if record else None
        return judged.observation if judged else None

    @property
    def command(self) -> str | None:
        """What finds the commit; None where there is none to be found, or it made things better."""
        good, bad = self.good.commit, self.bad.commit
        of_code = any(difference.kind is Kind.CODE for difference in self.trend.differs)
        if not of_code or self.direction == "better" or not (good and bad):
            return None
        series = self.series or max(self._alike, key=self._moved)
        commits = (good[:_COMMIT], bad[:_COMMIT])
        # By the id that pytest knows: what it is filed under may lack some of its parameters.
        newest = self._observed(series, series.last.number)
        test = newest.node_id if newest and newest.node_id else series.test
        metric = ("--metric", series.metric.name)
        return command_line("ttnn-perf", "bisect", *commits, *metric, place_of(test))

    @property
    def causes(self) -> tuple[str, ...]:
        """What it may come from, in words."""
        return tuple(map(self._cause, self.trend.differs))

    def _cause(self, differs: Difference) -> str:
        if differs.kind is Kind.CODE:
            good, bad = self.good, self.bad
            count = ""
            if good.place is not None and bad.place is not None:
                count = f", {counted(bad.place - good.place, 'commit')}"
            return f"the code: after {good.short_commit} up to {bad.short_commit}{count}"
        if differs.kind is Kind.ENVIRONMENT:
            return _went(differs)
        if differs.what == NOTHING_RECORDED:
            return "the machine: no commit and nothing else that is recorded changed"
        if differs.before is not None:
            return f"other hosts: {differs.before} → {differs.what}"
        return f"{differs.what} itself"


def _went(differs: Difference) -> str:
    return f"{differs.what} {differs.before} → {differs.after}"


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of all series, those of one cause together; and how many were looked at.

    ``too_short`` are series of too few runs, ``others`` those of no gated time or throughput.
    """

    groups: tuple[tuple[Told, ...], ...]
    series: int
    too_short: int
    others: int


def changes_of(history: RunHistory, *, metric: str | None = None) -> Changes:
    """Find the changes of all series, or of those of one metric."""
    # A host whose numbers have a key of their own is compared with the others as well.
    every = series_of(history.runs, metric=metric, across_hosts=True)
    looked_at = [s for s in every if s.by_ratio and (s.gated or metric is not None)]
    long_enough = [s for s in looked_at if len(s.points) >= LEAST_SERIES]

    @cache  # read again for op tables: each once, if it is needed
    def record(number: int) -> Run | None:
        try:
            return history.runs[number].source.read()
        except TtnnPerfError:  # gone since, or pruned: the ops are all that is lost
            return None

    told = [
        Told(trend, long_enough, history.runs, record)
        for trend in find_trends(tracks_of(long_enough), history.runs)
    ]
    short, others = len(looked_at) - len(long_enough), len(every) - len(looked_at)
    return Changes(tuple(map(tuple, _grouped(told))), len(long_enough), short, others)


def trends_listing(history: RunHistory, *, metric: str | None = None) -> Listing:
    """Find the changes of all series, and lay them out."""
    found = changes_of(history, metric=metric)
    lines: list[Block] = []
    for group in found.groups:
        lines += [*_group_lines(group), ""]
    ordered = [one for group in found.groups for one in group]
    changes = counted(len(ordered), "change") if ordered else "no change"
    lines.append(f"{changes} in {found.series} series of {counted(len(history.runs), 'run')}")
    if found.too_short:
        lines.append(
            f"too short to tell: {found.too_short} series of less than {LEAST_SERIES} runs"
        )
    if found.others:
        lines.append(f"not looked at: {found.others} series of what is no gated time or throughput")
    lines += history_lines(history)
    document = {
        "changes": [
            {**one, "by_op": t.by_op}
            for one, t in zip(_COLUMNS.objects(ordered), ordered, strict=True)
        ],
        "series": found.series,
        "too_short": found.too_short,
        **history_document(history),
    }
    return Listing(tuple(lines), document, _COLUMNS.names, _COLUMNS.rows(ordered))


def _grouped(told: Sequence[Told]) -> list[list[Told]]:
    """Return changes of one cause together: hosts, software, code, what nobody can tell."""
    groups: dict[tuple[object, ...], list[Told]] = defaultdict(list)
    for one in told:
        groups[one.trend.track is None, one.trend.kind, one.causes, one.good.id].append(one)
    kinds = list(Kind)
    return sorted(
        (sorted(group, key=lambda t: -abs(t.trend.size)) for group in groups.values()),
        key=lambda g: (g[0].trend.track is not None, kinds.index(g[0].trend.kind), -g[0].trend.bad),
    )


_COLUMNS: Final[Columns[Told]] = Columns(
    Column("cause", lambda t: t.trend.kind.value),
    Column("causes", lambda t: "; ".join(t.causes)),
    id_column(lambda t: t.series.test if t.series else ""),
    Column("metric", lambda t: t.series and t.series.metric.name, "metric", fit=METRIC),
    Column("key", lambda t: t.trend.group[0]),
    Column("unit", lambda t: t.series and t.series.metric.unit),
    Column("before", lambda t: t.levels and t.levels[0], "before",
           lambda t: _level(t, 0), right=True, fit=DROPPED[1]),
    Column("after", lambda t: t.levels and t.levels[1], "after", lambda t: _level(t, 1),
           right=True),
    Column("change", lambda t: t.change, "change", lambda t: format_change(t.change), right=True),
    Column("direction", lambda t: t.direction, "", None),
    Column("", lambda t: t.direction, "way"),
    Column("good", lambda t: t.good.commit),
    Column("bad", lambda t: t.bad.commit),
    Column("since", lambda t: t.bad.at),
    Column("hosts", lambda t: ", ".join(t.trend.hosts), "hosts", lambda t: str(len(t.trend.hosts)),
           right=True, fit=DROPPED[0]),
    Column("command", lambda t: t.command),
)  # fmt: skip


def _level(told: Told, side: int) -> str:
    if told.series is None or told.levels is None:
        return "-"
    return format_value(told.series.metric, told.levels[side], beside=told.levels[0])


def _group_lines(group: Sequence[Told]) -> Iterator[Block]:
    """Lay out what came of one cause."""
    first = group[0]
    yield Line(headline(first), bad=any(t.direction == "worse" for t in group))
    yield from (f"  {text}" for text in changed_beside(first))
    if first.series is not None:
        yield from _COLUMNS.table(group[:_SHOWN])
    if len(group) > _SHOWN:
        yield f"  and {len(group) - _SHOWN} more; --format csv lists all"
    for one in group[:_SHOWN]:
        if one.by_op is not None and one.series is not None:
            yield f"  {one.series.test} by op: {one.by_op}"
    command = next((one.command for one in group if one.command), None)
    if command:
        yield f"  to find the commit: {command}"


def changed_beside(told: Told) -> Iterator[str]:
    """Say what else changed in the range, if anything did."""
    if told.trend.software:
        changed = ", ".join(map(_went, told.trend.software))
        yield f"changed in that range as well: {changed}"


def headline(told: Told) -> str:
    """Say when it changed, and what that comes from."""
    trend, since = told.trend, told.bad.day
    if trend.track is None:
        way = "slower" if trend.size > 0 else "faster"
        size, (key, clock) = percent(abs(trend.change)), trend.group
        if trend.of_host:
            what = trend.differs[0].what
            return f"{what} is {size} {way} since {since}, as a whole ({key}, {clock} times)"
        causes = ", or ".join(told.causes)
        return f"most tests are {size} {way} since {since} ({key}, {clock} times): {causes}"
    when = f"{told.good.day} to {since}"
    if trend.kind is Kind.CANNOT_TELL:
        return f"CANNOT_TELL, {when}: {', or '.join(told.causes)}"
    return f"{when}, {'; '.join(told.causes)}"
