"""Recorded runs in the order of commits, and series of their numbers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import datetime, timezone
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import median
from pytest_ttnn_perf.core.observation import Outcome, value_of
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.machine.git import TIMEOUT_S, Git, GitError, described_commit, top_level
from pytest_ttnn_perf.report.tables import (
    BELOW,
    DROPPED,
    METRIC,
    OUTCOME_COLOURS,
    Column,
    Columns,
    Fit,
    Listing,
    format_change,
    format_value,
    id_column,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Environment, Scalar
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import JudgedTest, Run, Verdict
    from pytest_ttnn_perf.history.database import StoredRecord
    from pytest_ttnn_perf.report.tables import Block

    Setting = tuple[tuple[str, Scalar], ...]


def in_order(runs: Iterable[RecordedRun], lineage: Lineage | None = None) -> list[RecordedRun]:
    """Order runs by commit.

    Commits that git knows are in its order. Others are placed among them by when their first run
    started. Runs of one commit are in the order in which they started.
    """
    commits: dict[str, list[RecordedRun]] = defaultdict(list)
    for number, run in enumerate(sorted(runs, key=lambda r: (r.at, r.id or "", r.source.name))):
        name = lineage.full(run.commit) if lineage else run.commit
        commits[name or f"run {number}"].append(run)
    places = {name: own[0].place for name, own in commits.items()}
    begun = {name: seconds_of(own[0].at) or 0.0 for name, own in commits.items()}
    known = [name for name, place in places.items() if place is not None]
    ordered = sorted(known, key=lambda name: places[name] or 0)
    for name in sorted((n for n in places if places[n] is None), key=begun.__getitem__):
        before = (n for n, other in enumerate(ordered, 1) if begun[other] <= begun[name])
        ordered.insert(max(before, default=0), name)
    return [run for name in ordered for run in commits[name]]


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


class Reading(Struct, frozen=True):
    """One value of a metric of a test in a run.

    Numbers of different settings are not compared. ``explains``: it is part of another metric.
    ``written``: its run stored it.
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


class RecordFile(Struct, frozen=True):
    """A record in a file."""

    path: Path
    is_stored: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return str(self.path)

    def read(self) -> Run:
        return read_run(self.path)


class RecordedRun(Struct, frozen=True):
    """A run from its record; ``place`` is its commit's position in git."""

    source: RecordFile | StoredRecord
    id: str | None
    environment: Environment
    label: str | None
    complete: bool
    software: Mapping[str, Scalar]
    readings: tuple[Reading, ...]
    place: int | None = None

    @property
    def at(self) -> str:
        return self.environment.started_at or ""

    @property
    def day(self) -> str:
        return self.at[:10] or "-"

    @property
    def host(self) -> str:
        environment = self.environment
        return environment.runner or environment.host_hash or "unknown host"

    @property
    def commit(self) -> str | None:
        return self.environment.commit

    @property
    def short_commit(self) -> str:
        return (self.commit or "-")[:9]


class RunSelection(Struct, frozen=True):
    """Selected runs: of one branch (None: the main one) or of all."""

    branch: str | None = None
    all_branches: bool = False
    dirty: bool = False


