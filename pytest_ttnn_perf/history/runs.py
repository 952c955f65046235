"""Recorded runs: read from files, those of one branch kept, put into the order of commits."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf.analysis.captures.detect import read_run
from pytest_ttnn_perf.gate.judge import settled_value
from pytest_ttnn_perf.history.order import in_order
from pytest_ttnn_perf.processes.lineage import lineage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.processes.lineage import Lineage
    from pytest_ttnn_perf.records.hardware import Environment, Scalar
    from pytest_ttnn_perf.records.metric import Metric
    from pytest_ttnn_perf.records.observation import JudgedTest, Run
    from pytest_ttnn_perf.records.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Reading:
    """What a run says of one metric of a test, on the hardware of ``key``.

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
    """Where the record of a run is: a file, or a database, where it ``is_stored``."""

    @property
    def is_stored(self) -> bool:
        """Whether it is in a database."""

    @property
    def name(self) -> str:
        """What it is called there."""

    @property
    def file(self) -> str:
        """The file that it is in, or that it is exported to."""

    def read(self) -> Run:
        """Read the whole record, with samples and op tables.

        Raises:
            TtnnPerfError: it cannot be read, or is not there any more.
        """


@dataclass(frozen=True, slots=True)
class RecordFile:
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


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run as its record tells it; ``place`` is that of its commit, where git knows it.

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
        """When it started, by the clock of its host; empty where that is not known."""
        return self.environment.started_at or ""

    @property
    def day(self) -> str:
        """The day on which it started."""
        return self.at[:10] or "-"

    @property
    def host(self) -> str:
        """The name of its runner, or what stands for that of its host."""
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs are asked for: of one branch (None: the main one), or of all of them."""

    branch: str | None = None
    all_branches: bool = False
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Runs in the order of their commits, and what is not among them.

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
    """Return how many runs stay, by when they started, the newest first; None keeps all.

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
    """Read the records in files and folders; ``folder`` is in the repository of their commits.

    Raises:
        UsageError: a path does not exist, or a branch that was named does not.
    """
    read = [_read(file) for file in record_files(paths)]
    runs = [run for run in read if not isinstance(run, str)]
    unreadable = [problem for problem in read if isinstance(problem, str)]
    return replace(arranged(runs, folder, wanted), unreadable=tuple(unreadable))


def arranged(runs: Sequence[RecordedRun], folder: Path, wanted: Wanted) -> RunHistory:
    """Return those of some runs that are wanted, in the order of their commits.

    Raises:
        UsageError: a branch that was named does not exist.
    """
    commits = {run.commit for run in runs if run.commit}
    names = (wanted.branch,) if wanted.branch else _MAIN
    lineage = lineage_of(folder, sorted(commits), names, all_branches=wanted.all_branches)
    branch = _Branch(runs, lineage, names)
    if not wanted.all_branches and not branch.is_told:
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
    """Which commits are of a branch: git decides; where it cannot tell, the records do."""

    def __init__(
        self, runs: Sequence[RecordedRun], lineage: Lineage | None, names: Sequence[str]
    ) -> None:
        self.lineage = lineage
        told = {run.environment.branch for run in runs if run.environment.pull_request is None}
        known = lineage.branch if lineage else None
        self.name = known or next((name for name in names if name in told), None)
        self.is_told = self.name is not None
        self._commits = self._by_records(runs)

    def _by_records(self, runs: Sequence[RecordedRun]) -> set[str]:
        """Return the commits that were measured on the branch, and all first parents of these."""
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
        """Say why a run is not of the branch; None if it is."""
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
        return UNKNOWN_COMMIT if lineage is not None or self.is_told else None


def record_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield files, and those in folders that have the name of a record or of a journal.

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
    """Return a run, or what is wrong with its file."""
    try:
        return recorded_run(RecordFile(file), read_run(file))
    except InputError as error:
        return str(error)


def recorded_run(source: Source, run: Run) -> RecordedRun:
    """Return what histories are made of, of a whole record."""
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
    """Return the runs that are asked for, and count the others by why they are not."""
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
    """Say how far the order of runs, and which of them there are, can be trusted."""
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
