"""Changes in many series at once: first what tests of one host have in common, then each test."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from math import expm1, log
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.history.causes import (
    AROUND,
    Change,
    Circumstances,
    Kind,
    Rival,
    explain,
)
from pytest_ttnn_perf.history.steps import running_median
from pytest_ttnn_perf.records.metric import Better, median

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.history.runs import RecordedRun
    from pytest_ttnn_perf.history.series import Series
    from pytest_ttnn_perf.records.metric import Metric


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
    """A change of one track, or of all tracks of a group (``track`` is None).

    ``good`` and ``bad`` are the numbers of the last run before it and of the first after it.
    ``hosts`` are those whose own runs show it.
    """

    track: int | None
    group: tuple[str, str]
    kind: Kind
    rivals: tuple[Rival, ...]
    size: float
    good: int
    bad: int
    hosts: tuple[str, ...]

    @property
    def change(self) -> float:
        """How much worse it is than before, as the gate has it (0.05 = 5 %)."""
        return expm1(self.size)


#: Rounds of fitting levels of tracks and offsets of hosts to each other.
_ROUNDS: Final = 2
#: Fewer tests do not tell how fast a host is as a whole.
LEAST_TESTS: Final = 5
#: A host shows a change if its own runs changed by this share of it.
_SHOWN: Final = 0.5


def circumstances(runs: Sequence[RecordedRun]) -> list[Circumstances]:
    """Return what may explain a change of the numbers of runs."""
    return [Circumstances(run.commit, run.host, run.at, run.software) for run in runs]


def tracks_of(series: Sequence[Series]) -> list[Track]:
    """Return series that are compared by ratio as numbers."""
    return [
        Track(
            (one.key, one.metric.source.value),
            tuple(point.number for point in one.points),
            tuple(_worse(one.metric) * log(value) for value in one.values),
        )
        for one in series
    ]


def _worse(metric: Metric) -> float:
    return -1.0 if metric.better is Better.HIGHER else 1.0


def find_trends(tracks: Sequence[Track], runs: Sequence[Circumstances]) -> list[Trend]:
    """Return the changes of tracks, and of groups of them."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, track in enumerate(tracks):
        groups[track.group].append(number)
    found: list[Trend] = []
    for group, members in groups.items():
        common = list(_common(group, [tracks[member] for member in members], runs))
        told = [trend for trend in common if trend.kind in {Kind.HOST, Kind.ENVIRONMENT}]
        found += told
        # Where there is one host, nothing tells a slower machine from code that slows all tests.
        alone = [trend for trend in common if trend.kind is Kind.CODE and len(trend.hosts) == 1]
        one_host = len({runs[n].host for member in members for n in tracks[member].numbers}) == 1
        apart = _hosts_apart(runs, told)
        offsets = host_offsets([tracks[member] for member in members], apart)
        for member in members:
            changes = _of_track(tracks[member], apart, offsets, told)
            for trend in _trends(member, tracks[member], changes, runs):
                with_all = one_host and any(_together(trend, other) for other in alone)
                found.append(_or_the_machine(trend) if with_all else trend)
    return found


def _common(
    group: tuple[str, str], tracks: Sequence[Track], runs: Sequence[Circumstances]
) -> Iterator[Trend]:
    """Yield the changes of what most tests of a group do in a run."""
    away: dict[int, list[float]] = defaultdict(list)
    for track in tracks:
        level = median(track.logs)
        for number, value in zip(track.numbers, track.logs, strict=True):
            away[number].append(value - level)
    numbers = sorted(number for number, found in away.items() if len(found) >= LEAST_TESTS)
    values = [median(away[number]) for number in numbers]
    whole = Track(group, tuple(numbers), tuple(values))
    return _trends(None, whole, explain(values, [runs[n] for n in numbers]), runs)


#: Stands between the name of a host and the number of the run since which it is another one.
_SINCE: Final = "\0"


