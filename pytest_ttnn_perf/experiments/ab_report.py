"""A commit against the working tree, laid out."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.experiments.calibrate import bar, duration
from pytest_ttnn_perf.experiments.compare_rounds import INCONCLUSIVE
from pytest_ttnn_perf.records.settings import MAX_ROUNDS, MIN_ROUNDS
from pytest_ttnn_perf.records.verdict import Outcome, Reason
from pytest_ttnn_perf.report.layout import DROPPED, METRIC, Fit
from pytest_ttnn_perf.report.numbers import (
    Column,
    Columns,
    Listing,
    format_change,
    format_fraction,
    format_value,
    id_column,
    outcome_colour,
)
from pytest_ttnn_perf.report.sentences import change_in_words, command_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.experiments.compare_rounds import Compared
    from pytest_ttnn_perf.experiments.rounds import RoundProgress
    from pytest_ttnn_perf.processes.git import Commit, WorkingTree
    from pytest_ttnn_perf.records.verdict import Verdict
    from pytest_ttnn_perf.report.layout import Block


@dataclass(frozen=True, slots=True)
class StrayCode:
    """The first of ``count`` modules that are not of the side whose tests ran them.

    ``folder`` has that side's own version of it. Both paths are as the user would type them.
    """

    name: str
    file: str
    folder: str
    count: int
    installed: bool


WORKING_TREE: Final = "working tree"

#: What can never be judged is no pass.
_FAILING: Final = frozenset({Outcome.REGRESSED, Outcome.TOO_NOISY, Outcome.NO_DATA})
_KNOWN: Final = frozenset({Outcome.REGRESSED, Outcome.IMPROVED, Outcome.WITHIN})


@dataclass(frozen=True, slots=True)
class AbResult:
    """What rounds tell. ``ref`` is the commit as the user named it.

    There are ``whole`` rounds of the tests that took most, of ``wanted`` at most; ``stopped`` says
    why there are no more although not all is known. ``troubles`` say why a test has no result.
    """

    ref: str
    before: Commit
    after: WorkingTree
    wanted: int
    whole: int
    compared: tuple[Compared, ...] = ()
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    troubles: Mapping[str, str] = field(default_factory=dict)
    stopped: str | None = None
    remarks: tuple[str, ...] = ()

    @property
    def inconclusive(self) -> bool:
        """Whether there is something of which more rounds could tell."""
        return any(metric.is_undecided for metric in self.compared)

    @property
    def failed(self) -> bool:
        """Whether something is worse, or cannot be judged, however many rounds there are."""
        outcomes = {metric.outcome for metric in self.compared if not metric.is_undecided}
        nothing = not self.inconclusive and outcomes.isdisjoint(_KNOWN)
        return nothing or bool(self.troubles) or not outcomes.isdisjoint(_FAILING)


def ab_sentence(compared: Compared, ref: str, *, after: str = WORKING_TREE) -> str:
    """Say what was found for one metric, against the commit that is called ``ref``."""
    verdict = compared.verdict
    name = verdict.metric.name
    if verdict.outcome is Outcome.NO_DATA:
        return f"{name} was not recorded in every round"
    if verdict.reason is Reason.NEW_METRIC:
        return f"{name} is recorded in the {after} only"
    if verdict.reason is Reason.NOT_RECORDED:
        return f"{name} is recorded in {ref} only"
    if compared.obstacle is not None:
        what = compared.obstacle
        return (
            f"{name} cannot be compared: {what.field} is {what.after!r}, in {ref} {what.before!r}"
        )
    if verdict.reason is Reason.SAMPLES_DIFFER:
        return f"{name} differs between rounds ({verdict.detail}): it must not change"
    now = format_value(verdict.metric, verdict.observed, beside=verdict.centre)
    start = f"{name} {now}, {ref} {format_value(verdict.metric, verdict.centre)}"
    if verdict.reason is Reason.EXPLAINS:
        return f"{start}: it explains {verdict.detail}, which is judged"
    if verdict.reason is Reason.VALUE_CHANGED:
        return f"{start}: it must not change"
    return f"{start}: {change_in_words(verdict)}{_limit_text(compared, verdict)}"


def _limit_text(compared: Compared, verdict: Verdict) -> str:
    rounds = counted(compared.rounds, "round")
    limit = format_fraction(verdict.limit_as_read) if verdict.limit else "no change"
    if compared.paired.low is None:
        return f", limit {limit}"
    if compared.is_undecided:
        left = f"and {limit} is not ruled out"
        low, high, least = compared.paired.low, compared.paired.high or 0.0, verdict.limit or 0.0
        if low > least or high < -least:
            left = "and a verdict, wrong once in 200 at most, takes more rounds"
        return f"; after {rounds} it may be {interval_text(compared)}, {left}"
    if verdict.outcome is Outcome.WITHIN:
        return f", {limit} is ruled out ({rounds})"
    return f", limit {limit} ({rounds})"


def stray_text(stray: StrayCode, *, side: str, command: Sequence[str]) -> str:
    """Say that a side ran code that is not its own, and what to do; ``command`` is the user's."""
    others = counted(stray.count - 1, "other module")
    more = f" and {others}" if stray.count > 1 else ""
    whose = "that is installed" if stray.installed else f"of the {WORKING_TREE}"
    of = f"the {side}" if side == WORKING_TREE else side
    again = command_line(*command)
    points = "what is installed comes first"
    if not stray.installed:
        points = "an editable install, or a path, points there"
    lines = [
        f"tests of {of} ran code {whose}: {stray.name} from {stray.file}{more}",
        f"  so it would be compared with itself: {points}",
        f"  let each side find its own first: PYTHONPATH={command_line(stray.folder)} {again}",
    ]
    if not stray.installed:
        shared = str(PurePath(stray.file).parent)
        lines.append(f"  or, if both are to use the same: {again} --same {command_line(shared)}")
    return "\n".join(lines)


