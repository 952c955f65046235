"""What changed where a series did: the code, the software around it, or the host it ran on.

Everything that might explain a step is a rival: each says which runs are on the new level. The
rival that leaves the least of the differences unexplained is the cause. Where rivals of different
kinds name the same runs, or nearly so, nobody can tell.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.history.steps import (
    LEAST_CHANGE,
    LEAST_NOISE,
    LEAST_RUNS,
    best_split,
    find_steps,
    running_median,
    winsorised,
)
from pytest_ttnn_perf.records.metric import median

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.history.steps import Step
    from pytest_ttnn_perf.records.hardware import Scalar


class Kind(Enum):
    """What a change comes from."""

    CODE = "code"
    HOST = "host"
    ENVIRONMENT = "environment"
    CANNOT_TELL = "cannot tell"


class Circumstances(NamedTuple):
    """What is known of the run that a number is from.

    ``at`` is when it was taken, by the clock of its host: of one host, clocks tell the order.
    ``software`` is what changes without a commit: versions, firmware, driver, kernel, governor.
    """

    commit: str | None
    host: str
    at: str
    software: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Rival:
    """A possible cause: ``what`` went from ``before`` to ``after``.

    ``runs`` are the places of the numbers that it puts on the new level.
    """

    kind: Kind
    what: str
    before: Scalar
    after: Scalar
    runs: frozenset[int]


@dataclass(frozen=True, slots=True)
class Change:
    """A step of a series, by ``size`` (of logarithms), and what may have caused it.

    The last number that is surely before it and the first that is surely after it are at the places
    ``good`` and ``bad``. ``rivals`` are those that explain it equally well, the best first.
    """

    size: float
    good: int
    bad: int
    rivals: tuple[Rival, ...]

    @property
    def kind(self) -> Kind:
        """What it comes from. Software that changes on one host is a change of the host."""
        kinds = {rival.kind for rival in self.rivals}
        if Kind.HOST in kinds and kinds <= {Kind.HOST, Kind.ENVIRONMENT}:
            return Kind.HOST
        return kinds.pop() if len(kinds) == 1 else Kind.CANNOT_TELL

    @property
    def cause(self) -> Rival:
        """The rival that it is told by: that of its kind, where one is known."""
        return next((rival for rival in self.rivals if rival.kind is self.kind), self.rivals[0])


#: Rounds of finding a step and taking its effect away; what has more steps is no level at all.
_MOST_CHANGES: Final = 10
#: Neighbours on each side that a host is compared with.
AROUND: Final = 7
#: Odds of e**3, that is 20 to 1, tell two rivals apart.
_CLEAR_ODDS: Final = 3.0
#: So many commits on each side of the best split of runs are looked at.
_NEAR: Final = 10
#: A host that came with a step has this share of its runs after the best split.
_MOSTLY: Final = 0.8
#: Of many hosts, so many are named.
_MOST_NAMES: Final = 3
#: What is told where commits and software are the same before and after.
NOTHING_RECORDED: Final = "nothing that is recorded"


def explain(
    values: Sequence[float], runs: Sequence[Circumstances], known: Sequence[frozenset[int]] = ()
) -> list[Change]:
    """Return the changes of a series of logarithms that is in the order of commits.

    ``known`` are places that something known already puts on a level of their own.
    """
    left = list(values)
    hosts = _places_by_host(runs)
    for places in known:
        left = _without(left, places)
    found: list[Change] = []
    for _ in range(_MOST_CHANGES):
        flat = _without_outliers(_without_offsets(left, hosts), hosts)
        told = (_explained(seen, flat, runs, hosts) for seen in _steps(flat, hosts))
        change = next((each for each in told if each is not None), None)
        if change is None:
            break
        found.append(change)
        places = change.cause.runs
        left = [value - change.size * (place in places) for place, value in enumerate(left)]
    return found


def _places_by_host(runs: Sequence[Circumstances]) -> dict[str, list[int]]:
    """Return the places of each host's numbers, in the order in which it took them."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, run in enumerate(runs):
        found[run.host].append(place)
    for places in found.values():
        places.sort(key=lambda place: (runs[place].at, place))
    return found


def _without(values: Sequence[float], places: frozenset[int]) -> list[float]:
    """Return values without what sets some of them apart from the others."""
    inside = [value for place, value in enumerate(values) if place in places]
    outside = [value for place, value in enumerate(values) if place not in places]
    if not inside or not outside:
        return list(values)
    size = median(inside) - median(outside)
    return [value - size * (place in places) for place, value in enumerate(values)]


