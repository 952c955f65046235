"""The search for a slow commit, laid out."""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.experiments.ab_report import ab_sentence, interval_text
from pytest_ttnn_perf.experiments.bisect_search import What
from pytest_ttnn_perf.experiments.calibrate import duration
from pytest_ttnn_perf.records.settings import MAX_ROUNDS
from pytest_ttnn_perf.records.verdict import Outcome
from pytest_ttnn_perf.report.layout import DROPPED, Fit
from pytest_ttnn_perf.report.numbers import Column, Columns, Listing, format_change
from pytest_ttnn_perf.report.sentences import command_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.experiments.bisect_search import Followed, State, Step
    from pytest_ttnn_perf.experiments.compare_rounds import Compared
    from pytest_ttnn_perf.processes.git import Commit, DatedCommit
    from pytest_ttnn_perf.report.layout import Block


class End(Enum):
    """How a search ended."""

    FOUND = "found"
    RANGE = "range"
    NOT_CONFIRMED = "not confirmed"
    NOT_SLOWER = "not slower"
    NOT_KNOWN = "not known"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Bisect:
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


@dataclass(frozen=True, slots=True)
class Found:
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