def ab_listing(result: AbResult) -> Listing:
    """Lay out what the rounds tell."""
    columns = _columns(result.ref)
    document = {
        "ref": {"name": result.ref, **_commit(result.before)},
        "working_tree": {
            **_commit(result.after.commit),
            "changed_files": result.after.changed,
            "untracked_files": result.after.untracked,
        },
        "rounds": result.whole,
        "rounds_wanted": result.wanted,
        "stopped": result.stopped,
        "failed": result.failed,
        "inconclusive": result.inconclusive,
        "verdicts": [
            {
                **members,
                "rounds_before": list(compared.before),
                "rounds_after": list(compared.after),
            }
            for members, compared in zip(
                columns.objects(result.compared), result.compared, strict=True
            )
        ],
        "only_in_ref": list(result.only_before),
        "only_in_working_tree": list(result.only_after),
        "troubles": dict(result.troubles),
        "remarks": list(result.remarks),
    }
    rows = columns.rows(result.compared)
    return Listing(tuple(_lines(result)), document, columns.names, rows)


def _lines(result: AbResult) -> Iterator[Block]:
    yield from _heading(result)
    yield ""
    if result.compared:
        yield from _columns(result.ref).table(result.compared)
        yield ""
    yield from _sentences(result)
    yield from (f"failed {test}: {why}" for test, why in result.troubles.items())
    yield from (f"only in {result.ref}: {test}" for test in result.only_before)
    yield from (f"only in the {WORKING_TREE}: {test}" for test in result.only_after)
    yield from result.remarks
    if result.stopped is not None:
        yield _stopped_line(result)
    yield _count_line(result)


def _heading(result: AbResult) -> Iterator[str]:
    yield f"{result.ref}: {_commit_text(result.before)}"
    tree = result.after
    parts = [counted(tree.changed, "changed file")] if tree.changed else []
    parts += [counted(tree.untracked, "untracked file")] if tree.untracked else []
    state = f"with {' and '.join(parts)}" if parts else "nothing uncommitted"
    commit = "no commit yet" if tree.commit is None else _commit_text(tree.commit)
    yield f"{WORKING_TREE}: {commit}, {state}"
    if not parts and tree.commit is not None and tree.commit.id == result.before.id:
        yield "both are the same: any difference is the machine"


def _commit_text(commit: Commit) -> str:
    return f"{commit.short} {commit.subject}".rstrip()


def _commit(commit: Commit | None) -> dict[str, object]:
    return {"commit": commit and commit.id, "subject": commit and commit.subject}