def _without_outliers(values: Sequence[float], hosts: Mapping[str, Sequence[int]]) -> list[float]:
    """Return values without outliers: those that are far from the runs beside them on any host.

    What is like the last runs of its own host is none, nor is what is like the others'.
    """
    if len(hosts) == 1:
        return winsorised(values)
    beside = winsorised(values)
    own = list(beside)
    for places in hosts.values():
        if len(places) > LEAST_RUNS:
            kept = winsorised([values[place] for place in places])
            for place, value in zip(places, kept, strict=True):
                own[place] = value
    return [
        one if abs(one - value) <= abs(other - value) else other
        for value, one, other in zip(values, beside, own, strict=True)
    ]


def _without_offsets(values: list[float], hosts: Mapping[str, Sequence[int]]) -> list[float]:
    """Return values without what each host always adds to those around it."""
    if len(hosts) == 1:
        return values
    level = running_median(values, AROUND)
    found = list(values)
    for places in hosts.values():
        if len(places) >= LEAST_RUNS:
            offset = median(values[place] - level[place] for place in places)
            for place in places:
                found[place] -= offset
    return found


def _from_before(values: Sequence[float], own: Sequence[int], step: Step) -> list[float]:
    """Return values with those of one host moved so that they are like others before its step."""
    level = running_median(values, AROUND)
    offset = median(values[p] - level[p] for p in own[step.start : step.position])
    moved = set(own)
    return [value - offset * (place in moved) for place, value in enumerate(values)]


class _Seen(NamedTuple):
    """A step of all numbers, or, with ``host``, of those of one host."""

    step: Step
    host: str | None


def _steps(values: Sequence[float], hosts: Mapping[str, Sequence[int]]) -> list[_Seen]:
    """Return the steps of all numbers and of those of each host, the clearest first."""
    seen = [_Seen(step, None) for step in find_steps(values)]
    if len(hosts) > 1:
        for host, places in hosts.items():
            own = [values[place] for place in places]
            seen += [_Seen(step, host) for step in find_steps(own)]
    return sorted(seen, key=lambda each: -each.step.strength)


def _explained(
    seen: _Seen,
    values: Sequence[float],
    runs: Sequence[Circumstances],
    hosts: Mapping[str, Sequence[int]],
) -> Change | None:
    """Return a step with what explains it best among the numbers around it."""
    step, host = seen
    own: Sequence[int] = range(len(values)) if host is None else hosts[host]
    if host is not None:
        values = _from_before(values, own, step)
    before, after = own[step.start : step.position], own[step.position : step.end]
    window = range(min(*before, *after), max(*before, *after) + 1)
    turn = step.position if host is None else best_split(values[window[0] : window[-1] + 1])
    if host is not None and turn is not None:
        turn += window[0]
    rivals = [*_host_rivals(host, window, turn, runs, after)]
    rivals += _software_rivals(runs, before, after)
    commits = None if turn is None else _commits(values, window, turn, runs)
    if commits is not None:
        rivals.append(_code_rival(runs, commits))
    if host is None:
        rivals.append(_last_resort(runs, window, step.position))
    equal = _equal(rivals, values, window)
    if not equal:
        return None
    size = _size(values, window, equal[0].runs)
    if abs(size) < LEAST_CHANGE:
        return None
    good, bad = before[-1], after[0]
    if commits is not None and any(rival.kind is Kind.CODE for rival in equal):
        good, bad = commits.first - 1, commits.last
    return Change(size, good, bad, tuple(equal))


def _equal(rivals: Sequence[Rival], values: Sequence[float], window: range) -> list[Rival]:
    """Return the rivals that explain a step best, and cannot be told apart; the best first."""
    judged = []
    for number, rival in enumerate(rivals):
        rest = _unexplained(values, window, rival.runs)
        if rest is not None:
            judged.append((rest, number))
    judged.sort()
    equal = [
        rivals[number]
        for rest, number in judged
        if _odds(rest, judged[0][0], len(window)) <= _CLEAR_ODDS
    ]
    known = [rival for rival in equal if rival.what != NOTHING_RECORDED]
    return known or equal


class _Commits(NamedTuple):
    """The places at which a step may have come with a commit; ``best`` explains it best."""

    first: int
    best: int
    last: int
    end: int