class RunHistory(Struct, frozen=True):
    """Runs in the order of their commits, and the excluded ones.

    ``left_out`` counts runs by why; ``notes`` say how far the order can be trusted.
    """

    runs: tuple[RecordedRun, ...]
    unreadable: tuple[str, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()


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


def read_history(paths: Sequence[Path], folder: Path, wanted: RunSelection) -> RunHistory:
    runs, unreadable = [], []
    for file in record_files(paths):
        try:
            runs.append(recorded_run(RecordFile(file), read_run(file)))
        except InputError as error:
            unreadable.append(str(error))
    return replace(arranged(runs, folder, wanted), unreadable=tuple(unreadable))


def arranged(runs: Sequence[RecordedRun], folder: Path, wanted: RunSelection) -> RunHistory:
    commits = {run.commit for run in runs if run.commit}
    names = (wanted.branch,) if wanted.branch else _MAIN
    lineage = lineage_of(folder, sorted(commits), names, all_branches=wanted.all_branches)
    told = {run.environment.branch for run in runs if run.environment.pull_request is None}
    branch = lineage.branch if lineage else None
    branch = branch or next((name for name in names if name in told), None)
    if not wanted.all_branches and branch is None:
        if lineage is not None:
            message = (
                f"git knows no branch {' or '.join(names)} in {folder}, and no run is of one: name "
                "one with --branch, or take all runs with --all-branches"
            )
            raise UsageError(message)
        if wanted.branch is not None:
            message = f"{folder} is in no git repository: the branches of runs are unknown"
            raise UsageError(message)
    kept, left_out = _kept(runs, lineage, branch, wanted)
    placed = [replace(run, place=lineage.place(run.commit)) for run in kept] if lineage else kept
    ordered = in_order(placed, lineage)
    return RunHistory(
        tuple(ordered),
        left_out=tuple(sorted(left_out.items())),
        notes=tuple(_notes(ordered, lineage)),
    )


def _obstacle(run: RecordedRun, lineage: Lineage | None, branch: str | None) -> str | None:
    about = run.environment
    # Whatever its branch is called: that of a fork may be called main as well.
    if about.pull_request is not None:
        return OTHER_BRANCH
    if lineage is not None and lineage.place(run.commit) is not None:
        return None
    if lineage is not None and lineage.excludes(run.commit):
        return OTHER_BRANCH
    if about.branch is not None:
        return None if about.branch == branch else OTHER_BRANCH
    return UNKNOWN_COMMIT if lineage is not None or branch is not None else None


def record_files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            found = {*path.rglob("*.json"), *path.rglob("*.jsonl"), *path.rglob("*.json.gz")}
            yield from sorted(file for file in found if file.is_file())
        elif path.exists():
            yield path
        else:
            message = f"{path}: expected a run record or a folder of them, found nothing"
            raise UsageError(message)


def recorded_run(source: RecordFile | StoredRecord, run: Run) -> RecordedRun:
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
    verdicts = {verdict.metric.name: verdict for verdict in judged.verdicts}
    setting = tuple(sorted(observation.setting.items(), key=lambda item: item[0]))
    for name, observed in observation.metrics.items():
        value = value_of(observed, verdicts.get(name))
        if hardware is not None and value is not None:
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
    runs: Iterable[RecordedRun],
    lineage: Lineage | None,
    branch: str | None,
    wanted: RunSelection,
) -> tuple[list[RecordedRun], Counter[str]]:
    """Select the wanted runs; count the others by reason."""
    kept: list[RecordedRun] = []
    left_out: Counter[str] = Counter()
    seen: set[tuple[object, ...]] = set()
    for run in runs:
        why = None if wanted.all_branches else _obstacle(run, lineage, branch)
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


def _notes(runs: Sequence[RecordedRun], lineage: Lineage | None) -> Iterator[str]:
    """Yield notes on how reliable order and selection are."""
    unknown = sum(run.place is None for run in runs)
    if lineage is None and runs:
        unnamed = sum(run.environment.branch is None for run in runs)
        taken = f"; {unnamed} of {len(runs)} name none, and are taken" if unnamed else ""
        yield f"no git repository here: records name the branch of a run{taken}"
        yield "runs are in the order of the clocks of their hosts"
    elif unknown:
        yield (
            f"git does not know the commits of {unknown} of {len(runs)} runs: these are placed by "
            "the clocks of their hosts"
        )


# Series: one metric of one test on one hardware key, run after run.


class Point(NamedTuple):
    """One run's value; ``number`` is the run's position."""

    number: int
    run: RecordedRun
    reading: Reading


