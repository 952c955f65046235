"""The bisect command: the commit that made a test slower, measured in turns with a good one.

A commit is slow if at least half of the slowdown is there: so one that is as fast as the good one
and one that is as slow as the bad one are both far from where it is decided. In the end the commit
is compared with the one before it, which tells its own effect, and would show a wrong turn.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import ExitStack, contextmanager
from enum import Enum
from math import ceil, expm1, log1p, log2
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import decode, encode
from pytest_ttnn_perf.core.errors import DecodeError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.files import check_writable, read_json, remove_file, write_text
from pytest_ttnn_perf.core.metric import Better
from pytest_ttnn_perf.core.settings import MAX_ROUNDS
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.core.verdict import Outcome
from pytest_ttnn_perf.experiments.ab import (
    ab_sentence,
    interval_text,
    shared_within,
    strayed_text,
    troubles_of,
)
from pytest_ttnn_perf.experiments.calibrate import duration
from pytest_ttnn_perf.experiments.paired import Plan, interval_of, place_rounds
from pytest_ttnn_perf.experiments.rounds import (
    Measuring,
    Move,
    StrayedError,
    Turns,
    Version,
    compare_tests,
    rounds_of,
    run_rounds,
    undecided_tests,
    whole_rounds,
)
from pytest_ttnn_perf.gate.record import ignore_folder
from pytest_ttnn_perf.machine.git import Repository, remove_leftovers, temporary_checkout
from pytest_ttnn_perf.machine.processes import signals_interrupt
from pytest_ttnn_perf.plugin.preflight import choose_profiler, lease, restrict_to_passes
from pytest_ttnn_perf.report.sentences import command_line
from pytest_ttnn_perf.report.tables import (
    DROPPED,
    Column,
    Columns,
    Fit,
    Listing,
    Result,
    format_change,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.experiments.paired import Placed, Round
    from pytest_ttnn_perf.experiments.rounds import Compared, InTurns, RoundProgress
    from pytest_ttnn_perf.machine.git import Commit, DatedCommit
    from pytest_ttnn_perf.report.tables import Block

    OpenTurns = Callable[[Commit, Commit, Sequence[str] | None], AbstractContextManager[InTurns]]


# Which commit to measure next, and what is known of those that were: no git, no measurement.


class What(Enum):
    """What a commit turned out to be."""

    SLOW = "slow"
    FAST = "fast"
    SKIPPED = "skipped"
    UNDECIDED = "undecided"


class Step(Struct, frozen=True):
    """A commit that was tried, against the good one. ``why`` it was skipped.

    ``change``, ``low`` and ``high`` are fractions, plus is worse; None where nothing was measured.
    """

    commit: str
    what: What
    change: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    why: str | None = None


class Followed(Struct, frozen=True):
    """The metric that is slower in the bad commit, by how much, and all tests that are.

    ``is_rate``: of which more is better; its changes are those of a time all the same.
    """

    test: str
    metric: str
    change: float
    low: float
    high: float
    rounds: int
    tests: tuple[str, ...]
    is_rate: bool = False


class Search:
    """Halves the commits among which the first slow one is; ``commits`` are oldest first.

    The last of them is known to be slow, and what comes before the first is fast.
    """

    def __init__(self, commits: Sequence[str], steps: Sequence[Step] = ()) -> None:
        self.commits = tuple(commits)
        self.tried = {step.commit: step.what for step in steps}

    def add(self, commit: str, what: What) -> None:
        """Take notice of what a commit is."""
        self.tried[commit] = what

    @property
    def fast(self) -> int:
        """The place of the last commit that is fast, before the first slow one; -1 for none."""
        places = range(self.slow)
        known = (place for place in places if self.tried.get(self.commits[place]) is What.FAST)
        return max(known, default=-1)

    @property
    def slow(self) -> int:
        """The place of the first commit that is known to be slow."""
        known = (n for n, commit in enumerate(self.commits) if self.tried.get(commit) is What.SLOW)
        return min(known, default=len(self.commits) - 1)

    @property
    def suspects(self) -> tuple[str, ...]:
        """The commits that may be the first slow one: one if it is found."""
        return self.commits[self.fast + 1 : self.slow + 1]

    @property
    def to_measure(self) -> int:
        """About how many commits are still to be measured."""
        return ceil(log2(len(self.suspects)))

    def next(self) -> str | None:
        """Return the commit to try, in the middle of those that are left; None for none."""
        between = range(self.fast + 1, self.slow)
        middle = (self.fast + self.slow) / 2
        left = [place for place in between if self.commits[place] not in self.tried]
        nearest = min(left, key=lambda place: abs(place - middle), default=None)
        return None if nearest is None else self.commits[nearest]


class State(Struct, frozen=True):
    """What is known so far, to go on with after Ctrl-C; ``spent_s`` is the time it took."""

    followed: Followed | None = None
    steps: tuple[Step, ...] = ()
    spent_s: float = 0.0

    @property
    def threshold(self) -> float:
        """The change from which on a commit counts as slow: half of what the slow ones have.

        All of them tell how much that is: what was found first to be slower was often lucky.
        """
        slow = [step for step in self.steps if step.what is What.SLOW]
        known = [each for each in (self.followed, *slow) if each is not None]
        rounds = sum(each.rounds for each in known)
        total = sum(each.rounds * log1p(each.change or 0.0) for each in known)
        return expm1(total / rounds / 2)


_FORMAT: Final = 1


def read_state(file: Path) -> State:
    """Return what an earlier command has found out; nothing where there was none.

    Raises:
        InputError: the file cannot be read, or is none of ours.
    """
    return read_json(file, _state) if os.path.lexists(file) else State()


def _state(document: object) -> State:
    found = document.get("format") if isinstance(document, dict) else document
    if found != _FORMAT:
        raise DecodeError(("format",), str(_FORMAT), repr(found)[:40])
    return decode(State, document)


def write_state(file: Path, state: State) -> None:
    """Keep what is known, in one step.

    Raises:
        WriteError: the folder or the disk refused.
    """
    write_text(file, json.dumps({"format": _FORMAT, **encode(state)}, indent=1) + "\n")


# The search for a slow commit, laid out.


class End(Enum):
    """How a search ended."""

    FOUND = "found"
    RANGE = "range"
    NOT_CONFIRMED = "not confirmed"
    NOT_SLOWER = "not slower"
    NOT_KNOWN = "not known"
    INTERRUPTED = "interrupted"


class Bisect(Struct, frozen=True):
    """What is asked for: two commits, pytest's arguments, the most rounds of each comparison.

    ``metric`` is the one to follow; None for that which is clearest. ``shared`` is what all commits
    take from the working tree.
    """

    good: str
    bad: str
    argv: Sequence[str]
    rounds: int
    cwd: Path
    shared: tuple[str, ...] = ()
    metric: str | None = None


class Found(Struct, frozen=True):
    """What a search tells.

    One of ``suspects`` made it slower; ``before`` is the commit before them. ``effects`` compares
    it with the last of them; where the bad commit is not slower, that with the good one.
    """

    end: End
    good: Commit
    history: Sequence[DatedCommit]
    state: State
    suspects: tuple[Commit, ...]
    before: Commit
    effects: tuple[Compared, ...] = ()
    why: str | None = None

    @property
    def bad(self) -> Commit:
        """The commit that is slow."""
        return self.history[-1].commit

    @property
    def first_slow(self) -> DatedCommit:
        """The first commit that is known to be slow."""
        return next(each for each in self.history if each.commit == self.suspects[-1])


def status_line(suspects: int, to_measure: int, left_s: float | None) -> str:
    """Say how far a search is."""
    left = f"{counted(suspects, 'commit')} left, about {to_measure} to measure"
    if not to_measure:
        left = "1 commit left, to compare with the one before it"
    return left if left_s is None else f"{left}, {duration(left_s)}"


def verified_line(followed: Followed, bad: Commit, good: Commit) -> str:
    """Say that there is something to look for."""
    what = f"{followed.test} {followed.metric}"
    return f"{bad.short} is slower than {good.short}: {what} {_numbers(followed, followed)}"


def step_line(step: Step, commit: Commit, followed: Followed) -> str:
    """Say what a commit turned out to be."""
    told = step.why if step.what is What.SKIPPED else _numbers(step, followed)
    return f"{step.what.value} {commit.short} {commit.subject}: {told}"


def _numbers(found: Step | Followed, followed: Followed) -> str:
    rounds = counted(found.rounds, "round")
    return f"{_read(found.change, followed)} ({_interval(found, followed)}, {rounds})"


def _interval(found: Step | Followed, followed: Followed | None) -> str:
    ends = _read(found.low, followed), _read(found.high, followed)
    if found.low is None:
        return "-"
    return " to ".join(reversed(ends) if followed and followed.is_rate else ends)


def _read(change: float | None, followed: Followed | None) -> str:
    """Return a change as a reader finds it by dividing two values: minus is lower."""
    is_rate = followed is not None and followed.is_rate
    return format_change(-change / (1 + change) if is_rate and change is not None else change)


def resume_command(good: Commit, bad: Commit, asked: Bisect) -> str:
    """Return the command that goes on with a search."""
    return command_line("ttnn-perf", "bisect", good.short, bad.short, *_words(asked))


def _words(asked: Bisect) -> Iterator[str]:
    """Yield what follows the commits in the user's command."""
    if asked.metric is not None:
        yield from ("--metric", asked.metric)
    if asked.rounds != MAX_ROUNDS:
        yield from ("--rounds", str(asked.rounds))
    for folder in asked.shared:
        yield from ("--same", folder)
    yield from asked.argv


