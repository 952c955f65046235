"""Read recorded runs, select a branch, order them by commit."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.gate.judge import settled_value
from pytest_ttnn_perf.machine.git import lineage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Environment, Scalar
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import JudgedTest, Run
    from pytest_ttnn_perf.core.verdict import Verdict
    from pytest_ttnn_perf.gate.store import StoredFile
    from pytest_ttnn_perf.machine.git import Lineage


# The order of runs is that of their commits; clocks of hosts count where nothing else tells.
#
# Git knows the order of some commits. Of others, records name the parents, and when they were made.


class _Commit(Struct, eq=False):
    """A commit and its runs; a run without a commit stands alone.

    ``made_s`` is when it was made, None where nobody says so; ``begun_s`` when its first run
    started. ``earlier`` and ``later`` are commits that it comes after, and before.
    """

    runs: list[RecordedRun]
    place: int | None
    parents: tuple[str, ...]
    made_s: float | None
    begun_s: float
    earlier: set[_Commit] = set()
    later: set[_Commit] = set()

    def follows(self, other: _Commit) -> None:
        """Note that another one comes before it."""
        if other is not self:
            self.earlier.add(other)
            other.later.add(self)

    @property
    def is_placed(self) -> bool:
        """Whether more than a host's clock places the commit."""
        known = self.place is not None or self.made_s is not None
        return known or bool(self.earlier or self.later)


def in_order(
    runs: Iterable[RecordedRun], lineage: Lineage | None = None
) -> tuple[list[RecordedRun], int]:
    """Order runs by commit; count those placed by host clocks alone.

    Commits that git knows are in its order. Others come after their parents, before commits that
    they are parents of, and else by when they were made. Runs of one commit are in the order in
    which they started.
    """
    commits = _commits(runs, lineage)
    _connect(commits, lineage)
    every = sorted(commits.values(), key=lambda commit: (_time_s(commit), _start(commit.runs[0])))
    told = _sorted([commit for commit in every if commit.is_placed])
    others = sorted((c for c in every if not c.is_placed), key=lambda commit: commit.begun_s)
    ordered = _inserted(told, others)
    return [run for commit in ordered for run in commit.runs], sum(len(c.runs) for c in others)


def _time_s(commit: _Commit) -> float:
    return commit.begun_s if commit.made_s is None else commit.made_s


def _inserted(told: Sequence[_Commit], others: Sequence[_Commit]) -> list[_Commit]:
    """Insert commits that only clocks can place.

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
    """Group runs by commit; each run without one stands alone."""
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
    """Link commits in the order of git, then of the records."""
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
    """Sort topologically; ties keep their given order.

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
    """Parse an ISO time to seconds, as UTC without a zone.

    >>> seconds_of("1970-01-01T01:00:00+01:00"), seconds_of("1970-01-01T00:00:01Z"), seconds_of("x")
    (0.0, 1.0, None)
    """
    try:
        read = datetime.fromisoformat((moment or "").replace("Z", "+00:00"))
        aware = read if read.tzinfo else read.replace(tzinfo=timezone.utc)
        return aware.timestamp()
    except (ValueError, OverflowError):
        return None


# Tests that were renamed: what was recorded of them before goes on under their new names.

#: The key and the id that something is filed under.
Name = tuple[str, str]
#: What tests were filed under before, the oldest first, by what they are now.
Renamed = Mapping[Name, tuple[Name, ...]]


def renamed_tests(files: Iterable[StoredFile]) -> Renamed:
    """Map tests to their former names, oldest first."""
    found = {}
    for file in files:
        key = file.content.hardware.key
        for name, stored in file.content.tests.items():
            if stored.formerly and file.test_file is not None:
                before = tuple((former.key, former.test) for former in stored.formerly)
                found[key, f"{file.test_file}::{name}"] = before
    return found