class Series(Struct, frozen=True):
    """Comparable values of one metric of a test, in run order.

    ``setting`` is the configuration of the test: with another one, another series begins.
    """

    test: str
    metric: Metric
    key: str
    setting: Setting
    points: tuple[Point, ...]

    @property
    def values(self) -> list[float]:
        return [point.reading.value for point in self.points]

    @property
    def last(self) -> Point:
        return self.points[-1]

    @property
    def gated(self) -> bool:
        """Judged by itself in the last run."""
        return self.last.reading.gated and not self.last.reading.explains

    @property
    def by_ratio(self) -> bool:
        """Times and throughputs above zero, whose changes are ratios."""
        return self.metric.compared_by_ratio and min(self.values) > 0

    @property
    def since_accept(self) -> float | None:
        """Relative change of the last runs from the accepted baseline.

        None where the last run has no baseline to compare with.
        """
        verdict = self.last.reading.verdict
        if verdict is None or not verdict.centre:
            return None
        return median(self.values[-LATEST:]) / verdict.centre - 1


#: So many runs say where a series is now.
LATEST: Final = 3
#: Outcomes whose number becomes what the next one is compared with, once it is stored.
_ACCEPTING: Final = frozenset({Outcome.REGRESSED, Outcome.IMPROVED, Outcome.SHIFTED})


def series_of(
    runs: Sequence[RecordedRun], *, metric: str | None = None, across_hosts: bool = False
) -> list[Series]:
    """Group the readings of ordered runs into series.

    Where keys have the host in them, each host has series of its own, unless ``across_hosts``.
    """
    found: dict[tuple[str, Metric, str, Setting], list[Point]] = defaultdict(list)
    for number, run in enumerate(runs):
        for reading in run.readings:
            if metric is None or reading.metric.name == metric:
                key = _without_host(reading.key) if across_hosts else reading.key
                identity = (reading.test, reading.metric, key, reading.setting)
                found[identity].append(Point(number, run, reading))
    return [Series(*identity, tuple(points)) for identity, points in found.items()]


@cache
def _without_host(key: str) -> str:
    """Return the key that hosts of one kind share.

    >>> _without_host("wormhole_b0-n150-1x1-host_lab7"), _without_host("anything else")
    ('wormhole_b0-n150-1x1', 'anything else')
    """
    hardware = Hardware.from_key(key)
    return replace(hardware, host=None).key if hardware and hardware.host else key


def chosen(series: Sequence[Series], tests: Collection[str]) -> list[Series]:
    kept = (each for each in series if each.test in tests)
    return sorted(kept, key=lambda s: (s.test, s.metric.name, s.key, s.last.number))


def mark_of(point: Point) -> str:
    """Effect of a run on the baseline: accepted, stored, or none."""
    reading = point.reading
    if not reading.written or reading.verdict is None:
        return ""
    if reading.verdict.outcome in _ACCEPTING:
        return "accepted"
    return "" if reading.verdict.outcome is Outcome.WITHIN else "stored"


def overview_listing(series: Sequence[Series], history: RunHistory) -> Listing:
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
    return OUTCOME_COLOURS.get(verdict.outcome) if verdict else None