def _hosts_apart(runs: Sequence[Circumstances], known: Sequence[Trend]) -> list[Circumstances]:
    """Return runs in which a host that changed as a whole is another one from then on."""
    found = list(runs)
    for trend in known:
        if trend.kind is Kind.HOST:
            for number in trend.rivals[0].runs:
                run = found[number]
                found[number] = run._replace(host=f"{run.host}{_SINCE}{trend.bad}")
    return found


def host_offsets(tracks: Sequence[Track], runs: Sequence[Circumstances]) -> dict[str, float]:
    """Return what each host adds to the numbers of all tracks: a fit by medians, track by host.

    The level of a track is that of the runs around: what code changes is no part of it. All tracks
    tell of a host, so that it is known after a few runs.
    """
    if len({run.host for run in runs}) == 1:
        return {}
    offsets: dict[str, float] = {}
    for _ in range(_ROUNDS):
        away: dict[str, list[float]] = defaultdict(list)
        for track in tracks:
            hosts = [runs[number].host for number in track.numbers]
            own = [offsets.get(host, 0.0) for host in hosts]
            flat = [value - offset for value, offset in zip(track.logs, own, strict=True)]
            level = running_median(flat, AROUND)
            for host, value, middle in zip(hosts, track.logs, level, strict=True):
                away[host].append(value - middle)
        offsets = {host: median(found) for host, found in away.items()}
    return offsets


def _of_track(
    track: Track,
    runs: Sequence[Circumstances],
    offsets: Mapping[str, float],
    known: Sequence[Trend],
) -> list[Change]:
    """Return the changes of one track beside those that are known of all."""
    own = [runs[number] for number in track.numbers]
    logs = [value - offsets.get(run.host, 0.0) for value, run in zip(track.logs, own, strict=True)]
    places = [
        frozenset(p for p, number in enumerate(track.numbers) if number in trend.rivals[0].runs)
        for trend in known
        if trend.kind is not Kind.HOST
    ]
    return explain(logs, own, places)


def _trends(
    member: int | None, track: Track, changes: Sequence[Change], runs: Sequence[Circumstances]
) -> Iterator[Trend]:
    """Yield changes with the numbers of runs in the place of those of the track."""
    numbers = track.numbers
    for change in changes:
        ordered = (change.cause, *(rival for rival in change.rivals if rival is not change.cause))
        rivals = tuple(
            replace(
                rival,
                what=_as_named(rival.what),
                runs=frozenset(numbers[place] for place in rival.runs),
            )
            for rival in ordered
        )
        hosts = _showing(track, change, runs)
        good, bad = numbers[change.good], numbers[change.bad]
        yield Trend(member, track.group, change.kind, rivals, change.size, good, bad, hosts)


def _as_named(what: str) -> str:
    """Return a cause with hosts under the names that others know."""
    return re.sub(rf"{_SINCE}\d+", "", what) if _SINCE in what else what


def _showing(track: Track, change: Change, runs: Sequence[Circumstances]) -> tuple[str, ...]:
    """Return the hosts whose own runs are on both levels, and differ as the change does."""
    sides: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for place, number in enumerate(track.numbers):
        after = place in change.cause.runs
        sides[runs[number].host][after].append(track.logs[place])
    return tuple(
        host
        for host, (then, now) in sorted(sides.items())
        if then and now and (median(now) - median(then)) / change.size >= _SHOWN
    )


def _together(trend: Trend, other: Trend) -> bool:
    same_way = (trend.size > 0) == (other.size > 0)
    return same_way and trend.good < other.bad and other.good < trend.bad


def _or_the_machine(trend: Trend) -> Trend:
    host = trend.hosts[0] if trend.hosts else "the host"
    machine = Rival(Kind.HOST, host, None, None, trend.rivals[0].runs)
    return replace(trend, kind=Kind.CANNOT_TELL, rivals=(*trend.rivals, machine))