def bisect_listing(found: Found, asked: Bisect, file: Path) -> Listing:
    """Lay out what a search tells; what is known of one that was interrupted is in ``file``."""
    resume = resume_command(found.good, found.bad, asked)
    rows = list(_rows(found))
    is_known = found.end in {End.FOUND, End.RANGE, End.NOT_CONFIRMED}
    first = found.first_slow if is_known else None
    followed = found.state.followed
    columns = _columns(followed)
    document = {
        "outcome": found.end.value,
        "good": _commit(found.good),
        "bad": _commit(found.bad),
        "commits": len(found.history),
        "commit": first and {**_commit(first.commit), "date": first.date,
                             "merge": len(first.parents) > 1},
        "before": _commit(found.before) if is_known else None,
        "suspects": [commit.id for commit in found.suspects],
        "test": followed and followed.test,
        "metric": followed and followed.metric,
        "slowdown": followed and {"change": followed.change, "low": followed.low,
                                  "high": followed.high, "rounds": followed.rounds},
        "effects": [_effect(each, found.before.short) for each in found.effects],
        "steps": columns.objects(rows),
        "stopped": found.why,
        "resume": resume if found.end is End.INTERRUPTED and followed else None,
    }  # fmt: skip
    lines = (*_lines(found, rows), *_conclusion(found, asked, file))
    return Listing(lines, document, columns.names, columns.rows(rows))


