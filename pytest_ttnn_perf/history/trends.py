"""When series changed, and what differs on both sides: most tests of a host first, then each test.

A step is found in all runs, or in those of one host. What most series of a host, or of all hosts,
do at one time is told once, and taken out before single series are looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from enum import Enum
from math import expm1, log
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.history.steps import (
    LEAST_CHANGE,
    LEAST_RUNS,
    LEAST_SERIES,
    find_steps,
    winsorised,
)
from pytest_ttnn_perf.records.metric import Better, median

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pytest_ttnn_perf.history.runs import RecordedRun
    from pytest_ttnn_perf.history.series import Series
    from pytest_ttnn_perf.history.steps import Step
    from pytest_ttnn_perf.records.hardware import Scalar

    #: Runs of a host before and after a change.
    Sides = tuple[Sequence[RecordedRun], Sequence[RecordedRun]]


class Kind(Enum):
    """What a change comes from."""

    CODE = "code"
    HOST = "host"
    ENVIRONMENT = "environment"
    CANNOT_TELL = "cannot tell"


class Difference(NamedTuple):
    """What differs on both sides of a change: ``what`` went from ``before`` to ``after``."""

    kind: Kind
    what: str
    before: Scalar = None
    after: Scalar = None


@dataclass(frozen=True, slots=True)
class Track:
    """A series as numbers: logarithms, more is worse; and the runs they are from, ascending.

    Tracks of one ``group`` can be slow together: they ran on one kind of hardware, and were
    measured by one kind of clock.
    """

    group: tuple[str, str]
    numbers: tuple[int, ...]
    logs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Trend:
    """A change of one track by ``size``, or of most tracks of a group (``track`` is None).

    ``good`` and ``bad`` are the numbers of the last run that is surely before it and of the first
    that is surely after it; ``since`` is the most likely first one. ``hosts`` are those whose own
    runs show it; with ``of_host``, others do not. ``differs`` is what it may come from,
    ``software`` what else is another on these hosts.
    """

    track: int | None
    group: tuple[str, str]
    size: float
    good: int
    since: int
    bad: int
    hosts: tuple[str, ...]
    of_host: bool
    differs: tuple[Difference, ...]
    software: tuple[Difference, ...] = ()

    @property
    def change(self) -> float:
        """How much worse it is than before, as the gate has it (0.05 = 5 %)."""
        return expm1(self.size)

    @property
    def kind(self) -> Kind:
        """What it comes from, if one kind of thing differs."""
        kinds = {difference.kind for difference in self.differs}
        return kinds.pop() if len(kinds) == 1 else Kind.CANNOT_TELL

    def has(self, number: int, host: str) -> bool:
        """Tell whether a run is on its new level."""
        return number >= self.since and (not self.of_host or host in self.hosts)


#: Rounds of finding a step and taking it out, beside one for each host; what has more steps is no
#: level at all.
_MOST_CHANGES: Final = 10
#: Fewer tests do not tell how fast a host is as a whole.
_LEAST_TESTS: Final = 5
#: A host shows a change if its own runs changed by this share of it.
_SHOWN: Final = 0.5
#: The runs on each side of a change of most tests that tell whether a test shows it.
_BESIDE: Final = 12
#: The runs of each host on each side of a step that tell whether the host shows it.
_NEAR: Final = 6
#: Of many hosts, so many are named.
_MOST_NAMES: Final = 3
#: Hosts are compared within so many runs in a row, or twice as many as there are hosts.
_TOGETHER: Final = 8
#: What is told where nothing that is recorded differs.
NOTHING_RECORDED: Final = "nothing that is recorded"


def tracks_of(series: Sequence[Series]) -> list[Track]:
    """Return series that are compared by ratio as numbers."""
    found = []
    for one in series:
        sign = -1.0 if one.metric.better is Better.HIGHER else 1.0
        numbers = tuple(point.number for point in one.points)
        logs = tuple(sign * log(value) for value in one.values)
        found.append(Track((one.key, one.metric.source.value), numbers, logs))
    return found


def find_trends(tracks: Sequence[Track], runs: Sequence[RecordedRun]) -> list[Trend]:
    """Return the changes of most tracks of a group, and those of single ones beside these."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, track in enumerate(tracks):
        groups[track.group].append(number)
    found: list[Trend] = []
    for group, members in groups.items():
        common = _changes(None, _most(group, [tracks[member] for member in members]), runs)
        found += _by_software(common)
        for member in members:
            track = tracks[member]
            for trend in common:
                if _shows(track, trend, runs):
                    track = _without(track, trend, runs)
            found += _by_software(_changes(member, track, runs))
    return found


def _most(group: tuple[str, str], tracks: Sequence[Track]) -> Track:
    """Return what most tests of a group do in each run: their median."""
    away: dict[int, list[float]] = defaultdict(list)
    for track in tracks:
        level = median(track.logs)
        for number, value in zip(track.numbers, track.logs, strict=True):
            away[number].append(value - level)
    numbers = sorted(number for number, found in away.items() if len(found) >= _LEAST_TESTS)
    return Track(group, tuple(numbers), tuple(median(away[number]) for number in numbers))


def _by_software(common: Sequence[Trend]) -> Iterator[Trend]:
    """Yield changes, those that came to one host after another with the same software as one."""
    groups: dict[object, list[Trend]] = defaultdict(list)
    for number, trend in enumerate(common):
        together = trend.of_host and trend.software
        groups[(trend.software, trend.size > 0) if together else number].append(trend)
    for own in groups.values():
        first = min(own, key=lambda trend: trend.bad)
        if len(own) > 1:
            size = median(trend.size for trend in own)
            hosts = tuple(sorted({host for trend in own for host in trend.hosts}))
            differs = first.software
            first = replace(
                first, size=size, hosts=hosts, of_host=False, differs=differs, software=()
            )
        yield first