def follow(runs: Sequence[RecordedRun], renamed: Renamed) -> tuple[RecordedRun, ...]:
    """Give all readings of a test its current name.

    A name may be that of another test by now: what has it once the test is there under a later
    name is not the test that was renamed.
    """
    if not renamed:
        return tuple(runs)
    first: dict[Name, int] = {}
    for number, run in enumerate(runs):
        for reading in run.readings:
            first.setdefault((reading.key, reading.test), number)
    # Until which run a name stands for the test, and the name of today.
    until = {
        former: (min((first.get(name, len(runs)) for name in later), default=len(runs)), now)
        for now, names in renamed.items()
        for former, later in _with_later((*names, now))
        if former != now
    }

    def readings(number: int, run: RecordedRun) -> Iterator[Reading]:
        for reading in run.readings:
            end, (key, test) = until.get((reading.key, reading.test), (0, ("", "")))
            if number < end:
                yield replace(reading, key=key, test=test, recorded_as=reading.test)
            else:
                yield reading

    return tuple(replace(r, readings=tuple(readings(n, r))) for n, r in enumerate(runs))


def _with_later(names: Sequence[Name]) -> Iterator[tuple[Name, Sequence[Name]]]:
    """Yield each name but the last, with those that came after it."""
    for place, name in enumerate(names[:-1], start=1):
        yield name, names[place:]


class Reading(Struct, frozen=True):
    """One value of a metric of a test in a run.

    ``setting`` is the configuration it was measured in: numbers of different ones are not
    compared. ``explains``: it is part of another metric of the test. ``written``: its run stored it
    as a baseline. ``recorded_as`` is the id that the record has it under, if the test was renamed.
    """

    test: str
    metric: Metric
    key: str
    setting: tuple[tuple[str, Scalar], ...]
    value: float
    verdict: Verdict | None
    gated: bool
    explains: bool
    written: bool
    recorded_as: str | None = None


class Source(Protocol):
    """Place of a run's record: a file or a database row."""

    @property
    def is_stored(self) -> bool:
        """Whether it is in a database."""

    @property
    def name(self) -> str:
        """The name of the record."""

    @property
    def file(self) -> str:
        """The file that it is in, or that it is exported to."""

    def read(self) -> Run:
        """Read the whole record, with samples and op tables.

        Raises:
            TtnnPerfError: it cannot be read, or is not there any more.
        """


class RecordFile(Struct, frozen=True):
    """A record in a file."""

    path: Path
    is_stored: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The path of the file."""
        return str(self.path)

    @property
    def file(self) -> str:
        """The path of the file."""
        return str(self.path)

    def read(self) -> Run:
        """Read the file."""
        return read_run(self.path)


class RecordedRun(Struct, frozen=True):
    """A run from its record; ``place`` is its commit's position in git.

    ``software`` is what changes without a commit: versions, firmware, driver, kernel, governor.
    """

    source: Source
    id: str | None
    environment: Environment
    label: str | None
    complete: bool
    software: Mapping[str, Scalar]
    readings: tuple[Reading, ...]
    place: int | None = None

    @property
    def at(self) -> str:
        """Start time by the host's clock, or empty."""
        return self.environment.started_at or ""

    @property
    def day(self) -> str:
        """The day on which it started."""
        return self.at[:10] or "-"

    @property
    def host(self) -> str:
        """The runner's name, or the hash of the host's."""
        environment = self.environment
        return environment.runner or environment.host_hash or "unknown host"

    @property
    def commit(self) -> str | None:
        """The commit that was checked out."""
        return self.environment.commit

    @property
    def short_commit(self) -> str:
        """The beginning of its name."""
        return (self.commit or "-")[:9]


class Wanted(Struct, frozen=True):
    """Selected runs: of one branch (None: the main one) or of all."""

    branch: str | None = None
    all_branches: bool = False
    dirty: bool = False


