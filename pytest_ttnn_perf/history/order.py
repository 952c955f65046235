"""The order of runs is that of their commits; clocks of hosts count where nothing else tells.

Git knows the order of some commits. Of others, records name the parents, and when they were made.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from dataclasses import field
from datetime import datetime, timezone
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ttnn_perf.history.runs import RecordedRun
    from pytest_ttnn_perf.processes.lineage import Lineage


@dataclass(slots=True, eq=False)
class _Commit:
    """A commit and its runs, as they started; a run without a commit is by itself.

    ``made_s`` is when it was made, None where nobody says so; ``begun_s`` when its first run
    started. ``earlier`` and ``later`` are commits that it comes after, and before.
    """

    runs: list[RecordedRun]
    place: int | None
    parents: tuple[str, ...]
    made_s: float | None
    begun_s: float
    earlier: set[_Commit] = field(default_factory=set)
    later: set[_Commit] = field(default_factory=set)

    def follows(self, other: _Commit) -> None:
        """Note that another one comes before it."""
        if other is not self:
            self.earlier.add(other)
            other.later.add(self)

    @property
    def is_told(self) -> bool:
        """Whether anything but the clock of a host tells where it belongs."""
        known = self.place is not None or self.made_s is not None
        return known or bool(self.earlier or self.later)


def in_order(
    runs: Iterable[RecordedRun], lineage: Lineage | None = None
) -> tuple[list[RecordedRun], int]:
    """Return runs in the order of their commits, and how many are placed by clocks of hosts alone.

    Commits that git knows are in its order. Others come after their parents, before commits that
    they are parents of, and else by when they were made. Runs of one commit are in the order in
    which they started.
    """
    commits = _commits(runs, lineage)
    _connect(commits, lineage)
    every = sorted(commits.values(), key=lambda commit: (_time_s(commit), _start(commit.runs[0])))
    told = _sorted([commit for commit in every if commit.is_told])
    others = sorted((c for c in every if not c.is_told), key=lambda commit: commit.begun_s)
    ordered = _inserted(told, others)
    return [run for commit in ordered for run in commit.runs], sum(len(c.runs) for c in others)


def _time_s(commit: _Commit) -> float:
    return commit.begun_s if commit.made_s is None else commit.made_s


def _inserted(told: Sequence[_Commit], others: Sequence[_Commit]) -> list[_Commit]:
    """Return commits in order with others among them, of which clocks alone tell something.

    Each comes after the last one that had begun to be measured before it.
    """
    begun = sorted((commit.begun_s, number) for number, commit in enumerate(told))
    after: dict[int, list[_Commit]] = defaultdict(list)
    for commit in others:
        before = bisect_right(begun, (commit.begun_s, len(told)))
        after[begun[before - 1][1] if before else -1].append(commit)
    ordered = list(after[-1])
    for number, commit in enumerate(told):
        ordered += (commit, *after[number])
    return ordered


def _commits(runs: Iterable[RecordedRun], lineage: Lineage | None) -> dict[str, _Commit]:
    """Return the commits of runs by their names; runs without one under names of their own."""
    grouped: dict[str, list[RecordedRun]] = defaultdict(list)
    for number, run in enumerate(sorted(runs, key=_start)):
        name = lineage.full(run.commit) if lineage else run.commit
        grouped[name or f"run {number}"].append(run)
    found = {}
    for name, own in grouped.items():
        made = lineage.times.get(name) if lineage else None
        told = (seconds_of(run.environment.committed_at) for run in own)
        made_s = made if made is not None else next((t for t in told if t is not None), None)
        started = (seconds_of(run.at) for run in own)
        begun_s = min((t for t in started if t is not None), default=-math.inf)
        parents = next((p for run in own if (p := run.environment.parents)), ())
        found[name] = _Commit(own, own[0].place, parents, made_s, begun_s)
    return found


def _connect(commits: dict[str, _Commit], lineage: Lineage | None) -> None:
    """Note which commits come before which: as git has them, then as records tell."""
    placed = sorted(
        ((commit.place, commit) for commit in commits.values() if commit.place is not None),
        key=lambda pair: pair[0],
    )
    for (_, earlier), (_, later) in pairwise(placed):
        later.follows(earlier)
    places = [place for place, _ in placed]
    for name, commit in commits.items():
        if lineage is not None and name == lineage.cut and placed:
            placed[0][1].follows(commit)
        for parent in commit.parents:
            before = commits.get(parent)
            if before is None and commit.place is None and lineage is not None:
                # Of a parent that was not measured, git may know where it is.
                count = bisect_right(places, lineage.places.get(parent, -1))
                before = placed[count - 1][1] if count else None
            # Between two that it knows, git has decided.
            if before is not None and None in {before.place, commit.place}:
                commit.follows(before)


def _sorted(every: Sequence[_Commit]) -> list[_Commit]:
    """Return commits, each after those that it follows; else as they are given.

    Records can be wrong, and have each commit come before the other. Then git alone decides, and
    the first of the others goes first.
    """
    rank = {id(commit): number for number, commit in enumerate(every)}
    waiting = {id(commit): len(commit.earlier) for commit in every}
    ready = [rank[id(commit)] for commit in every if not commit.earlier]
    heapify(ready)
    found: list[_Commit] = []
    done: set[int] = set()
    while len(found) < len(every):
        if ready:
            commit = every[heappop(ready)]
        else:
            left = [commit for commit in every if id(commit) not in done]
            first = min((n.place for n in left if n.place is not None), default=None)
            commit = next(commit for commit in left if commit.place in {None, first})
        if id(commit) in done:
            continue
        done.add(id(commit))
        found.append(commit)
        for later in commit.later:
            waiting[id(later)] -= 1
            if not waiting[id(later)] and id(later) not in done:
                heappush(ready, rank[id(later)])
    return found


def _start(run: RecordedRun) -> tuple[str, str, str]:
    return run.at, run.id or "", run.source.name


def seconds_of(moment: str | None) -> float | None:
    """Return a time as seconds; None for what is none. Without a zone, it is in UTC.

    >>> seconds_of("1970-01-01T01:00:00+01:00"), seconds_of("1970-01-01T00:00:01Z"), seconds_of("x")
    (0.0, 1.0, None)
    """
    try:
        read = datetime.fromisoformat((moment or "").replace("Z", "+00:00"))
        aware = read if read.tzinfo else read.replace(tzinfo=timezone.utc)
        return aware.timestamp()
    except (ValueError, OverflowError):
        return None
