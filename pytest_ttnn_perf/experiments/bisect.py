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
from dataclasses import field, replace
from math import log1p
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf._base.files import check_writable, remove_file
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.experiments.ab import shared_within, strayed_text, troubles_of
from pytest_ttnn_perf.experiments.ab_report import ab_sentence
from pytest_ttnn_perf.experiments.bisect_report import (
    Bisect,
    End,
    Found,
    bisect_listing,
    status_line,
    step_line,
    verified_line,
)
from pytest_ttnn_perf.experiments.bisect_search import (
    Followed,
    Search,
    Step,
    What,
    read_state,
    write_state,
)
from pytest_ttnn_perf.experiments.compare_rounds import (
    compare_tests,
    rounds_of,
    undecided_tests,
    whole_rounds,
)
from pytest_ttnn_perf.experiments.rounds import StrayedError, Turns, run_rounds
from pytest_ttnn_perf.experiments.versions import Measuring, Move, Version
from pytest_ttnn_perf.gate.paired import Plan, interval_of, place_rounds
from pytest_ttnn_perf.processes.channel import signals_interrupt
from pytest_ttnn_perf.processes.checkouts import remove_leftovers, temporary_checkout
from pytest_ttnn_perf.processes.git import Repository
from pytest_ttnn_perf.records.metric import Better
from pytest_ttnn_perf.records.verdict import Outcome
from pytest_ttnn_perf.report.numbers import Result
from pytest_ttnn_perf.run.preflight import choose_profiler, lease, restrict_to_passes
from pytest_ttnn_perf.run.record import ignore_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pytest_ttnn_perf.experiments.compare_rounds import Compared
    from pytest_ttnn_perf.experiments.rounds import InTurns, RoundProgress
    from pytest_ttnn_perf.gate.paired import Placed, Round
    from pytest_ttnn_perf.processes.git import Commit, DatedCommit
    from pytest_ttnn_perf.records.settings import Settings

    #: Lets two commits be measured in turns: only these tests, or all where there is None.
    OpenTurns = Callable[[Commit, Commit, Sequence[str] | None], AbstractContextManager[InTurns]]


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


@dataclass(frozen=True, slots=True)
class _Checkouts:
    """Checks commits out, and starts their workers; the good one stays for the whole command."""

    root: Path
    asked: Bisect
    measuring: Measuring
    good: Commit
    stack: ExitStack
    tell: Callable[[RoundProgress], None]
    _kept: list[Path] = field(default_factory=list)

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
        self.state = replace(self.state, spent_s=spent_s, **known)  # type: ignore[arg-type]
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