def _commit(commit: Commit) -> dict[str, object]:
    return {"commit": commit.id, "subject": commit.subject}


def _effect(compared: Compared, ref: str) -> dict[str, object]:
    verdict, paired = compared.verdict, compared.paired
    return {
        "test": compared.test,
        "metric": verdict.metric.name,
        "unit": verdict.metric.unit,
        "before": verdict.centre,
        "after": verdict.observed,
        "change": verdict.change,
        "low": paired.low,
        "high": paired.high,
        "rounds": compared.rounds,
        "outcome": compared.word,
        "sentence": ab_sentence(compared, ref),
        "by_op": compared.by_op,
    }


class _Row(NamedTuple):
    dated: DatedCommit
    step: Step


def _rows(found: Found) -> Iterator[_Row]:
    """Yield the commits that were tried, oldest first."""
    steps = {step.commit: step for step in found.state.steps}
    for dated in found.history:
        if dated.commit.id in steps:
            yield _Row(dated, steps[dated.commit.id])


def _columns(followed: Followed | None) -> Columns[_Row]:
    return Columns(
        Column("commit", lambda r: r.dated.commit.id, "commit", lambda r: r.dated.commit.short),
        Column("date", lambda r: r.dated.date, "date", lambda r: r.dated.date[:10],
               fit=DROPPED[2]),
        Column("change", lambda r: r.step.change, "change",
               lambda r: _read(r.step.change, followed), right=True),
        Column("low", lambda r: r.step.low, "interval",
               lambda r: _interval(r.step, followed), right=True, fit=DROPPED[3]),
        Column("high", lambda r: r.step.high),
        Column("rounds", lambda r: r.step.rounds, "rounds", right=True, fit=DROPPED[1]),
        Column("what", lambda r: r.step.what.value, "it is"),
        Column("subject", lambda r: r.dated.commit.subject, "subject", fit=Fit(least=16)),
        Column("why", lambda r: r.step.why),
    )  # fmt: skip