_OVERVIEW: Final[Columns[Series]] = Columns(
    Column("key", lambda s: s.key, "key", once=True),
    id_column(lambda s: s.test),
    Column("metric", lambda s: s.metric.name, "metric", fit=METRIC),
    Column("unit", lambda s: s.metric.unit),
    Column("last", lambda s: s.last.reading.value, "last",
           lambda s: format_value(s.metric, s.last.reading.value), right=True),
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
        before = self.before.reading.value if self.before else None
        return (self.point.reading.value - before) / abs(before) if before else None

    @property
    def from_baseline(self) -> float | None:
        verdict = self.point.reading.verdict
        return verdict.change_as_read if verdict else None

    @property
    def marks(self) -> str:
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
    judged = [each for each in series if each.gated]
    shown = series if all_metrics or not judged else judged
    rows = [
        [_Row(s, point, before) for before, point in zip((None, *s.points), s.points, strict=False)]
        for s in shown
    ]
    lines: list[Block] = []
    for each, own in zip(shown, rows, strict=True):
        lines += [_heading(each), *_ROWS.table(own), ""]
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


def history_lines(history: RunHistory) -> Iterator[str]:
    for why, count in history.left_out:
        yield f"left out: {counted(count, 'run')} {why}"
    if history.unreadable:
        yield f"left out: {counted(len(history.unreadable), 'file')} that cannot be read:"
        yield from (f"  {problem}" for problem in history.unreadable)
    yield from history.notes


def history_document(history: RunHistory) -> dict[str, object]:
    return {
        "left_out": [{"why": why, "runs": count} for why, count in history.left_out],
        "unreadable": list(history.unreadable),
        "notes": list(history.notes),
    }


# The order of commits, as git has it: clocks of machines and authors do not matter.

#: What may be the name of a commit; records are written by anybody.
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")


class Lineage(Struct, frozen=True):
    """The order of some commits in a repository.

    ``known`` gives the full name of each by the name that it was asked for. ``places`` are the
    places of commits in their order, the oldest first, by their full names: those of ``branch``, or
    of all branches. ``branch`` is None as well where git has none of that name. A shallow clone has
    the last part of a branch alone: ``cut`` is then the commit that the oldest one follows.
    """

    known: Mapping[str, str]
    places: Mapping[str, int]
    branch: str | None = None
    cut: str | None = None

    def full(self, commit: str | None) -> str:
        return self.known.get(commit or "", commit or "")

    def place(self, commit: str | None) -> int | None:
        return self.places.get(self.full(commit))

    def excludes(self, commit: str | None) -> bool:
        """Return whether a commit is known not to be of the branch."""
        if self.branch is None or self.cut is not None or commit not in self.known:
            return False
        return self.place(commit) is None


def lineage_of(
    folder: Path, commits: Collection[str], names: Sequence[str], *, all_branches: bool = False
) -> Lineage | None:
    """Return the order of some commits; None without a repository.

    A branch is followed by first parents, here and on ``origin``: what was merged into it is not
    it. It is the first of ``names`` that there is.

    Raises:
        UsageError: git fails.
    """
    top = top_level(folder)
    if top is None:
        return None
    git = Git(top)
    words = ("rev-list", "--topo-order", "--reverse")
    try:
        known = _known(git, commits)
        if all_branches or not names:
            given = "".join(f"{commit}\n" for commit in sorted(set(known.values())))
            asked = (*words, "--stdin")
            listed = git.run(*asked, given=given, timeout_s=TIMEOUT_S) if known else ""
            return Lineage(known, _places(listed))
        for name in names:
            refs = (f"refs/heads/{name}", f"refs/remotes/origin/{name}")
            tips = (git.ask("rev-parse", "--verify", "--quiet", f"{r}^{{commit}}") for r in refs)
            there = [tip for tip in tips if tip]
            if there:
                listed = git.run(*words, "--first-parent", *there, "--", timeout_s=TIMEOUT_S)
                places = _places(listed)
                return Lineage(known, places, name, _cut(git, next(iter(places))))
    except GitError as cause:
        message = f"git does not know the order of commits in {top}: {cause}"
        raise UsageError(message) from cause
    return Lineage(known, {})


def _cut(git: Git, oldest: str) -> str | None:
    """Return the parent of a shallow clone's oldest commit."""
    if git.ask("rev-parse", "--is-shallow-repository") != "true":
        return None
    _, parents = described_commit(git.run("--no-replace-objects", "cat-file", "commit", oldest))
    return parents[0] if parents else None


def _known(git: Git, commits: Collection[str]) -> dict[str, str]:
    """Return the full names of known commits, by the given ones."""
    asked = [commit for commit in commits if _COMMIT.fullmatch(commit)]
    if not asked:
        return {}
    given = "".join(f"{commit}\n" for commit in asked)
    answer = git.run("cat-file", "--batch-check", given=given, timeout_s=TIMEOUT_S)
    found = {}
    for commit, line in zip(asked, answer.splitlines(), strict=False):
        words = line.split()
        if len(words) == 3 and words[1] == "commit" and words[0].startswith(commit):
            found[commit] = words[0]
    return found


def _places(listed: str) -> dict[str, int]:
    return {commit: place for place, commit in enumerate(listed.split())}
