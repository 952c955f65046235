"""The trends command: when series changed, and what differs on both sides.

What most series of one host share at one time is the host's: it is found first, told once, and
taken out. Other steps are found in all runs of a series, or in those of one host.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from enum import Enum
from functools import cache, cached_property
from itertools import accumulate, pairwise
from math import expm1, log
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import TtnnPerfError
from pytest_ttnn_perf.core.metric import Better, median
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.gate.judging import observed_change_by_op
from pytest_ttnn_perf.gate.ratios import t_quantile
from pytest_ttnn_perf.history.runs import history_document, history_lines, series_of
from pytest_ttnn_perf.report.sentences import command_line, place_of, reproduction
from pytest_ttnn_perf.report.tables import (
    DROPPED,
    METRIC,
    Column,
    Columns,
    Line,
    Listing,
    format_change,
    format_fraction,
    format_value,
    id_column,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.observation import Observation, Run
    from pytest_ttnn_perf.history.runs import RecordedRun, RunHistory, Series
    from pytest_ttnn_perf.report.tables import Block

    Sides = tuple[Sequence[RecordedRun], Sequence[RecordedRun]]

#: The least runs on a new level.
LEAST_RUNS: Final = 3
#: The least runs on a level that was left again: fewer are outliers.
_LEAST_RUNS_BEFORE: Final = 6
#: Shorter series cannot have a step.
LEAST_SERIES: Final = _LEAST_RUNS_BEFORE + LEAST_RUNS
#: Smaller changes are not told: 2 %.
LEAST_CHANGE: Final = math.log(1.02)
#: How probable the largest of all splits of a series without a step may be.
_CHANCE: Final = 1e-6
#: Numbers further than this many MADs from their neighbours' median are moved there.
_FURTHEST_MADS: Final = 3.0
_TO_SD: Final = 1.4826
#: Neighbours on each side. Three runs on a new level are most of five, and so no outliers.
_NEIGHBOURS: Final = 2
#: No series is believed to have less noise than this: a standard deviation of 0.1 %.
LEAST_NOISE: Final = 0.001
#: No window is narrower.
_SHORTEST: Final = 8
#: Odds of e**3, that is 20 to 1, tell two positions of a step apart.
_CLEAR_ODDS: Final = 3.0
#: Neighbours are not believed to be more alike than this: there would be nothing left to find.
_MOST_ALIKE: Final = 0.7


class Step(NamedTuple):
    """A step of ``size`` in logarithms at ``position``.

    It may as well be at any position from ``first`` to ``last``. ``strength`` is how far it is
    above what chance makes: above 1.
    """

    start: int
    first: int
    position: int
    last: int
    end: int
    size: float
    strength: float


def winsorised(values: Sequence[float]) -> list[float]:
    """Return values with outliers moved to where they would be no longer."""
    if not values:
        return []
    # At the ends there are more neighbours on one side, and never fewer in all: two of the last
    # three values would make a level of outliers.
    width = 2 * _NEIGHBOURS + 1
    starts = (max(0, min(n - _NEIGHBOURS, len(values) - width)) for n in range(len(values)))
    level = [median(values[start : start + width]) for start in starts]
    away = median(abs(value - middle) for value, middle in zip(values, level, strict=True))
    # The median of few neighbours follows each of them: the value itself is one.
    most = max(_FURTHEST_MADS * _TO_SD * away, _FURTHEST_MADS * LEAST_NOISE)
    return [
        min(max(value, middle - most), middle + most)
        for value, middle in zip(values, level, strict=True)
    ]


def find_steps(values: Sequence[float]) -> list[Step]:
    """Return the steps of a series without outliers, in order.

    Windows of many lengths are looked at, so that a step is found beside another one. Each step
    that is found is then measured between its neighbours, and is dropped if it is none there.
    """
    sums = _Sums(values)
    positions = sorted(_split(sums, 0, len(values)))
    while positions:
        bounds = [0, *positions, len(values)]
        steps = [sums.best(*outer) for outer in zip(bounds, bounds[2:], strict=False)]
        strengths = [step.strength if step else 0.0 for step in steps]
        doubtful = [place for place, strength in enumerate(strengths) if not strength]
        for place, (before, position) in enumerate(zip(bounds, positions, strict=False)):
            if position - before < _LEAST_RUNS_BEFORE:
                doubtful += (max(place - 1, 0), place)
        if not doubtful:
            return [step for step in steps if step is not None]
        del positions[min(doubtful, key=strengths.__getitem__)]
    return []


def _split(sums: _Sums, start: int, end: int) -> Iterator[int]:
    """Yield the positions of steps between two places, the clearest first."""
    windows = [(start, end), *_windows(start, end)]
    steps = [step for window in windows if (step := sums.best(*window)) is not None]
    if steps:
        clearest = max(steps, key=lambda step: step.strength)
        yield clearest.position
        yield from _split(sums, start, clearest.position)
        yield from _split(sums, clearest.position, end)


def _windows(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield windows of half the length, a quarter, and so on."""
    length = (end - start) // 2
    while length >= _SHORTEST:
        for begin in range(start, end - length + 1, max(1, length // 2)):
            yield begin, begin + length
        length //= 2


class _Sums:
    """Sums over any part of a series."""

    def __init__(self, values: Sequence[float]) -> None:
        # About their median: sums of large logarithms lose digits.
        middle = median(values) if values else 0.0
        self.values = [value - middle for value in values]
        self.sums = [0.0, *accumulate(self.values)]
        self.squares = [0.0, *accumulate(value * value for value in self.values)]

    def best(self, start: int, end: int) -> Step | None:
        n, sums = end - start, self.sums
        if n < 2 * LEAST_RUNS:
            return None
        total = sums[end] - sums[start]
        # The sum of squares that each position explains: of start + 1, and so on.
        every = [
            part * part / left + (total - part) ** 2 / (n - left) - total * total / n
            for left in range(1, n)
            for part in [sums[start + left] - sums[start]]
        ]
        left = max(range(LEAST_RUNS, n - LEAST_RUNS + 1), key=lambda left: every[left - 1])
        position, explained = start + left, every[left - 1]
        levels = (sums[position] - sums[start]) / left, (sums[end] - sums[position]) / (n - left)
        size = levels[1] - levels[0]
        if abs(size) < LEAST_CHANGE:
            return None
        about = self.squares[end] - self.squares[start] - total * total / n - explained
        variance = max(about / (n - 2), LEAST_NOISE**2)
        strength = math.sqrt(explained / variance) / _threshold(n)
        if strength > 1:
            # Neighbours that are alike count for less: by their lag-1 autocorrelation.
            sides = (self.values[start:position], self.values[position:end])
            away = [[v - level for v in side] for side, level in zip(sides, levels, strict=True)]
            alone = sum(v * v for side in away for v in side)
            together = sum(one * other for side in away for one, other in pairwise(side))
            alike = min(max(together / alone, 0.0), _MOST_ALIKE) if alone > 0 else 0.0
            strength *= math.sqrt((1 - alike) / (1 + alike))
        if strength <= 1:
            return None
        # Neighbouring positions that leave hardly more.
        least = explained - (about + n * LEAST_NOISE**2) * math.expm1(2 * _CLEAR_ODDS / n)
        first = last = position
        while first - 1 > start and every[first - start - 2] >= least:
            first -= 1
        while last + 1 < end and every[last - start] >= least:
            last += 1
        return Step(start, first, position, last, end, size, strength)


@cache
def _threshold(n: int) -> float:
    """Critical t for the best of all splits of ``n`` values."""
    return t_quantile(1 - _CHANCE / (2 * n), n - 2)


class Kind(Enum):
    """Cause of a change."""

    CODE = "code"
    HOST = "host"
    ENVIRONMENT = "environment"
    CANNOT_TELL = "cannot tell"


class Difference(NamedTuple):
    """A circumstance that changed from ``before`` to ``after``."""

    kind: Kind
    what: str
    before: Scalar = None
    after: Scalar = None

    def __str__(self) -> str:
        return f"{self.what} {self.before} → {self.after}"


#: Rounds of finding a step and taking it out, and one more for each host; what has more steps is no
#: level at all.
_MOST_CHANGES: Final = 10
#: A host shows a change if its own runs changed by this share of it.
_SHARE_SHOWN: Final = 0.5
#: The runs of each host on each side of a step that tell if the host shows it.
_NEAR: Final = 6
#: Of many hosts, so many are named.
_MOST_NAMES: Final = 3
#: Hosts are compared within so many runs in a row, or twice as many as there are hosts.
_TOGETHER: Final = 8
#: The words where nothing that is recorded differs.
_NOTHING_RECORDED: Final = "nothing that is recorded"
#: The runs next to a change that its levels are taken of.
_BESIDE: Final = 5
#: So much of a commit's name is given to git.
_COMMIT: Final = 12


class SeriesChange(Struct, frozen=True, dict=True):
    """A change of a series: ``size`` is a logarithm, plus is worse.

    ``before`` and ``after`` are the last run that is surely before it and the first that is surely
    after it; ``since`` is the most likely first one. ``hosts`` show it; with ``of_host``, others do
    not. ``differs`` is what it may come from, ``software`` what else is another on these hosts.
    ``shared``: most series of that host have it.
    """

    series: Series
    runs: Sequence[RecordedRun]
    record: Callable[[int], Run | None]
    size: float
    before: int
    since: int
    after: int
    hosts: tuple[str, ...]
    of_host: bool
    differs: tuple[Difference, ...] = ()
    software: tuple[Difference, ...] = ()
    shared: bool = False

    @property
    def good(self) -> RecordedRun:
        return self.runs[self.before]

    @property
    def bad(self) -> RecordedRun:
        return self.runs[self.after]

    @property
    def kind(self) -> Kind:
        kinds = {difference.kind for difference in self.differs}
        return kinds.pop() if len(kinds) == 1 else Kind.CANNOT_TELL

    @property
    def change(self) -> float | None:
        """Relative change as read from two values."""
        return self.series.metric.as_read(expm1(self.size))

    @property
    def direction(self) -> str:
        return "worse" if self.size > 0 else "better"

    @cached_property
    def levels(self) -> tuple[float, float] | None:
        # Hosts differ: they are of one host that shows the change, if there is one.
        points = self.series.points
        count = Counter(p.run.host for p in points if p.run.host in self.hosts)
        (host, _), *_ = (*count.most_common(1), (None, 0))
        own = [p for p in points if host in {None, p.run.host}]
        then = [p.reading.value for p in own if p.number < self.since]
        now = [p.reading.value for p in own if p.number >= self.since]
        return (median(then[-_BESIDE:]), median(now[:_BESIDE])) if then and now else None

    @cached_property
    def by_op(self) -> str | None:
        then, now = self._observed(self.before), self._observed(self.after)
        return None if then is None or now is None else observed_change_by_op(then, now)

    def _observed(self, number: int) -> Observation | None:
        record = self.record(number)
        judged = record.tests.get(self.series.test) if record else None
        return judged.observation if judged else None

    @property
    def command(self) -> str | None:
        good, bad = self.good.commit, self.bad.commit
        of_code = any(difference.kind is Kind.CODE for difference in self.differs)
        if not of_code or self.direction == "better" or not (good and bad):
            return None
        # By the id that pytest knows: what it is filed under may lack some of its parameters.
        newest = self._observed(self.series.last.number)
        test = newest.node_id if newest and newest.node_id else self.series.test
        words = (good[:_COMMIT], bad[:_COMMIT], "--metric", self.series.metric.name)
        return command_line("ttnn-perf", "bisect", *words, place_of(test))

    @property
    def causes(self) -> tuple[str, ...]:
        return tuple(map(self._cause, self.differs))

    def _cause(self, differs: Difference) -> str:
        if differs.kind is Kind.CODE:
            good, bad = self.good, self.bad
            count = ""
            if good.place is not None and bad.place is not None:
                count = f", {counted(bad.place - good.place, 'commit')}"
            return f"the code: after {good.short_commit} up to {bad.short_commit}{count}"
        if differs.kind is Kind.ENVIRONMENT:
            return str(differs)
        if differs.what == _NOTHING_RECORDED:
            return "the machine: no commit and nothing else that is recorded changed"
        if differs.before is not None:
            return f"other hosts: {differs.before} → {differs.what}"
        return f"{differs.what} itself"


def _logs_of(series: Series) -> list[float]:
    """Return the logarithms of a series, of which more is worse."""
    sign = -1.0 if series.metric.better is Better.HIGHER else 1.0
    return [sign * log(value) for value in series.values]


def changes_of_series(
    series: Series,
    runs: Sequence[RecordedRun],
    record: Callable[[int], Run | None],
    logs: list[float] | None = None,
) -> Iterator[SeriesChange]:
    """Yield the changes of a series, clearest first.

    ``logs`` are what is left of it without the steps of hosts.
    """
    logs = _logs_of(series) if logs is None else logs
    hosts = [point.run.host for point in series.points]
    for _ in range(_MOST_CHANGES + len(set(hosts))):
        found = _clearest(series, logs, runs, record)
        if found is None:
            return
        yield found
        logs = [
            value - found.size
            if point.number >= found.since and (not found.of_host or host in found.hosts)
            else value
            for value, point, host in zip(logs, series.points, hosts, strict=True)
        ]


#: So many series make a host's level: of fewer, each tells its own change.
_LEAST_SHARED: Final = 3


class _OfHost(NamedTuple):
    """A step of a host between two of its runs."""

    host: str
    before: int
    since: int
    after: int
    size: float


def _take_out_host_steps(
    every: Sequence[Series], logs: Sequence[list[float]]
) -> Iterator[tuple[_OfHost, Series]]:
    """Take the steps of hosts out of all series; yield them."""
    for _ in range(_MOST_CHANGES):
        found = _step_of_a_host(every, logs)
        if found is None:
            return
        for series, own in zip(every, logs, strict=True):
            values = {p.number: own[at] for at, p in enumerate(series.points)
                      if p.run.host == found.host}  # fmt: skip
            size = _move(values, found.since)
            if size is None or size / found.size < _SHARE_SHOWN:
                continue
            for at, point in enumerate(series.points):
                if point.run.host == found.host and point.number >= found.since:
                    own[at] -= found.size  # its own move may hold another step
            yield found, series


def _step_of_a_host(every: Sequence[Series], logs: Sequence[Sequence[float]]) -> _OfHost | None:
    """Return the clearest step that only one host's series share."""
    levels, moves = _levels_of_hosts(every, logs), defaultdict[str, list[dict[int, float]]](list)
    for series, own in zip(every, logs, strict=True):
        by_host = defaultdict[str, dict[int, float]](dict)
        for point, value in zip(series.points, own, strict=True):
            by_host[point.run.host][point.number] = value
        for host, values in by_host.items():
            moves[host].append(values)
    steps = [
        (step, host, sorted(level))
        for host, level in levels.items()
        if len(levels) > 1 and len(moves[host]) >= _LEAST_SHARED and len(level) >= LEAST_SERIES
        for step in find_steps(winsorised([level[number] for number in sorted(level)]))
    ]
    for step, host, numbers in sorted(steps, key=lambda each: -each[0].strength):
        since = numbers[step.position]
        others = [_move(level, since) for other, level in levels.items() if other != host]
        known = [move / step.size for move in others if move is not None]
        sizes = [size for values in moves[host] if (size := _move(values, since)) is not None]
        shown = sum(size / step.size >= _SHARE_SHOWN for size in sizes)
        if known and median(known) < _SHARE_SHOWN and 2 * shown > len(sizes) >= _LEAST_SHARED:
            ends = numbers[step.first - 1], since, numbers[step.last]
            return _OfHost(host, *ends, step.size)
    return None


def _levels_of_hosts(
    every: Sequence[Series], logs: Sequence[Sequence[float]]
) -> dict[str, dict[int, float]]:
    """Return the median of all series in each run, by host."""
    away: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for series, own in zip(every, logs, strict=True):
        by_host = defaultdict[str, list[tuple[int, float]]](list)
        for point, value in zip(series.points, own, strict=True):
            by_host[point.run.host].append((point.number, value))
        for host, values in by_host.items():
            usual = median([value for _, value in values])
            for number, value in values:
                away[host][number].append(value - usual)
    return {h: {n: median(own) for n, own in runs.items()} for h, runs in away.items()}


def _move(values: Mapping[int, float], since: int) -> float | None:
    """Return how far values by run moved; None with too few runs."""
    before = [values[number] for number in sorted(values) if number < since][-_NEAR:]
    after = [values[number] for number in sorted(values) if number >= since][:_NEAR]
    if min(len(before), len(after)) < LEAST_RUNS:
        return None
    return median(after) - median(before)


class _Seen(NamedTuple):
    """A step in all runs, or in those of one ``host``.

    ``good`` is the last place that is surely before it, ``bad`` the first that is surely after it.
    """

    step: Step
    places: Sequence[int]
    host: str | None
    good: int
    bad: int


def _clearest(
    series: Series,
    logs: Sequence[float],
    runs: Sequence[RecordedRun],
    record: Callable[[int], Run | None],
) -> SeriesChange | None:
    numbers = [point.number for point in series.points]
    own: dict[str, list[int]] = defaultdict(list)
    for place, number in enumerate(numbers):
        own[runs[number].host].append(place)
    flat = _without_offsets(logs, [runs[number].host for number in numbers])
    every: dict[str | None, Sequence[int]] = {None: range(len(flat))}
    if len(own) > 1:
        every |= {host: places for host, places in own.items() if len(places) >= LEAST_SERIES}
    seen = [
        _Seen(step, places, host, places[step.first - 1], places[step.last])
        for host, places in every.items()
        for step in find_steps(winsorised([flat[place] for place in places]))
    ]
    for one in sorted(seen, key=lambda each: -each.step.strength):
        step, since = one.step, one.places[one.step.position]
        start, end = one.places[step.start], one.places[step.end - 1]
        sides = {
            host: (
                [place for place in places if start <= place < since][-_NEAR:],
                [place for place in places if since <= place <= end][:_NEAR],
            )
            for host, places in own.items()
        }
        moved = {
            host: (median(flat[p] for p in after) - median(flat[p] for p in before)) / step.size
            for host, (before, after) in sides.items()
            if before and after
        }
        shows = tuple(sorted(host for host, share in moved.items() if share >= _SHARE_SHOWN))
        silent = {h for h in moved if h not in shows and min(map(len, sides[h])) >= LEAST_RUNS}
        of_host = len(silent) >= len(shows) > 0
        size = step.size * (median(moved[h] for h in shows) if of_host and not one.host else 1.0)
        if (silent and not shows) or abs(size) < LEAST_CHANGE:
            continue  # no host changed for good: those that always differ took turns
        near = [
            ([runs[numbers[p]] for p in before], [runs[numbers[p]] for p in after])
            for before, after in (sides[host] for host in shows or own)
        ]
        ends = numbers[one.good], numbers[since], numbers[one.bad]
        found = SeriesChange(series, runs, record, size, *ends, shows, of_host)
        return _explained(found, near)
    return None


def _without_offsets(values: Sequence[float], hosts: Sequence[str]) -> list[float]:
    """Remove each host's constant offset."""
    width = max(_TOGETHER, 2 * len(set(hosts)))
    away: dict[str, list[float]] = defaultdict(list)
    for start in range(0, len(values), width):
        seen: dict[str, list[float]] = defaultdict(list)
        for host, value in zip(hosts[start : start + width], values[start:], strict=False):
            seen[host].append(value)
        levels = {host: median(own) for host, own in seen.items()}
        if len(levels) > 1:
            for host, level in levels.items():
                away[host].append(level - median(levels.values()))
    offsets = {host: median(own) for host, own in away.items()}
    return [value - offsets.get(host, 0.0) for host, value in zip(hosts, values, strict=True)]


def _explained(change: SeriesChange, near: Sequence[Sides]) -> SeriesChange:
    """Add the circumstances that differ across a change."""
    then, now = ([run for sides in near for run in sides[side]] for side in (0, 1))
    stayed = [sides for sides in near if all(sides)] or [(then, now)]
    software = tuple(_software(stayed))
    if change.of_host:
        itself = Difference(Kind.HOST, _named(change.hosts))
        return replace(change, differs=(itself,), software=software)
    differs = list(software)
    commits = change.good.commit, change.bad.commit
    if commits[0] != commits[1] or None in commits:
        differs.insert(0, Difference(Kind.CODE, "commit", *commits))
    old, new = ({run.host for run in side} for side in (then, now))
    if not change.hosts:
        differs.append(Difference(Kind.HOST, _named(new - old or new), _named(old - new or old)))
    if not differs:
        kind = Kind.HOST if len(old | new) == 1 else Kind.CANNOT_TELL
        differs.append(Difference(kind, _NOTHING_RECORDED))
    return replace(change, differs=tuple(differs))


def _software(near: Sequence[Sides]) -> Iterator[Difference]:
    """Yield versions that changed on most hosts."""
    for name in sorted({name for sides in near for run in sides[0] for name in run.software}):
        usual = (
            [Counter(run.software.get(name) for run in side).most_common(1)[0][0] for side in sides]
            for sides in near
        )
        changed = Counter((old, new) for old, new in usual if None not in (old, new) and old != new)
        if changed.total() > len(near) / 2:
            yield Difference(Kind.ENVIRONMENT, name, *changed.most_common(1)[0][0])


def _named(hosts: Collection[str]) -> str:
    shown = sorted(hosts)[:_MOST_NAMES]
    more = len(hosts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


class Changes(Struct, frozen=True):
    """Changes grouped by cause, and counts of series.

    ``too_short`` are series of too few runs.
    """

    groups: tuple[tuple[SeriesChange, ...], ...]
    series: int
    too_short: int


def changes_of(history: RunHistory, *, metric: str | None = None) -> Changes:
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

    groups: dict[tuple[object, ...], list[SeriesChange]] = defaultdict(list)
    logs = [_logs_of(series) for series in long_enough]
    for step, series in _take_out_host_steps(long_enough, logs):
        ends = step.before, step.since, step.after
        one = SeriesChange(
            series, history.runs, record, step.size, *ends, (step.host,), of_host=True
        )
        own = [p for p in series.points if p.run.host == step.host]
        sides = (
            [p.run for p in own if p.number < step.since][-_NEAR:],
            [p.run for p in own if p.number >= step.since][:_NEAR],
        )
        one = _explained(replace(one, shared=True), [sides])
        groups[one.kind, one.causes, one.good.id].append(one)
    for series, own_logs in zip(long_enough, logs, strict=True):
        for one in changes_of_series(series, history.runs, record, own_logs):
            groups[one.kind, one.causes, one.good.id].append(one)
    kinds = list(Kind)
    ordered = sorted(
        (tuple(sorted(group, key=lambda one: -abs(one.size))) for group in groups.values()),
        key=lambda group: (kinds.index(group[0].kind), -group[0].after),
    )
    return Changes(tuple(ordered), len(long_enough), len(looked_at) - len(long_enough))


#: Of one cause, so many tests are shown; the other formats have all.
_SHOWN: Final = 10


def trends_listing(history: RunHistory, *, metric: str | None = None) -> Listing:
    found = changes_of(history, metric=metric)
    lines: list[Block] = []
    for group in found.groups:
        lines += [*_group_lines(group), ""]
    ordered = [one for group in found.groups for one in group]
    count = sum(1 if group[0].shared else len(group) for group in found.groups)
    changes = counted(count, "change") if ordered else "no change"
    lines.append(f"{changes} in {found.series} series of {counted(len(history.runs), 'run')}")
    if found.too_short:
        lines.append(f"skipped: {found.too_short} series with fewer than {LEAST_SERIES} runs")
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


def _level(change: SeriesChange, side: int) -> str:
    if change.levels is None:
        return "-"
    return format_value(change.series.metric, change.levels[side], beside=change.levels[0])


_COLUMNS: Final[Columns[SeriesChange]] = Columns(
    Column("cause", lambda c: c.kind.value),
    Column("causes", lambda c: "; ".join(c.causes)),
    id_column(lambda c: c.series.test),
    Column("metric", lambda c: c.series.metric.name, "metric", fit=METRIC),
    Column("key", lambda c: c.series.key),
    Column("unit", lambda c: c.series.metric.unit),
    Column("before", lambda c: c.levels and c.levels[0], "before", lambda c: _level(c, 0),
           right=True, fit=DROPPED[1]),
    Column("after", lambda c: c.levels and c.levels[1], "after", lambda c: _level(c, 1),
           right=True),
    Column("change", lambda c: c.change, "change", lambda c: format_change(c.change), right=True),
    Column("direction", lambda c: c.direction, "", None),
    Column("", lambda c: c.direction, "way"),
    Column("good", lambda c: c.good.commit),
    Column("bad", lambda c: c.bad.commit),
    Column("since", lambda c: c.bad.at),
    Column("hosts", lambda c: ", ".join(c.hosts), "hosts", lambda c: str(len(c.hosts)),
           right=True, fit=DROPPED[0]),
    Column("command", lambda c: c.command),
)  # fmt: skip


def _group_lines(group: Sequence[SeriesChange]) -> Iterator[Block]:
    first = group[0]
    told = ""
    if first.shared:
        size = first.series.metric.as_read(expm1(abs(median([one.size for one in group]))))
        told = f": {len(group)} series {format_fraction(abs(size or 0))} {first.direction}"
    yield Line(headline(first) + told, bad=any(one.direction == "worse" for one in group))
    yield from (f"  {text}" for text in changed_as_well(first))
    if first.shared:
        return
    yield from _COLUMNS.table(group[:_SHOWN])
    if len(group) > _SHOWN:
        yield f"  and {len(group) - _SHOWN} more; --format csv lists all"
    for one in group[:_SHOWN]:
        if one.by_op is not None:
            yield f"  {one.series.test} by op: {one.by_op}"
    command = next((one.command for one in group if one.command), None)
    if command:
        yield f"  to find the commit: {command}"


def changed_as_well(change: SeriesChange) -> Iterator[str]:
    if change.software:
        yield f"changed in that range as well: {', '.join(map(str, change.software))}"


def headline(change: SeriesChange) -> str:
    when = f"{change.good.day} to {change.bad.day}"
    if change.kind is Kind.CANNOT_TELL:
        return f"CANNOT_TELL, {when}: {', or '.join(change.causes)}"
    return f"{when}, {'; '.join(change.causes)}"


# The same as text for an issue tracker, in Markdown.


def issue_text(history: RunHistory, *, metric: str | None = None) -> str:
    """Return an issue for each cause that made tests slower."""
    groups = changes_of(history, metric=metric).groups
    slower = ([one for one in group if one.direction == "worse"] for group in groups)
    issues = ["\n".join(_issue_lines(group)) for group in slower if group]
    return "\n---\n\n".join(issues) or "Nothing became slower for good.\n"


def _issue_lines(group: Sequence[SeriesChange]) -> Iterator[str]:
    first = group[0]
    began = first.runs[first.since]
    # As long as the same run is the first slow one: whatever else is found in later nights.
    name = "\0".join((first.kind.value, first.series.key, began.commit or began.at))
    identity = hashlib.sha256(name.encode()).hexdigest()[:12]
    others = f" and {counted(len(group) - 1, 'other')}" if len(group) > 1 else ""
    yield (
        f"# {first.series.test} {first.series.metric.name} {format_change(first.change)}{others}, "
        f"since {first.bad.day}"
    )
    yield f"\n<!-- ttnn-perf issue {identity}: update the one that has this -->\n"
    yield f"{headline(first)}; on {', '.join(first.hosts) or 'all hosts'}."
    yield from (f"\n{text}." for text in changed_as_well(first))
    yield "\n| test | metric | board | before | after | change |\n|---|---|---|--:|--:|--:|"
    for one in group:
        cells = (f"`{one.series.test}`", one.series.metric.name, one.series.key, _level(one, 0),
                 _level(one, 1), format_change(one.change))  # fmt: skip
        yield f"| {' | '.join(cells)} |"
    yield from (f"\n`{o.series.test}` by op: {o.by_op}" for o in group[:_SHOWN] if o.by_op)
    good, bad = first.good, first.bad
    yield f"\nLast good run: {good.day}, commit `{good.commit or 'unknown'}`."
    yield f"First bad run: {bad.day}, commit `{bad.commit or 'unknown'}`."
    command = next((one.command for one in group if one.command), None)
    if command:
        yield f"\nFind the commit:\n\n```console\n$ {command}\n```"
    record = first.record(first.after)
    if record is not None and first.series.test in record.tests:
        *about, (_, again) = reproduction(record, record.tests[first.series.test], None)
        yield f"\nReproduce:\n\n```console\n$ {again}\n```\n"
        yield from (f"- {what}: {text}" for what, text in about)
    yield ""
