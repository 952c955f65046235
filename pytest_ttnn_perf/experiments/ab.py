"""The ab command: a commit against the working tree, in turns."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.files import check_writable
from pytest_ttnn_perf.core.observation import Outcome, Reason
from pytest_ttnn_perf.core.settings import MAX_ROUNDS, MIN_ROUNDS, USUAL_ROUNDS
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.experiments.paired import INCONCLUSIVE
from pytest_ttnn_perf.experiments.repository import Repository
from pytest_ttnn_perf.experiments.rounds import (
    Move,
    Sessions,
    Turns,
    Version,
    builds_of,
    checkout,
    compare_tests,
    experiment_of_gate,
    hold_machine,
    run_rounds,
    undecided_tests,
)
from pytest_ttnn_perf.report.sentences import change_in_words
from pytest_ttnn_perf.report.tables import (
    DROPPED,
    METRIC,
    OUTCOME_COLOURS,
    Column,
    Columns,
    Fit,
    Listing,
    Result,
    format_change,
    format_fraction,
    format_value,
    id_column,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.observation import Verdict
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.experiments.paired import Comparison, Plan
    from pytest_ttnn_perf.experiments.repository import Commit, WorkingTree
    from pytest_ttnn_perf.experiments.rounds import Experiment, InTurns
    from pytest_ttnn_perf.report.tables import Block


WORKING_TREE: Final = "working tree"

#: What can never be judged is no pass.
_FAILING: Final = frozenset({Outcome.REGRESSED, Outcome.TOO_NOISY, Outcome.NO_DATA})
_KNOWN: Final = frozenset({Outcome.REGRESSED, Outcome.IMPROVED, Outcome.WITHIN})


class AbResult(Struct, frozen=True):
    """The comparison; ``ref`` is the commit as the user named it.

    There are ``whole`` rounds of the tests that took most, of ``wanted`` at most; ``stopped`` says
    why there are no more although not all is known. ``troubles`` say why a test has no result.
    ``sides`` are the sessions of both.
    """

    ref: str
    before: Commit
    after: WorkingTree
    wanted: int
    whole: int
    compared: tuple[Comparison, ...] = ()
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    troubles: Mapping[str, str] = {}
    stopped: str | None = None
    remarks: tuple[str, ...] = ()
    sides: tuple[Sessions, Sessions] = (Sessions(0), Sessions(0))
    order_seed: int = 0

    @property
    def inconclusive(self) -> bool:
        """More rounds could decide something."""
        return any(metric.is_undecided for metric in self.compared)

    @property
    def failed(self) -> bool:
        """Something is worse, or cannot be judged by any number of rounds."""
        outcomes = {metric.outcome for metric in self.compared if not metric.is_undecided}
        nothing = not self.inconclusive and outcomes.isdisjoint(_KNOWN)
        return nothing or bool(self.troubles) or not outcomes.isdisjoint(_FAILING)


def ab_sentence(compared: Comparison, ref: str, *, after: str = WORKING_TREE) -> str:
    """Return the sentence of one metric, against the commit ``ref``."""
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


def _limit_text(compared: Comparison, verdict: Verdict) -> str:
    rounds = counted(compared.rounds, "round")
    limit = format_fraction(verdict.limit_as_read) if verdict.limit else "no change"
    low, high, least = compared.low, compared.high or 0.0, verdict.limit or 0.0
    if low is None:
        return f", limit {limit}"
    if compared.is_undecided:
        left = f"and {limit} is not ruled out"
        if low > least or high < -least:
            left = "and a verdict, wrong once in 200 at most, takes more rounds"
        return f"; after {rounds} it may be {interval_text(compared)}, {left}"
    if verdict.outcome is Outcome.WITHIN:
        return f", {limit} is ruled out ({rounds})"
    return f", limit {limit} ({rounds})"


def ab_listing(result: AbResult) -> Listing:
    columns = ab_columns(result.ref)
    document = {
        "ref": {"name": result.ref, **commit_object(result.before)},
        "working_tree": {
            **commit_object(result.after.commit),
            "changed_files": result.after.changed,
            "untracked_files": result.after.untracked,
        },
        "rounds": result.whole,
        "rounds_wanted": result.wanted,
        "order_seed": result.order_seed,
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
    yield f"{result.ref}: {commit_text(result.before)}"
    tree = result.after
    parts = [counted(tree.changed, "changed file")] if tree.changed else []
    parts += [counted(tree.untracked, "untracked file")] if tree.untracked else []
    state = f"with {' and '.join(parts)}" if parts else "nothing uncommitted"
    commit = "no commit yet" if tree.commit is None else commit_text(tree.commit)
    yield f"{WORKING_TREE}: {commit}, {state}"
    if not parts and tree.commit is not None and tree.commit.id == result.before.id:
        yield "both are the same: any difference is the machine"
    yield ""
    if result.compared:
        yield from ab_columns(result.ref).table(result.compared)
        yield ""
    yield from _sentences(result)
    yield from (f"failed {test}: {why}" for test, why in result.troubles.items())
    yield from (f"only in {result.ref}: {test}" for test in result.only_before)
    yield from (f"only in the {WORKING_TREE}: {test}" for test in result.only_after)
    yield from result.remarks
    yield order_line(result.order_seed)
    if result.stopped is not None:
        be = "is" if result.whole == 1 else "are"
        rounds = f"{counted(result.whole, 'round')} of at most {result.wanted} {be} complete"
        judged = "and were judged"
        if result.whole < MIN_ROUNDS:
            judged = f"too few to judge: it takes {MIN_ROUNDS}"
        yield f"{result.stopped}: {rounds}, {judged}"
    yield _count_line(result)


def order_line(seed: int) -> str:
    """Return the option that repeats the random order of rounds."""
    return f"order of rounds: --order-seed {seed}"


def commit_text(commit: Commit) -> str:
    return f"{commit.short} {commit.subject}".rstrip()


def commit_object(commit: Commit | None) -> dict[str, object]:
    return {"commit": commit and commit.id, "subject": commit and commit.subject}


def ab_columns(ref: str) -> Columns[Comparison]:
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
        Column("low", lambda c: c.low, "interval", interval_text, right=True,
               fit=DROPPED[1]),
        Column("high", lambda c: c.high),
        Column("limit", lambda c: c.verdict.limit),
        Column("outcome", lambda c: c.word, "verdict",
               colour=lambda c: OUTCOME_COLOURS.get(c.outcome)),
        Column("rounds", lambda c: c.rounds),
        Column("sentence", lambda c: ab_sentence(c, ref)),
        Column("by_op", lambda c: c.by_op),
    )  # fmt: skip


def interval_text(compared: Comparison) -> str:
    """Return the interval as read from two values, the lower end first."""
    return " to ".join(map(format_change, compared.ends_as_read or ())) or "-"


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


def _count_line(result: AbResult) -> str:
    outcomes = Counter(compared.word for compared in result.compared)
    tests = len({compared.test for compared in result.compared})
    parts = [f"{counted(tests, 'test')} compared in {counted(result.whole, 'round')}"]
    parts += [f"{len(result.troubles)} failed"] if result.troubles else []
    words = (*(outcome.value for outcome in Outcome), INCONCLUSIVE)
    counts = ", ".join(f"{outcomes[word]} {word}" for word in words if outcomes[word])
    parts += [f"metrics: {counts}"] if counts else ["nothing was judged"]
    return "; ".join(parts)


def ab(asked: Experiment, ref: str, *, shape: str) -> Result:
    result = compare_with(Repository.around(asked.cwd).commit(ref), ref, asked)
    text = ab_listing(result).text(shape)
    return Result(text, failed=result.failed, inconclusive=result.inconclusive)


def compare_with(
    commit: Commit,
    ref: str,
    asked: Experiment,
    check: Callable[[InTurns, int], str | None] | None = None,
    tests: Sequence[str] | None = None,
) -> AbResult:
    """Measure the working tree and a commit in turns.

    ``ref`` names the commit. ``check`` looks at each round, and returns why no other may follow;
    with it, it is recorded how times are taken. ``tests`` are those of a run that holds the machine
    already.
    """
    repository = Repository.around(asked.cwd)
    root, tree, cwd = repository.root, repository.working_tree(), asked.cwd.resolve()
    shared = shared_within(root, asked.cwd, asked.shared)
    asked = replace(asked, shared=shared, receipts=check is not None)
    check_writable(asked.settings.artifacts)
    remarks = tuple(f"{folder} was that of the working tree on both sides" for folder in shared)
    result = AbResult(
        ref, commit, tree, asked.rounds, 0,
        stopped="interrupted", remarks=remarks, order_seed=asked.seed,
    )  # fmt: skip
    try:
        held = hold_machine(root, asked) if tests is None else nullcontext()
        with held, checkout(asked, root, commit) as other:
            builds = builds_of(asked, root)
            if builds is not None:
                builds.run(f"the {WORKING_TREE}", root, builds.folder / "working-tree.log")
            here, there = Move(root, root, cwd), Move(root, other, cwd)
            after = Version(WORKING_TREE, here, other, asked, tests=tests, chooses=True)
            turns: InTurns = Turns(Version(ref, there, root, asked, tests=tests), after)
            stopped = run_rounds(turns, asked.rounds, lambda n: _look(asked, turns, n), check)
            return _with_rounds(result, turns, stopped, asked.plan)
    except KeyboardInterrupt:
        return result


def against(
    name: str | None,
    tests: Sequence[str],
    words: Sequence[str],
    cwd: Path,
    settings: Settings,
    print_line: Callable[[str], None],
) -> dict[str, dict[str, Verdict]]:
    """Measure tests in turns with a commit; return verdicts by metric.

    ``name`` is that of the commit, None for where the branch began. ``words`` are pytest's.

    Raises:
        TtnnPerfError: they cannot be measured so.
    """
    repository = Repository.around(cwd)
    commit = repository.commit(name or repository.comparison_base() or "HEAD")
    print_line(f"in turns with {commit_text(commit)}: {counted(len(tests), 'test')}")

    def progress(text: str, milestone: bool) -> None:  # noqa: FBT001 (called by position)
        if milestone and not text.startswith("round "):  # the looks alone
            print_line(text)

    asked = experiment_of_gate(commit, words, USUAL_ROUNDS, cwd, settings, progress)
    result = compare_with(commit, commit.short, asked, tests=tests)
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
    wrong = [*result.troubles.values(), *filter(None, [result.stopped])]
    if wrong and not result.compared:
        raise UsageError(wrong[0])
    found: dict[str, dict[str, Verdict]] = {}
    for each in result.compared:
        if each.low is not None and (each.is_undecided or each.outcome in _KNOWN):
            undecided = "undecided, " if each.is_undecided else ""
            rounds = f"{counted(each.rounds, 'round')} against {commit.short}"
            verdict = replace(each.verdict, detail=f"{undecided}{interval_text(each)} in {rounds}")
            found.setdefault(each.test, {})[verdict.metric.name] = verdict
    return found


def _look(asked: Experiment, turns: InTurns, number: int) -> tuple[str, ...]:
    compared = compare_tests(turns.before.good(), turns.after.good(), asked.plan)
    undecided = undecided_tests(compared)
    of = counted(len({each.test for each in compared}), "test")
    on = "and it was the last"
    if number < asked.rounds:
        on = f"continuing, at most {asked.rounds} rounds"
    known = f"{len(undecided)} of {of} undecided, {on}" if undecided else f"{of} decided"
    asked.print_line(f"look after {counted(number, 'round')}: {known}")
    return undecided


def _with_rounds(result: AbResult, turns: InTurns, stopped: str | None, plan: Plan) -> AbResult:
    before, after = turns.before, turns.after
    if not (after.measured or before.measured or stopped):
        none = "none was chosen: name others"
        if after.collected is not None:
            ran = after.collected["tests"][0]
            none = f"{ran} measures nothing: mark tests with @pytest.mark.ttnn_perf, or name others"
        raise UsageError(f"no test was measured: {none}")
    left, right = before.good(), after.good()
    whole = min(before.completed, after.completed)
    no_longer_fitting = {
        test: f"{WORKING_TREE}, {why}; it used to fit"
        for test, why in after.no_room.items()
        if test in before.measured
    }
    return replace(
        result,
        stopped=stopped,
        whole=whole,
        compared=tuple(compare_tests(left, right, plan)),
        # One that ran on one side only when all was stopped is no test of that side alone.
        only_before=tuple(t for t in left if whole and t not in after.measured),
        only_after=tuple(t for t in right if whole and t not in before.measured),
        troubles=no_longer_fitting | troubles_of({WORKING_TREE: after, result.ref: before}),
        sides=(before, after),
    )


def shared_within(root: Path, cwd: Path, folders: Iterable[str]) -> tuple[str, ...]:
    places = [((cwd / folder).resolve(), folder) for folder in folders]
    for place, folder in places:
        if not place.is_relative_to(root) or not place.exists():
            message = f"--same {folder}: expected a file or folder of {root}"
            raise UsageError(message)
    return tuple(str(place.relative_to(root)) for place, _ in places)


def troubles_of(sides: Mapping[str, Sessions]) -> dict[str, str]:
    """Return why tests have no result, by side."""
    troubles: dict[str, list[str]] = {}
    for name, found in sides.items():
        for test, why in found.troubles.items():
            troubles.setdefault(test, []).append(f"{name}, {why}")
    return {test: "; ".join(reasons) for test, reasons in troubles.items()}