class RunHistory(Struct, frozen=True):
    """Runs in the order of their commits, and the excluded ones.

    ``unreadable`` are files, each with what is wrong with it. ``left_out`` counts runs by why.
    ``notes`` say how far the order can be trusted.
    """

    runs: tuple[RecordedRun, ...]
    unreadable: tuple[str, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()


#: What stays of a history: the runs of so long, or the newest so many.
Keep = timedelta | int


def kept_of(started_s: Sequence[float], keep: Keep | None) -> int:
    """Count the runs to keep, given start times, newest first.

    >>> kept_of([3.0, 2.0, 1.0], 2), kept_of([3.0, 2.0], timedelta(days=1)), kept_of([1.0], None)
    (2, 0, 1)
    """
    if isinstance(keep, timedelta):
        oldest_s = time.time() - keep.total_seconds()
        return sum(start_s >= oldest_s for start_s in started_s)
    return len(started_s) if keep is None else min(keep, len(started_s))


#: Of the environment of a run, what may change how fast it is, as it is called here.
_SOFTWARE: Final = {
    "ttnn": "ttnn",
    "system": "kernel",
    "governor": "governor",
    "python": "python",
    "torch": "torch",
    "numpy": "numpy",
    "plugin": "pytest-ttnn-perf",
}
#: What tests tell of the board they ran on.
_OF_BOARDS: Final = ("firmware", "driver")
#: Branches that are the main one, where nobody names another.
_MAIN: Final = ("main", "master")
OTHER_BRANCH: Final = "of other branches or of pull requests (--branch NAME, --all-branches)"
DIRTY: Final = "with uncommitted changes (--dirty)"
UNKNOWN_COMMIT: Final = (
    "of commits that git does not know, so that their branch is not known (git fetch, "
    "--all-branches)"
)
TWICE: Final = "read twice"


def read_history(paths: Sequence[Path], folder: Path, wanted: Wanted) -> RunHistory:
    """Read records; ``folder`` is in the repository of their commits.

    Raises:
        UsageError: a path does not exist, or a branch that was named does not.
    """
    read = [_read(file) for file in record_files(paths)]
    runs = [run for run in read if not isinstance(run, str)]
    unreadable = [problem for problem in read if isinstance(problem, str)]
    return replace(arranged(runs, folder, wanted), unreadable=tuple(unreadable))


def arranged(runs: Sequence[RecordedRun], folder: Path, wanted: Wanted) -> RunHistory:
    """Select the wanted runs and order them by commit.

    Raises:
        UsageError: a branch that was named does not exist.
    """
    commits = {run.commit for run in runs if run.commit}
    names = (wanted.branch,) if wanted.branch else _MAIN
    lineage = lineage_of(folder, sorted(commits), names, all_branches=wanted.all_branches)
    branch = _Branch(runs, lineage, names)
    if not wanted.all_branches and not branch.is_placed:
        if lineage is not None:
            message = (
                f"git knows no branch {' or '.join(names)} in {folder}, and no run is of one: name "
                "one with --branch, or take all runs with --all-branches"
            )
            raise UsageError(message)
        if wanted.branch is not None:
            message = f"{folder} is in no git repository: nothing tells which runs are of a branch"
            raise UsageError(message)
    kept, left_out = _kept(runs, branch, wanted)
    placed = [replace(run, place=lineage.place(run.commit)) for run in kept] if lineage else kept
    ordered, guessed = in_order(placed, lineage)
    return RunHistory(
        tuple(ordered),
        left_out=tuple(sorted(left_out.items())),
        notes=tuple(_notes(ordered, lineage, guessed)),
    )


class _Branch:
    """Commits of a branch: by git, else by the records."""

    def __init__(
        self, runs: Sequence[RecordedRun], lineage: Lineage | None, names: Sequence[str]
    ) -> None:
        self.lineage = lineage
        told = {run.environment.branch for run in runs if run.environment.pull_request is None}
        known = lineage.branch if lineage else None
        self.name = known or next((name for name in names if name in told), None)
        self.is_placed = self.name is not None
        self._commits = self._by_records(runs)

    def _by_records(self, runs: Sequence[RecordedRun]) -> set[str]:
        """Commits measured on the branch, and their first parents."""
        parents = {self.full(r.commit): r.environment.parents for r in runs if r.commit}
        found: set[str] = set()
        waiting = [self.full(run.commit) for run in runs if run.commit and self._says_so(run)]
        if self.lineage is not None and self.lineage.cut is not None:
            waiting.append(self.lineage.cut)
        while waiting:
            commit = waiting.pop()
            if commit not in found:
                found.add(commit)
                waiting += parents.get(commit, ())[:1]
        return found

    def _says_so(self, run: RecordedRun) -> bool:
        about = run.environment
        excluded = self.lineage is not None and self.lineage.excludes(run.commit)
        return self.name == about.branch and about.pull_request is None and not excluded

    def full(self, commit: str | None) -> str:
        """Return the whole name of a commit, if git knows it."""
        return self.lineage.full(commit) if self.lineage else commit or ""

    def obstacle(self, run: RecordedRun) -> str | None:
        """The reason why a run is off the branch, if it is."""
        about, lineage = run.environment, self.lineage
        # Whatever its branch is called: that of a fork may be called main as well.
        if about.pull_request is not None:
            return OTHER_BRANCH
        if lineage is not None and lineage.place(run.commit) is not None:
            return None
        if lineage is not None and lineage.excludes(run.commit):
            return OTHER_BRANCH
        if self.full(run.commit) in self._commits:
            return None
        if about.branch is not None:
            return None if about.branch == self.name else OTHER_BRANCH
        return UNKNOWN_COMMIT if lineage is not None or self.is_placed else None


def record_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield record files, also those inside folders.

    Raises:
        UsageError: a path does not exist.
    """
    for path in paths:
        if path.is_dir():
            found = {*path.rglob("*.json"), *path.rglob("*.jsonl"), *path.rglob("*.json.gz")}
            yield from sorted(file for file in found if file.is_file())
        elif path.exists():
            yield path
        else:
            message = f"{path}: expected a run record or a folder of them, found nothing"
            raise UsageError(message)


def _read(file: Path) -> RecordedRun | str:
    """Read a run, or return the problem of its file."""
    try:
        return recorded_run(RecordFile(file), read_run(file))
    except InputError as error:
        return str(error)


def recorded_run(source: Source, run: Run) -> RecordedRun:
    """Reduce a record to a run with readings."""
    software = {
        shown: value
        for name, shown in _SOFTWARE.items()
        if (value := getattr(run.environment, name)) is not None
    }
    for judged in run.tests.values():
        told = judged.observation.environment
        software |= {name: told[name] for name in _OF_BOARDS if told.get(name) is not None}
    readings = [each for judged in run.tests.values() for each in _readings(judged, run)]
    return RecordedRun(
        source, run.id, run.environment, run.label, run.complete, software, tuple(readings)
    )


def _readings(judged: JudgedTest, run: Run) -> Iterator[Reading]:
    observation = judged.observation
    hardware = observation.hardware or run.hardware
    if hardware is None:
        return
    verdicts = {verdict.metric.name: verdict for verdict in judged.verdicts}
    setting = tuple(sorted(observation.setting.values.items(), key=lambda item: item[0]))
    for name, observed in observation.metrics.items():
        value = settled_value(observed)
        if value is not None:
            yield Reading(
                observation.test,
                observed.metric,
                hardware.key,
                setting,
                value,
                verdicts.get(name),
                gated=observed.gated,
                explains=any(total in observation.metrics for total in observed.metric.totals),
                written=name in judged.written,
            )


def _kept(
    runs: Iterable[RecordedRun], branch: _Branch, wanted: Wanted
) -> tuple[list[RecordedRun], Counter[str]]:
    """Select the wanted runs; count the others by reason."""
    kept: list[RecordedRun] = []
    left_out: Counter[str] = Counter()
    seen: set[tuple[object, ...]] = set()
    for run in runs:
        why = None if wanted.all_branches else branch.obstacle(run)
        if run.environment.dirty and not wanted.dirty:
            why = DIRTY
        environment = run.environment
        identity = (run.id, run.at, environment.shard, environment.attempt, run.readings)
        if why is None and run.id is not None and identity in seen:
            why = TWICE
        if why is None:
            kept.append(run)
            seen.add(identity)
        else:
            left_out[why] += 1
    return kept, left_out


def _notes(runs: Sequence[RecordedRun], lineage: Lineage | None, guessed: int) -> Iterator[str]:
    """Yield notes on how reliable order and selection are."""
    if not runs:
        return
    without = sum(run.place is None for run in runs) - guessed
    if lineage is None:
        unnamed = sum(run.environment.branch is None for run in runs)
        taken = f"; {unnamed} of {len(runs)} name none, and are taken" if unnamed else ""
        yield f"no git repository here: records tell the branch of a run{taken}"
    elif without:
        yield (
            f"git does not know the commits of {without} of {len(runs)} runs: these are placed by "
            "the parents and the times of commits in their records"
        )
    if guessed:
        yield (
            f"nothing tells the order of the commits of {guessed} of {len(runs)} runs: these are "
            "placed by the clocks of their hosts"
        )