def _columns(ref: str) -> Columns[Compared]:
    return Columns(
        id_column(lambda c: c.test),
        Column("metric", lambda c: c.verdict.metric.name, "metric", fit=METRIC),
        Column("unit", lambda c: c.verdict.metric.unit),
        Column("before", lambda c: c.verdict.centre, ref,
               lambda c: format_value(c.verdict.metric, c.verdict.centre), right=True,
               fit=Fit(least=10, drop=2)),
        Column("after", lambda c: c.verdict.observed, WORKING_TREE,
               lambda c: format_value(c.verdict.metric, c.verdict.observed,
                                      beside=c.verdict.centre), right=True, fit=Fit(least=10)),
        Column("change", lambda c: c.verdict.change, "change",
               lambda c: format_change(c.verdict.change_as_read), right=True),
        Column("low", lambda c: c.paired.low, "interval", interval_text, right=True,
               fit=DROPPED[1]),
        Column("high", lambda c: c.paired.high),
        Column("limit", lambda c: c.verdict.limit),
        Column("outcome", lambda c: c.word, "verdict",
               colour=lambda c: outcome_colour(c.outcome)),
        Column("rounds", lambda c: c.rounds),
        Column("sentence", lambda c: ab_sentence(c, ref)),
        Column("by_op", lambda c: c.by_op),
    )  # fmt: skip


def interval_text(compared: Compared) -> str:
    """Return where the change lies, as a reader finds it from two values: the lower end first."""
    metric, paired = compared.verdict.metric, compared.paired
    ends = [end for end in map(metric.as_read, (paired.low, paired.high)) if end is not None]
    return " to ".join(map(format_change, sorted(ends))) if len(ends) == 2 else "-"


def _sentences(result: AbResult) -> Iterator[str]:
    explained = None
    for compared in result.compared:
        if compared.outcome is Outcome.WITHIN:
            continue
        yield f"{compared.word} {compared.test}: {ab_sentence(compared, result.ref)}"
        if compared.by_op is not None and compared.test != explained:
            explained = compared.test
            yield f"  by op: {compared.by_op}"
    if result.inconclusive and result.stopped is None and result.wanted < MAX_ROUNDS:
        yield f"  more rounds show more: --rounds {min(2 * result.wanted, MAX_ROUNDS)}"


def _stopped_line(result: AbResult) -> str:
    be = "is" if result.whole == 1 else "are"
    rounds = f"{counted(result.whole, 'round')} of at most {result.wanted} {be} complete"
    if result.whole < MIN_ROUNDS:
        return f"{result.stopped}: {rounds}, too few to judge: it takes {MIN_ROUNDS}"
    return f"{result.stopped}: {rounds}, and were judged"


def _count_line(result: AbResult) -> str:
    outcomes = Counter(compared.word for compared in result.compared)
    tests = len({compared.test for compared in result.compared})
    parts = [f"{counted(tests, 'test')} compared in {counted(result.whole, 'round')}"]
    parts += [f"{len(result.troubles)} failed"] if result.troubles else []
    words = (*(outcome.value for outcome in Outcome), INCONCLUSIVE)
    counts = ", ".join(f"{outcomes[word]} {word}" for word in words if outcomes[word])
    parts += [f"metrics: {counts}"] if counts else ["nothing was judged"]
    parts += [f"{len(result.only_before)} only in {result.ref}"] if result.only_before else []
    if result.only_after:
        parts.append(f"{len(result.only_after)} only in the {WORKING_TREE}")
    return "; ".join(parts)


def round_line(progress: RoundProgress) -> str:
    """Say what is being measured, when it will be looked at, and how long it takes at most."""
    tests = "" if progress.tests is None else f", test {progress.done} of {progress.tests}"
    left = "" if progress.left_s is None else f", up to {duration(progress.left_s)} left"
    where = f"round {progress.number}, look at {progress.next_look}, {progress.version}"
    return f"{bar(progress.fraction, width=12)} {where}{tests}{left}"


def look_line(number: int, undecided: int, of: int, *, most: int) -> str:
    """Say what is known after a round."""
    look = f"look after {counted(number, 'round')}"
    if not undecided:
        return f"{look}: {counted(of, 'test')} decided"
    on = f"continuing, at most {most} rounds" if number < most else "and it was the last"
    return f"{look}: {undecided} of {counted(of, 'test')} undecided, {on}"


def movement_line(ref: str, moved: float, test: str, metric: str) -> str:
    """Say how far the machine alone moved a metric while the rounds were run."""
    return (
        f"the machine moved by up to {format_fraction(moved)}: that is how much rounds of "
        f"{ref} alone differ ({test} {metric})"
    )