def _lines(found: Found, rows: Sequence[_Row]) -> Iterator[Block]:
    yield f"good: {_named(found.good)}"
    yield f"bad: {_named(found.bad)}, {counted(len(found.history), 'commit')} later"
    followed = found.state.followed
    if followed is not None:
        yield f"followed: {followed.test} {followed.metric}, {_numbers(followed, followed)}"
    yield ""
    if rows:
        yield from _columns(followed).table(rows)
        yield ""
        for dated, step in rows:
            if step.why is not None:
                yield f"skipped {dated.commit.short}: {step.why}"


def _named(commit: Commit) -> str:
    return f"{commit.short} {commit.subject}".rstrip()


def _conclusion(found: Found, asked: Bisect, file: Path) -> Iterator[str]:
    first, last = found.suspects[0], found.suspects[-1]
    match found.end:
        case End.INTERRUPTED:
            left = counted(len(found.suspects), "commit")
            yield f"{found.why or 'interrupted'}: {left} left"
            if found.state.followed is None:
                yield "  nothing is known yet"
                return
            yield f"  go on with: {resume_command(found.good, found.bad, asked)}"
            yield f"  what is known is in {os.path.relpath(file)}; remove it to start again"
            return
        case End.NOT_SLOWER:
            yield f"{found.bad.short} is not slower than {found.good.short}: nothing to look for"
        case End.NOT_KNOWN:
            yield f"it is not known whether {found.bad.short} is slower than {found.good.short}"
            yield "  name fewer tests, or quiet the machine: both make rounds more precise"
        case End.FOUND:
            yield f"the first slow commit is {_named(last)}"
            yield f"  date: {found.first_slow.date}"
        case End.NOT_CONFIRMED:
            yield f"half of the slowdown is there from {_named(last)} on"
            yield f"  but it alone is not known to be slower than {found.before.short} before it:"
            yield "  it may have come in small steps, or the search took a wrong turn"
        case End.RANGE:
            count = len(found.suspects)
            yield f"the first slow commit is one of {count}, {first.short} to {last.short}:"
            yield "  those between could not be determined, see above; their effect together:"
    yield from _effects(found)
    if found.end is End.FOUND and len(found.first_slow.parents) > 1:
        one, two = (parent[:12] for parent in found.first_slow.parents[:2])
        words = command_line(two, *_words(asked))
        branch = f"ttnn-perf bisect $(git merge-base {one} {two}) {words}"
        yield f"  it is a merge; to look into its branch: {branch}"


def _effects(found: Found) -> Iterator[str]:
    ref = (found.good if found.end in {End.NOT_SLOWER, End.NOT_KNOWN} else found.before).short
    is_found = found.end in {End.FOUND, End.RANGE}
    for compared in found.effects:
        if is_found and compared.outcome is Outcome.WITHIN:
            continue
        yield f"  {compared.word} {compared.test}: {ab_sentence(compared, ref)}"
        if not compared.is_undecided:
            yield f"    between {interval_text(compared).replace(' to ', ' and ')}"
        if compared.by_op is not None and compared.outcome is not Outcome.WITHIN:
            yield f"    by op: {compared.by_op}"


_ENDED: Final = True
#: The slowdown is known well enough to halve it once it may be off by this part of it at most.
_PRECISE: Final = 0.4