def _commits(
    values: Sequence[float], window: range, turn: int, runs: Sequence[Circumstances]
) -> _Commits | None:
    """Return where code may have made a step: where the first run of a commit is."""
    starts = [
        p for p in window[1:] if runs[p].commit is None or runs[p].commit != runs[p - 1].commit
    ]
    if not starts:
        return None
    middle = bisect_left(starts, turn)
    near = starts[max(0, middle - _NEAR) : middle + _NEAR]
    end = len(runs)
    rests = {p: _unexplained(values, window, range(p, end), least=1) or math.inf for p in near}
    best = min(near, key=rests.__getitem__)
    may_be = [p for p in near if _odds(rests[p], rests[best], len(window)) <= _CLEAR_ODDS]
    return _Commits(may_be[0], best, may_be[-1], end)


def _code_rival(runs: Sequence[Circumstances], commits: _Commits) -> Rival:
    then, now = runs[commits.first - 1].commit, runs[commits.last].commit
    return Rival(Kind.CODE, "commit", then, now, frozenset(range(commits.best, commits.end)))


def _last_resort(runs: Sequence[Circumstances], window: range, turn: int) -> Rival:
    """Return what is left where nothing that is recorded changed: the host, if there is one."""
    there = {runs[place].host for place in window}
    since = frozenset(range(turn, len(runs)))
    kind = Kind.HOST if len(there) == 1 else Kind.CANNOT_TELL
    return Rival(kind, NOTHING_RECORDED, None, None, since)


def _host_rivals(
    host: str | None,
    window: range,
    turn: int | None,
    runs: Sequence[Circumstances],
    after: Sequence[int],
) -> Iterator[Rival]:
    """Yield hosts that explain a step: one that changed, or hosts that took over from others."""
    if host is not None:
        since = runs[after[0]].at
        own = (p for p, run in enumerate(runs) if run.host == host and run.at >= since)
        yield Rival(Kind.HOST, host, None, None, frozenset(own))
    if turn is None:
        return
    then = {runs[place].host for place in window if place < turn}
    now = {runs[place].host for place in window if place >= turn}
    if host is None and len(then | now) > 1:
        for one in sorted(then & now):
            later = [place for place in window if place >= turn and runs[place].host == one]
            since = min(runs[place].at for place in later)
            own = (p for p, run in enumerate(runs) if run.host == one and run.at >= since)
            yield Rival(Kind.HOST, one, None, None, frozenset(own))
    # The best split may be a few runs beside the one that is meant.
    every = Counter(runs[place].host for place in window)
    since_turn = Counter(runs[place].host for place in window if place >= turn)
    new = {one for one, count in since_turn.items() if count >= _MOSTLY * every[one]}
    then -= new
    if new and then:
        came = (place for place, run in enumerate(runs) if run.host in new)
        yield Rival(Kind.HOST, _named(new), _named(then), None, frozenset(came))


def _named(hosts: Collection[str]) -> str:
    """Return the names of hosts, or of some of many."""
    shown = sorted(hosts)[:_MOST_NAMES]
    more = len(hosts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _software_rivals(
    runs: Sequence[Circumstances],
    before: Sequence[int],
    after: Sequence[int],
) -> Iterator[Rival]:
    """Yield what is usually another version after a step than before it."""
    for name in sorted({name for place in (*before, *after) for name in runs[place].software}):
        then = Counter(runs[place].software.get(name) for place in before)
        now = Counter(runs[place].software.get(name) for place in after)
        old, new = then.most_common(1)[0][0], now.most_common(1)[0][0]
        if old != new and old is not None and new is not None:
            having = (p for p, run in enumerate(runs) if run.software.get(name) == new)
            yield Rival(Kind.ENVIRONMENT, name, old, new, frozenset(having))


def _odds(rest: float, best: float, n: int) -> float:
    return n / 2 * math.log(rest / best) if best > 0 else 0.0


def _unexplained(
    values: Sequence[float],
    window: range,
    places: frozenset[int] | range,
    least: int = LEAST_RUNS,
) -> float | None:
    """Return what two levels leave of the differences; None without runs on both of them."""
    n = total = squares = 0.0
    inside_n = inside = 0.0
    middle = values[window[0]]
    for place in window:
        value = values[place] - middle
        squares += value * value
        n, total = n + 1, total + value
        if place in places:
            inside_n, inside = inside_n + 1, inside + value
    if min(inside_n, n - inside_n) < least:
        return None
    outside = total - inside
    rest = squares - inside * inside / inside_n - outside * outside / (n - inside_n)
    return max(rest, 0.0) + n * LEAST_NOISE**2


def _size(values: Sequence[float], window: range, places: frozenset[int]) -> float:
    inside = [values[place] for place in window if place in places]
    outside = [values[place] for place in window if place not in places]
    return sum(inside) / len(inside) - sum(outside) / len(outside)