def _without(track: Track, trend: Trend, runs: Sequence[RecordedRun]) -> Track:
    """Return a track without a change, its own or one of most tracks."""
    logs = (
        value - trend.size * trend.has(number, runs[number].host)
        for number, value in zip(track.numbers, track.logs, strict=True)
    )
    return replace(track, logs=tuple(logs))


def _shows(track: Track, trend: Trend, runs: Sequence[RecordedRun]) -> bool:
    """Tell whether a track shows a change of most tracks, next to it; if nothing tells, it does."""
    sides: tuple[list[float], list[float]] = ([], [])
    for number, value in zip(track.numbers, track.logs, strict=True):
        if not trend.of_host or runs[number].host in trend.hosts:
            sides[number >= trend.since].append(value)
    if not all(sides):
        return True
    moved = median(sides[1][:_BESIDE]) - median(sides[0][-_BESIDE:])
    return moved / trend.size >= _SHOWN


def _changes(member: int | None, track: Track, runs: Sequence[RecordedRun]) -> list[Trend]:
    """Return the changes of a track: the clearest, that of what is left without it, and so on."""
    found: list[Trend] = []
    for _ in range(_MOST_CHANGES + len({runs[number].host for number in track.numbers})):
        trend = _clearest(member, track, runs)
        if trend is None:
            break
        found.append(trend)
        track = _without(track, trend, runs)
    return found


class _Seen(NamedTuple):
    """A step in all runs, or (``host``) in those of one host, which have these ``places``.

    ``good`` is the last place that is surely before it, ``bad`` the first that is surely after it.
    """

    step: Step
    places: Sequence[int]
    host: str | None
    good: int
    bad: int


def _clearest(member: int | None, track: Track, runs: Sequence[RecordedRun]) -> Trend | None:
    """Return the clearest change of all runs, or of those of one host."""
    numbers = track.numbers
    own: dict[str, list[int]] = defaultdict(list)
    for place, number in enumerate(numbers):
        own[runs[number].host].append(place)
    flat = _without_offsets(track.logs, [runs[number].host for number in numbers])
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
        for host in moved:  # at another time, it moved by itself
            alike = [
                each for each in seen
                if each.host == host and each.step.size * step.size > 0
                and sides[host][0][0] <= each.good and each.bad <= sides[host][1][-1]
            ]  # fmt: skip
            if alike and not any(one.good < each.bad and each.good < one.bad for each in alike):
                moved[host] = 0.0
        shows = tuple(sorted(host for host, share in moved.items() if share >= _SHOWN))
        silent = {h for h in moved if h not in shows and min(map(len, sides[h])) >= LEAST_RUNS}
        of_host = len(silent) >= len(shows) > 0
        size = step.size * (median(moved[h] for h in shows) if of_host and not one.host else 1.0)
        if (silent and not shows) or abs(size) < LEAST_CHANGE:
            continue  # no host changed for good: those that always differ took turns
        beside = [
            ([runs[numbers[p]] for p in before], [runs[numbers[p]] for p in after])
            for before, after in (sides[host] for host in shows or own)
        ]
        good, bad = numbers[one.good], numbers[one.bad]
        trend = Trend(member, track.group, size, good, numbers[since], bad, shows, of_host, ())
        return _explained(trend, beside, runs)
    return None


def _without_offsets(values: Sequence[float], hosts: Sequence[str]) -> list[float]:
    """Return values without what each host always adds to those of others at the same time."""
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


def _explained(trend: Trend, beside: Sequence[Sides], runs: Sequence[RecordedRun]) -> Trend:
    """Return a change with what differs between the runs ``beside`` it, host by host."""
    then, now = ([run for sides in beside for run in sides[side]] for side in (0, 1))
    stayed = [sides for sides in beside if all(sides)] or [(then, now)]
    software = tuple(_software(stayed))
    if trend.of_host:
        itself = Difference(Kind.HOST, _named(trend.hosts))
        return replace(trend, differs=(itself,), software=software)
    differs = list(software)
    commits = runs[trend.good].commit, runs[trend.bad].commit
    if commits[0] != commits[1] or None in commits:
        differs.insert(0, Difference(Kind.CODE, "commit", *commits))
    old, new = ({run.host for run in side} for side in (then, now))
    if not trend.hosts:
        differs.append(Difference(Kind.HOST, _named(new - old or new), _named(old - new or old)))
    alone = len(old | new) == 1
    if alone and trend.track is None:  # nothing tells a slower machine from code that slows all
        differs.append(Difference(Kind.HOST, *new))
    if not differs:
        differs.append(Difference(Kind.HOST if alone else Kind.CANNOT_TELL, NOTHING_RECORDED))
    return replace(trend, differs=tuple(differs))


def _software(beside: Sequence[Sides]) -> Iterator[Difference]:
    """Yield what is usually another version after a change than before it, on most hosts."""
    for name in sorted({name for sides in beside for run in sides[0] for name in run.software}):
        usual = (
            [Counter(run.software.get(name) for run in side).most_common(1)[0][0] for side in sides]
            for sides in beside
        )
        changed = Counter((old, new) for old, new in usual if None not in (old, new) and old != new)
        if changed.total() > len(beside) / 2:
            yield Difference(Kind.ENVIRONMENT, name, *changed.most_common(1)[0][0])


def _named(hosts: Collection[str]) -> str:
    """Return the names of hosts, or of some of many."""
    shown = sorted(hosts)[:_MOST_NAMES]
    more = len(hosts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