def bisect(
    asked: Bisect, settings: Settings, *, progress: Callable[[str, bool], None], shape: str
) -> Result:
    """Find the commit that made a test slower, and say what it does.

    ``progress`` is told in a line how far it is, and whether a commit has just been tried.

    Raises:
        UsageError: there are no such commits, or the tests cannot be measured in both of them.
        InputError: one of them cannot be checked out.
    """
    repository = Repository.around(asked.cwd)
    good, bad = repository.commit(asked.good), repository.commit(asked.bad)
    history = repository.between(good, bad)
    if not history:
        message = f"{asked.good} and {asked.bad} are the same commit: nothing to look for"
        raise UsageError(message)
    asked = replace(asked, shared=shared_within(repository.root, asked.cwd, asked.shared))
    check_writable(settings.artifacts)
    profiler = restrict_to_passes(
        choose_profiler(settings, os.environ), settings, isolated=True
    ).kind

    def print_line(text: str) -> None:
        progress(text, _ENDED)

    def tell(now: RoundProgress) -> None:
        where = f"{now.version}, round {now.number}, look at {now.next_look}"
        progress(f"{hunt.status}: {where}", not _ENDED)

    measuring = Measuring("bisect", asked.argv, settings, profiler, print_line, asked.shared)
    file = state_file(settings.artifacts, good, bad, asked)
    with ExitStack() as stack:
        checkouts = _Checkouts(repository.root, asked, measuring, good, stack, tell)
        hunt = Hunt(good, history, asked, checkouts.turns, file, print_line)
        try:
            stack.enter_context(signals_interrupt())
            stack.enter_context(lease(settings, os.environ, print_line))
            left = remove_leftovers(repository.root)
            if left:
                print_line(f"removed what {counted(left, 'earlier run')} left behind")
            found = hunt.run()
        except KeyboardInterrupt:
            found = hunt.found(End.INTERRUPTED)
        except StrayedError as error:
            words = ("ttnn-perf", "bisect", asked.good, asked.bad, *asked.argv)
            raise UsageError(strayed_text(error, words)) from error
    text = bisect_listing(found, asked, file).text(shape)
    ended = found.end
    return Result(text, failed=ended is End.NOT_SLOWER, inconclusive=ended is not End.FOUND)


def state_file(artifacts: Path, good: Commit, bad: Commit, asked: Bisect) -> Path:
    """Return where the answers to one question are kept."""
    words = json.dumps([*asked.argv, asked.metric, *asked.shared])
    digest = hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return artifacts / "bisect" / f"{good.id[:12]}-{bad.id[:12]}-{digest}.json"


class _Checkouts(Struct, frozen=True):
    """Checks commits out, and starts their workers; the good one stays for the whole command."""

    root: Path
    asked: Bisect
    measuring: Measuring
    good: Commit
    stack: ExitStack
    tell: Callable[[RoundProgress], None]
    _kept: list[Path] = []

    @contextmanager
    def turns(
        self, before: Commit, after: Commit, tests: Sequence[str] | None
    ) -> Iterator[InTurns]:
        """Let two commits be measured in turns.

        Raises:
            UsageError: one of them has none of the tests.
            InputError: one of them cannot be checked out.
        """
        with ExitStack() as stack:
            versions = []
            for commit, label in ((before, "before"), (after, "after")):
                move = Move(self.root, self._tree(commit, stack), self.asked.cwd.resolve())
                version = Version(commit.short, label, move, self.root, self.measuring, tests)
                versions.append(version)
            yield Turns(*versions, rounds=self.asked.rounds, progress=self.tell)

    def _tree(self, commit: Commit, stack: ExitStack) -> Path:
        if commit != self.good:
            return stack.enter_context(temporary_checkout(self.root, commit.id))
        if not self._kept:
            checkout = temporary_checkout(self.root, commit.id)
            self._kept.append(self.stack.enter_context(checkout))
        return self._kept[0]


class _StoppedError(Exception):
    """Rounds ended early, and nothing can follow: why."""


class Hunt:
    """The search, from the proof that there is something to find to what was found."""

    def __init__(
        self,
        good: Commit,
        history: Sequence[DatedCommit],
        asked: Bisect,
        open_turns: OpenTurns,
        file: Path,
        print_line: Callable[[str], None],
    ) -> None:
        """Go on with what is known from an earlier command.

        Raises:
            InputError: that cannot be read.
        """
        self.good, self.history, self.asked = good, history, asked
        self.open_turns, self.file, self.print_line = open_turns, file, print_line
        self.state = read_state(file)
        self.search = Search([each.commit.id for each in history], self.state.steps)
        self._by_id = {each.commit.id: each.commit for each in history}
        self._start_s, self._spent_s = time.monotonic(), self.state.spent_s

    @property
    def status(self) -> str:
        """How many commits are left, and how long they will take."""
        steps = self.state.steps
        tried = sum(step.rounds > 0 for step in steps) + (self.state.followed is not None)
        left_s = None
        if tried:
            left_s = self.state.spent_s / tried * (self.search.to_measure + 1)
        return status_line(len(self.search.suspects), self.search.to_measure, left_s)

    def found(self, end: End, effects: Sequence[Compared] = (), why: str | None = None) -> Found:
        """Return the result as it is by now."""
        fast = self.search.fast
        return Found(
            end,
            self.good,
            self.history,
            self.state,
            suspects=tuple(self._by_id[commit] for commit in self.search.suspects),
            before=self.good if fast < 0 else self.history[fast].commit,
            effects=tuple(effects),
            why=why,
        )

    def run(self) -> Found:
        """Look for the commit.

        Raises:
            UsageError: the tests cannot be measured in both commits.
            InputError: one of them cannot be checked out.
            WriteError: what is known cannot be kept.
        """
        if self.state.steps or self.state.followed:
            self.print_line(f"continuing with what is in {os.path.relpath(self.file)}")
        try:
            found = self._run()
        except _StoppedError as stopped:
            return self.found(End.INTERRUPTED, why=str(stopped))
        remove_file(self.file, up_to=self.file.parent.parent)
        return found

    def _run(self) -> Found:
        effects: list[Compared] = []
        followed = self.state.followed
        if followed is None:
            followed, effects = self._verify()
        if followed is None:
            known = not undecided_tests(effects)
            return self.found(End.NOT_SLOWER if known else End.NOT_KNOWN, effects)
        while (commit := self.search.next()) is not None:
            self._try(self._by_id[commit], followed)
        if len(self.history) > 1 or not effects:
            effects = self._effects(followed)
        of_followed = [each for each in effects if _is_of(each, followed)]
        confirmed = any(each.outcome is Outcome.REGRESSED for each in of_followed)
        if len(self.search.suspects) > 1:
            return self.found(End.RANGE, effects)
        return self.found(End.FOUND if confirmed else End.NOT_CONFIRMED, effects)

    def _verify(self) -> tuple[Followed | None, list[Compared]]:
        """Compare the bad commit with the good one; return what to follow if it is slower."""
        bad = self.history[-1].commit
        with self.open_turns(self.good, bad, None) as turns:

            def look(_: int) -> tuple[str, ...]:
                compared = self._compare(turns)
                slower = _slower(compared)
                if not slower:
                    return undecided_tests(compared)
                if self._is_precise(turns, slower[0]):
                    return ()
                return tuple(dict.fromkeys(each.test for each in slower))

            self._run_rounds(turns, look)
            compared = self._compare(turns)
            self._check_measured(turns, compared)
            sides = ((bad.short, turns.after), (self.good.short, turns.before))
            for test, why in troubles_of(sides).items():
                self.print_line(f"failed {test}: {why}")
            slower = _slower(compared)
            if not slower:
                return None, compared
            metric = slower[0].verdict.metric
            rounds = self._rounds(turns, slower[0].test, metric.name)
            found = interval_of(metric, rounds, plan=Plan(self.asked.rounds))
        followed = Followed(
            slower[0].test,
            metric.name,
            found.change,
            found.low,
            found.high,
            found.rounds,
            tuple(dict.fromkeys(each.test for each in slower)),
            is_rate=metric.better is Better.HIGHER,
        )
        self._keep(followed=followed)
        self.print_line(verified_line(followed, bad, self.good))
        return followed, compared

    def _check_measured(self, turns: InTurns, compared: Sequence[Compared]) -> None:
        """Refuse a question that has no answer, with the reason."""
        if compared:
            return
        bad = self.history[-1].commit
        sides = ((self.good.short, turns.before), (bad.short, turns.after))
        for test, why in troubles_of(sides).items():
            message = f"{test} cannot be compared: {why}"
            raise UsageError(message)
        if self.asked.metric is not None and turns.before.measured:
            message = f"no test records {self.asked.metric} in both commits, as a time or a rate"
            raise UsageError(message)
        message = "no test was measured in both commits: name others, or mark them with ttnn_perf"
        raise UsageError(message)

    def _try(self, commit: Commit, followed: Followed) -> None:
        """Find out whether a commit is slow."""
        try:
            step = self._measure(commit, followed)
        except StrayedError:
            raise
        except TtnnPerfError as error:
            why = str(error).splitlines()[0]
            step = Step(commit.id, What.SKIPPED, why=why.removeprefix(f"{commit.short}: "))
        self.search.add(commit.id, step.what)
        self._keep(steps=(*self.state.steps, step))
        self.print_line(step_line(step, commit, followed))
        self.print_line(self.status)

    def _measure(self, commit: Commit, followed: Followed) -> Step:
        test, metric = followed.test, followed.metric
        with self.open_turns(self.good, commit, [test]) as turns:

            def place() -> Placed | str:
                judged = compare_tests(
                    turns.before.good(), turns.after.good(), rounds=self.asked.rounds
                )
                found = [each for each in judged if _is_of(each, followed)]
                if not found:
                    sides = ((commit.short, turns.after), (self.good.short, turns.before))
                    troubles = troubles_of(sides)
                    return troubles.get(test, f"it does not measure {metric} of {test}")
                if found[0].paired.low is None:
                    return ab_sentence(found[0], self.good.short, after=commit.short)
                rounds = self._rounds(turns, test, metric)
                plan = Plan(self.asked.rounds)
                return place_rounds(
                    found[0].verdict.metric, rounds, self.state.threshold, plan=plan
                )

            def look(_: int) -> tuple[str, ...]:
                placed = place()
                return () if isinstance(placed, str) or placed.above is not None else (test,)

            self._run_rounds(turns, look)
            placed = place()
        if isinstance(placed, str):
            return Step(commit.id, What.SKIPPED, why=placed)
        whats = {True: What.SLOW, False: What.FAST, None: What.UNDECIDED}
        return Step(commit.id, whats[placed.above], *placed[1:])

    def _rounds(self, turns: InTurns, test: str, metric: str) -> list[Round]:
        before, after = turns.before.good()[test], turns.after.good()[test]
        whole = whole_rounds(before, after)
        return list(rounds_of(metric, before[:whole], after[:whole]))

    def _effects(self, followed: Followed) -> list[Compared]:
        """Compare the first slow commit with the one before it, in all tests that are slower."""
        search = self.search
        before = self.good if search.fast < 0 else self.history[search.fast].commit
        after = self.history[search.slow].commit
        with self.open_turns(before, after, followed.tests) as turns:

            def look(_: int) -> tuple[str, ...]:
                return undecided_tests(self._compare(turns))

            self._run_rounds(turns, look)
            return [each for each in self._compare(turns) if each.paired.low is not None]

    def _run_rounds(self, turns: InTurns, look: Callable[[int], Sequence[str]]) -> None:
        stopped = run_rounds(turns, rounds=self.asked.rounds, look=look)
        if stopped is not None:
            raise _StoppedError(stopped)

    def _compare(self, turns: InTurns) -> list[Compared]:
        """Judge the times and throughputs, or the metric that was asked for."""
        before, after = turns.before.good(), turns.after.good()
        compared = compare_tests(before, after, rounds=self.asked.rounds)
        wanted = self.asked.metric
        return [
            each
            for each in compared
            if each.paired.low is not None and wanted in {None, each.verdict.metric.name}
        ]

    def _is_precise(self, turns: InTurns, compared: Compared) -> bool:
        metric = compared.verdict.metric
        rounds = self._rounds(turns, compared.test, metric.name)
        found = interval_of(metric, rounds, plan=Plan(self.asked.rounds))
        return log1p(found.low) > (1 - _PRECISE) * log1p(found.change)

    def _keep(self, **known: object) -> None:
        spent_s = self._spent_s + time.monotonic() - self._start_s
        self.state = replace(self.state, spent_s=spent_s, **known)
        ignore_folder(self.file.parent.parent)
        write_state(self.file, self.state)


def _slower(compared: Sequence[Compared]) -> list[Compared]:
    """Return what is slower, times first, and the clearest: most of its change is beyond doubt."""
    slower = [each for each in compared if each.outcome is Outcome.REGRESSED]
    return sorted(slower, key=_clearness, reverse=True)


def _clearness(compared: Compared) -> tuple[bool, float]:
    change, low = compared.verdict.change, compared.paired.low
    assert change is not None, "a ratio"
    assert low is not None, "a ratio"
    # A time before a rate, which is often computed from it.
    return compared.verdict.metric.better is Better.LOWER, log1p(low) / log1p(change)


def _is_of(compared: Compared, followed: Followed) -> bool:
    return (compared.test, compared.verdict.metric.name) == (followed.test, followed.metric)
