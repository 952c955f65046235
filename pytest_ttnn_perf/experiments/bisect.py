"""The bisect command: find the commit that made a test slower.

Each commit is measured in turns with the good one. It is slow if at least half of the slowdown is
there: so one that is as fast as the good one and one that is as slow as the bad one are both far
from where it is decided. In the end the commit is compared with the one before it, which shows its
own effect, and would show a wrong turn. If it moves a submodule, the search goes on inside that.
"""

from __future__ import annotations

import posixpath
import time
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from math import ceil, expm1, log1p, log2
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf.core.files import check_writable
from pytest_ttnn_perf.core.metric import Better
from pytest_ttnn_perf.core.observation import Outcome
from pytest_ttnn_perf.core.settings import MAX_ROUNDS
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.experiments.ab import (
    ab_columns,
    ab_sentence,
    commit_object,
    commit_text,
    interval_text,
    order_line,
    shared_within,
    troubles_of,
)
from pytest_ttnn_perf.experiments.paired import Interval, interval_of
from pytest_ttnn_perf.experiments.repository import Repository
from pytest_ttnn_perf.experiments.rounds import (
    Move,
    StrayedError,
    Turns,
    Version,
    checkout,
    compare_tests,
    hold_machine,
    rounds_of,
    run_rounds,
    undecided_tests,
)
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

    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.experiments.paired import Comparison
    from pytest_ttnn_perf.experiments.repository import Commit
    from pytest_ttnn_perf.experiments.rounds import Experiment, InTurns
    from pytest_ttnn_perf.report.tables import Block

    OpenTurns = Callable[[Commit, Commit, Sequence[str] | None], AbstractContextManager[InTurns]]

#: The slowdown is known well enough to halve it once it may be off by this part of it at most.
_PRECISE: Final = 0.4
#: The time that is left is said from that on.
_WORTH_SAYING_S: Final = 60.0
#: So many files of the slow commit are named.
_MOST_FILES: Final = 6
#: The members of an effect, of those of the ab command.
_EFFECT: Final = (
    "test", "metric", "unit", "before", "after", "change", "low", "high", "rounds", "outcome",
    "sentence", "by_op",
)  # fmt: skip


class What(Enum):
    """The result of one commit."""

    SLOW = "slow"
    FAST = "fast"
    SKIPPED = "skipped"
    UNDECIDED = "undecided"


class Step(NamedTuple):
    """A commit compared with the good one; ``why`` it was skipped."""

    commit: str
    what: What
    found: Interval | None = None
    why: str | None = None


class FollowedMetric(NamedTuple):
    """The metric that is slower, how much, and all slower tests."""

    test: str
    metric: Metric
    found: Interval
    tests: tuple[str, ...]

    def numbers(self, found: Interval) -> str:
        rounds = counted(found.rounds, "round")
        return f"{_change(found, self.metric)} ({_interval(found, self.metric)}, {rounds})"


class End(Enum):
    """The result of a search."""

    FOUND = "found"
    RANGE = "range"
    NOT_CONFIRMED = "not confirmed"
    NOT_SLOWER = "not slower"
    NOT_KNOWN = "not known"
    INTERRUPTED = "interrupted"


def bisect(
    asked: Experiment,
    good: str,
    bad: str,
    metric: str | None = None,
    *,
    into: Sequence[str] = (),
    shape: str,
) -> Result:
    """Find the commit that made a test slower.

    ``metric`` is the one to follow; None for the clearest one. ``into`` are submodules that the
    search goes on in, with their own range or without.
    """
    repository = Repository.around(asked.cwd)
    root, cwd = repository.root, asked.cwd.resolve()
    first, last = repository.commit(good), repository.commit(bad)
    asked = replace(asked, shared=shared_within(root, asked.cwd, asked.shared))
    check_writable(asked.settings.artifacts)

    def report(text: str, _: bool) -> None:  # noqa: FBT001 (as that of all progress)
        asked.progress(f"{descent.hunts[-1].status}: {text}", False)  # noqa: FBT003

    quiet = replace(asked, progress=report)

    @contextmanager
    def open_turns(one: Commit, two: Commit, tests: Sequence[str] | None) -> Iterator[InTurns]:
        with ExitStack() as own:
            trees = (
                good_tree
                if commit.id == first.id
                else own.enter_context(checkout(asked, root, commit))
                for commit in (one, two)
            )
            before, after = (Move(root, tree, cwd) for tree in trees)
            yield Turns(
                Version(one.short, before, root, quiet, tests=tests),
                Version(two.short, after, root, quiet, tests=tests, chooses=True),
            )

    descent = Descent(asked, open_turns, metric, into)
    descent.begin(repository, first, last)
    tree = checkout(asked, root, first)
    with suppress(KeyboardInterrupt), hold_machine(root, asked), tree as good_tree:
        descent.run()
    given = ("--metric", metric) if metric is not None else ()
    rounds = ("--rounds", str(asked.rounds)) if asked.rounds != MAX_ROUNDS else ()
    same = (word for folder in asked.shared for word in ("--same", folder))
    build = ("--build", asked.build) if asked.build != asked.settings.build else ()
    order = ("--order-seed", str(asked.seed))
    words = (*given, *rounds, *order, *same, *(word or "" for word in build), *asked.argv)
    text = bisect_listing(descent, words).text(shape)
    ended = descent.answer.end
    return Result(text, failed=ended is End.NOT_SLOWER, inconclusive=ended is not End.FOUND)


#: The outer repository, its submodules, and theirs.
_MOST_LEVELS: Final = 3


class Level(NamedTuple):
    """A repository that is searched: the outer one, or a submodule.

    ``whole`` returns the commit of the outer one that has a commit of this one.
    """

    path: str
    repository: Repository
    whole: Callable[[str], str]


class Descent:
    """Searches inside each other: of a repository, and of its submodules.

    ``into`` are the paths of submodules that are searched whatever else the slow commit changes;
    ``path=good..bad`` searches only that range of it. ``remarks`` say what was not searched.
    """

    def __init__(
        self,
        asked: Experiment,
        open_turns: OpenTurns,
        metric: str | None = None,
        into: Sequence[str] = (),
    ) -> None:
        self.asked, self.open_turns, self.metric = asked, open_turns, metric
        parts = (word.rstrip("/").partition("=") for word in into)
        self.into = {posixpath.normpath(path): ends for path, _, ends in parts}
        self.hunts: list[Hunt] = []
        self.remarks: list[str] = []

    @property
    def answer(self) -> Hunt:
        """The innermost search whose own commits are not ruled out."""
        *outer, last = self.hunts
        return outer[-1] if outer and last.end is End.NOT_SLOWER else last

    def begin(self, repository: Repository, good: Commit, bad: Commit) -> None:
        self._search(Level("", repository, lambda commit: commit), good, bad)

    def run(self) -> None:
        hunt = self.hunts[-1]
        hunt.run()
        while len(self.hunts) < _MOST_LEVELS and hunt.end in {End.FOUND, End.RANGE}:
            try:
                inner = self._inside(hunt)
            except UsageError as error:
                self.remarks.append(f"the search cannot go on inside: {error}")
                return
            if inner is None:
                break
            hunt = inner
            self.asked.print_line(f"inside {hunt.path}: {counted(len(hunt.history), 'commit')}")
            hunt.run()
        left = self.into.keys() - {each.path for each in self.hunts}
        slow = hunt.suspects[-1].short
        self.remarks += [f"--into {path}: {slow} does not move it" for path in sorted(left)]

    def _inside(self, hunt: Hunt) -> Hunt | None:
        """Return the search inside a submodule that the slow commit moves."""
        level, followed, last = hunt.level, hunt.followed, hunt.suspects[-1]
        if level is None or followed is None:
            return None
        outer, before = level.repository, hunt.before
        moved, alone = outer.moved_submodules(before.id, last.id)
        places = {posixpath.join(level.path, path): path for path in moved}
        chosen = [place for place in places if place in self.into]
        chosen = chosen or [place for place in places if alone and len(places) == 1]
        effect = next((each for each in hunt.effects if _is_of(each, followed)), None)
        if not chosen or effect is None or effect.outcome is not Outcome.REGRESSED:
            return None
        place, path = chosen[0], places[chosen[0]]
        inner = Repository.around(outer.root / path)
        if inner.root == outer.root:
            message = f"the submodule {place} is not checked out: git submodule update --init"
            raise UsageError(message)
        # These are known as wholes, and measured, if nothing else moved.
        known = {moved[path][1]: level.whole(last.id)}
        known |= {moved[path][0]: level.whole(before.id)} if alone and len(moved) == 1 else {}

        def whole(commit: str) -> str:
            found = known.get(commit)
            return found or level.whole(outer.with_submodule(last.id, path, commit))

        good, _, bad = self.into.get(place, "").partition("..")
        ends = [inner.commit(good or moved[path][0]), inner.commit(bad or moved[path][1])]
        found = self._search(Level(place, inner, whole), *ends)
        if {each.id for each in ends} <= known.keys():
            change, low, high = effect.verdict.change, effect.low, effect.high
            interval = Interval(change or 0.0, low or 0.0, high or 0.0, effect.rounds)
            found.followed, found.effects = followed._replace(found=interval), hunt.effects
        return found

    def _search(self, level: Level, good: Commit, bad: Commit) -> Hunt:
        history = level.repository.between(good, bad)
        if not history:
            message = f"{good.short} and {bad.short} are the same commit: nothing to look for"
            raise UsageError(message)

        def open_turns(
            one: Commit, two: Commit, tests: Sequence[str] | None
        ) -> AbstractContextManager[InTurns]:
            before, after = (each._replace(id=level.whole(each.id)) for each in (one, two))
            return self.open_turns(before, after, tests)

        hunt = Hunt(good, history, self.asked, open_turns, self.metric, level)
        self.hunts.append(hunt)
        return hunt


class Search:
    """Halves the commits, oldest first, up to the first slow one.

    The last of them is known to be slow, and what comes before the first is fast.
    """

    def __init__(self, commits: Sequence[str]) -> None:
        self.commits = tuple(commits)
        self.results: dict[str, What] = {}

    @property
    def slow(self) -> int:
        found = (n for n, each in enumerate(self.commits) if self.results.get(each) is What.SLOW)
        return min(found, default=len(self.commits) - 1)

    @property
    def fast(self) -> int:
        fast = (n for n in range(self.slow) if self.results.get(self.commits[n]) is What.FAST)
        return max(fast, default=-1)

    @property
    def suspects(self) -> tuple[str, ...]:
        return self.commits[self.fast + 1 : self.slow + 1]

    def next(self) -> str | None:
        middle = (self.fast + self.slow) / 2
        between = range(self.fast + 1, self.slow)
        left = [place for place in between if self.commits[place] not in self.results]
        nearest = min(left, key=lambda place: abs(place - middle), default=None)
        return None if nearest is None else self.commits[nearest]


class _StoppedError(Exception):
    """Rounds ended early, and nothing can follow."""


class Hunt:
    """A search, and what it has measured so far.

    One of ``suspects`` made it slower, ``before`` precedes them. ``effects`` compares the last of
    them with ``before``, or the bad commit with the good one. With ``followed``, it is known that
    the bad commit is slower.
    """

    def __init__(
        self,
        good: Commit,
        history: Sequence[Commit],
        asked: Experiment,
        open_turns: OpenTurns,
        metric: str | None = None,
        level: Level | None = None,
    ) -> None:
        self.good, self.history, self.asked, self.metric = good, history, asked, metric
        self.open_turns, self.level = open_turns, level
        self.path = level.path if level else ""
        self.search = Search([each.id for each in history])
        self.followed: FollowedMetric | None = None
        self.steps: list[Step] = []
        self.effects: Sequence[Comparison] = ()
        self.end, self.why = End.INTERRUPTED, ""
        self._by_id = {each.id: each for each in history}
        self._took_s: list[float] = []

    @property
    def threshold(self) -> float:
        """The change that makes a commit slow: half of the slowdown.

        All slow commits say how much that is: the first estimate was often lucky.
        """
        slow = [step.found for step in self.steps if step.what is What.SLOW]
        known = [each for each in (self.followed and self.followed.found, *slow) if each]
        rounds = sum(each.rounds for each in known)
        return expm1(sum(each.rounds * log1p(each.change) for each in known) / rounds / 2)

    @property
    def bad(self) -> Commit:
        return self.history[-1]

    @property
    def suspects(self) -> tuple[Commit, ...]:
        return tuple(self._by_id[commit] for commit in self.search.suspects)

    @property
    def status(self) -> str:
        left = len(self.search.suspects)
        to_measure = ceil(log2(left))
        text = f"{counted(left, 'commit')} left, about {to_measure} to measure"
        if not to_measure:
            text = "1 commit left, to compare with the one before it"
        left_s = sum(self._took_s) / max(len(self._took_s), 1) * max(to_measure, 1)
        return text if left_s < _WORTH_SAYING_S else f"{text}, about {left_s / 60:.0f} min"

    @property
    def before(self) -> Commit:
        fast = self.search.fast
        return self.good if fast < 0 else self.history[fast]

    def run(self) -> None:
        try:
            effects = self.effects if self.followed else self._verify()
            if self.followed is None:
                known = not undecided_tests(effects)
                self.end = End.NOT_SLOWER if known else End.NOT_KNOWN
            else:
                while (commit := self.search.next()) is not None:
                    self._try(self._by_id[commit], self.followed)
                self.end, effects = self._confirm(effects, self.followed)
            self.effects = effects
        except _StoppedError as stopped:
            self.why = str(stopped)

    def _confirm(
        self, effects: Sequence[Comparison], followed: FollowedMetric
    ) -> tuple[End, Sequence[Comparison]]:
        """Compare the first slow commit with the one before it."""
        if len(self.history) > 1:
            after = self.history[self.search.slow]

            def look(turns: InTurns) -> tuple[str, ...]:
                return undecided_tests(self._compare(turns))

            effects = self._compare(self._measure(self.before, after, followed.tests, look))
        if len(self.suspects) > 1:
            return End.RANGE, effects
        slower = (each for each in effects if each.outcome is Outcome.REGRESSED)
        is_confirmed = any(_is_of(each, followed) for each in slower)
        return End.FOUND if is_confirmed else End.NOT_CONFIRMED, effects

    def _verify(self) -> list[Comparison]:
        def look(turns: InTurns) -> tuple[str, ...]:
            compared = self._compare(turns)
            slower = _slower(compared)
            if not slower:
                return undecided_tests(compared)
            followed = self._followed(turns, slower)
            found = followed.found
            is_precise = log1p(found.low) > (1 - _PRECISE) * log1p(found.change)
            return () if is_precise else followed.tests

        good, bad = self.good.short, self.bad
        turns = self._measure(self.good, bad, None, look)
        compared = self._compare(turns)
        troubles = troubles_of({bad.short: turns.after, good: turns.before})
        if not compared:
            wrong = "no test was measured in both commits: name others, or mark them with ttnn_perf"
            if self.metric is not None and turns.before.measured:
                wrong = f"no test records {self.metric} in both commits, as a time or a rate"
            if troubles:
                wrong = "{} cannot be compared: {}".format(*next(iter(troubles.items())))
            raise UsageError(wrong)
        for test, why in troubles.items():
            self.asked.print_line(f"failed {test}: {why}")
        slower = _slower(compared)
        if slower:
            self.followed = followed = self._followed(turns, slower)
            text = f"{followed.test} {followed.metric.name} {followed.numbers(followed.found)}"
            self.asked.print_line(f"{bad.short} is slower than {good}: {text}")
        return compared

    def _followed(self, turns: InTurns, slower: Sequence[Comparison]) -> FollowedMetric:
        first, tests = slower[0], tuple(dict.fromkeys(each.test for each in slower))
        return FollowedMetric(first.test, first.verdict.metric, self._interval(turns, first), tests)

    def _interval(self, turns: InTurns, compared: Comparison) -> Interval:
        metric, plan = compared.verdict.metric, self.asked.plan
        before, after = (side.good()[compared.test] for side in (turns.before, turns.after))
        return interval_of(metric, rounds_of(metric.name, before, after, plan), plan=plan)

    def _try(self, commit: Commit, followed: FollowedMetric) -> None:
        def look(turns: InTurns) -> tuple[str, ...]:
            undecided = self._step(turns, commit, followed).what is What.UNDECIDED
            return (followed.test,) if undecided else ()

        try:
            turns = self._measure(self.good, commit, [followed.test], look)
            step = self._step(turns, commit, followed)
        except StrayedError:
            raise
        except TtnnPerfError as error:
            why = str(error).splitlines()[0]
            step = Step(commit.id, What.SKIPPED, why=why.removeprefix(f"{commit.short}: "))
        self.search.results[commit.id] = step.what
        self.steps.append(step)
        text = followed.numbers(step.found) if step.found else step.why
        self.asked.print_line(f"{step.what.value} {commit.short} {commit.subject}: {text}")
        self.asked.print_line(self.status)

    def _step(self, turns: InTurns, commit: Commit, followed: FollowedMetric) -> Step:
        judged = compare_tests(turns.before.good(), turns.after.good(), self.asked.plan)
        compared = next((each for each in judged if _is_of(each, followed)), None)
        if compared is None:
            troubles = troubles_of({commit.short: turns.after, self.good.short: turns.before})
            nothing = f"it does not measure {followed.metric.name} of {followed.test}"
            return Step(commit.id, What.SKIPPED, why=troubles.get(followed.test, nothing))
        if compared.low is None:
            why = ab_sentence(compared, self.good.short, after=commit.short)
            return Step(commit.id, What.SKIPPED, why=why)
        found, threshold = self._interval(turns, compared), self.threshold
        what = What.SLOW if found.low > threshold else What.UNDECIDED
        what = What.FAST if found.high < threshold else what
        return Step(commit.id, what, found)

    def _measure(
        self,
        before: Commit,
        after: Commit,
        tests: Sequence[str] | None,
        look: Callable[[InTurns], Sequence[str]],
    ) -> InTurns:
        start_s = time.monotonic()
        with self.open_turns(before, after, tests) as turns:
            stopped = run_rounds(turns, self.asked.rounds, lambda _: look(turns))
        self._took_s.append(time.monotonic() - start_s)
        if stopped is not None:
            raise _StoppedError(stopped)
        return turns

    def _compare(self, turns: InTurns) -> list[Comparison]:
        """Judge the times and throughputs, or the metric that was asked for."""
        before, after = turns.before.good(), turns.after.good()
        return [
            each
            for each in compare_tests(before, after, self.asked.plan)
            if each.low is not None and self.metric in {None, each.verdict.metric.name}
        ]


def _slower(compared: Sequence[Comparison]) -> list[Comparison]:
    """Return what is slower: times first, then what is clearest."""

    def clearness(one: Comparison) -> tuple[bool, float]:
        # A time before a rate, which is often computed from it.
        is_time = one.verdict.metric.better is Better.LOWER
        return is_time, log1p(one.low or 0.0) / log1p(one.verdict.change or 0.0)

    slower = [each for each in compared if each.outcome is Outcome.REGRESSED]
    return sorted(slower, key=clearness, reverse=True)


def _is_of(compared: Comparison, followed: FollowedMetric) -> bool:
    return (compared.test, compared.verdict.metric.name) == (followed.test, followed.metric.name)


def bisect_listing(descent: Descent, words: Sequence[str]) -> Listing:
    """Lay out searches; ``words`` are the arguments after the commits."""
    lines: list[Block] = []
    rows: list[tuple[object, ...]] = []
    document: dict[str, object] | None = None
    hunts = descent.hunts
    for hunt in hunts:
        resume = _resume(hunts[: hunts.index(hunt) + 1], words)
        columns, own = _columns(hunt), _rows(hunt)
        lines += [*_heading(hunt), *(columns.table(own) if own else ()), *([""] if own else ())]
        lines += [f"skipped {d.short}: {s.why}" for d, s in own if s.why is not None]
        rows += columns.rows(own)
        if hunt is hunts[-1]:
            lines += [order_line(hunt.asked.seed)]
        lines += _conclusion(hunt, words, resume, whole=hunt is descent.answer)
        lines += [""] if hunt is not hunts[-1] else descent.remarks
    for hunt in reversed(hunts):
        document = {**_document(hunt, words, hunts), "inside": document}
    document = {**(document or {}), "remarks": descent.remarks}
    return Listing(tuple(lines), document, columns.names, tuple(rows))


def _rows(hunt: Hunt) -> list[tuple[Commit, Step]]:
    steps = {step.commit: step for step in hunt.steps}
    return [(commit, steps[commit.id]) for commit in hunt.history if commit.id in steps]


def _heading(hunt: Hunt) -> Iterator[str]:
    if hunt.path:
        yield f"inside {hunt.path}"
    yield f"good: {commit_text(hunt.good)}"
    yield f"bad: {commit_text(hunt.bad)}, {counted(len(hunt.history), 'commit')} later"
    followed = hunt.followed
    if followed is not None:
        numbers = followed.numbers(followed.found)
        yield f"followed: {followed.test} {followed.metric.name}, {numbers}"
    yield ""


def _document(hunt: Hunt, words: Sequence[str], hunts: Sequence[Hunt]) -> dict[str, object]:
    is_known = hunt.end in {End.FOUND, End.RANGE, End.NOT_CONFIRMED}
    first = hunt.suspects[-1] if is_known else None
    followed = hunt.followed
    is_open = hunt.end is End.INTERRUPTED and followed
    return {
        "outcome": hunt.end.value,
        "repository": hunt.path or ".",
        "good": commit_object(hunt.good),
        "bad": commit_object(hunt.bad),
        "commits": len(hunt.history),
        "commit": first and {**commit_object(first), "date": first.date, "author": first.author,
                             "merge": len(first.parents) > 1, "files": list(_files(hunt))},
        "before": commit_object(hunt.before) if is_known else None,
        "suspects": [commit.id for commit in hunt.suspects],
        "test": followed and followed.test,
        "metric": followed and followed.metric.name,
        "slowdown": followed and followed.found._asdict(),
        "order_seed": hunt.asked.seed,
        "effects": [
            {name: each[name] for name in _EFFECT}
            for each in ab_columns(hunt.before.short).objects(hunt.effects)
        ],
        "steps": _columns(hunt).objects(_rows(hunt)),
        "stopped": hunt.why or None,
        "resume": _resume(hunts[: hunts.index(hunt) + 1], words) if is_open else None,
    }  # fmt: skip


def _files(hunt: Hunt) -> tuple[str, ...]:
    """Return the files that the slow commit changes."""
    last = hunt.suspects[-1]
    if hunt.level is None or not last.parents:
        return ()
    return hunt.level.repository.files_between(last.parents[0], last.id)


def _resume(hunts: Sequence[Hunt], words: Sequence[str]) -> str:
    """Return the command that searches among the commits that are left."""
    (good, bad), *inner = ((hunt.before.short, hunt.suspects[-1].short) for hunt in hunts)
    paths = (hunt.path for hunt in hunts[1:])
    into = (f"--into={path}={a}..{b}" for path, (a, b) in zip(paths, inner, strict=True))
    return command_line("ttnn-perf", "bisect", good, bad, *into, *words)


def _columns(hunt: Hunt) -> Columns[tuple[Commit, Step]]:
    metric = hunt.followed.metric if hunt.followed else None
    return Columns(
        Column("repository", lambda _: hunt.path or "."),
        Column("commit", lambda r: r[0].id, "commit", lambda r: r[0].short),
        Column("date", lambda r: r[0].date, "date", lambda r: r[0].date[:10], fit=DROPPED[2]),
        Column("change", lambda r: r[1].found and r[1].found.change, "change",
               lambda r: _change(r[1].found, metric), right=True),
        Column("low", lambda r: r[1].found and r[1].found.low, "interval",
               lambda r: _interval(r[1].found, metric), right=True, fit=DROPPED[3]),
        Column("high", lambda r: r[1].found and r[1].found.high),
        Column("rounds", lambda r: r[1].found.rounds if r[1].found else 0, "rounds", right=True,
               fit=DROPPED[1]),
        Column("what", lambda r: r[1].what.value, "it is"),
        Column("subject", lambda r: r[0].subject, "subject", fit=Fit(least=16)),
        Column("why", lambda r: r[1].why),
    )  # fmt: skip


def _change(found: Interval | None, metric: Metric | None) -> str:
    return format_change(metric.as_read(found.change)) if found and metric else "-"


def _interval(found: Interval | None, metric: Metric | None) -> str:
    if found is None or metric is None:
        return "-"
    ends = sorted(metric.as_read(end) or 0.0 for end in (found.low, found.high))
    return " to ".join(map(format_change, ends))


def _conclusion(hunt: Hunt, words: Sequence[str], resume: str, *, whole: bool) -> Iterator[str]:
    """Yield what was found; ``whole``, with its effects."""
    first, last = hunt.suspects[0], hunt.suspects[-1]
    match hunt.end:
        case End.INTERRUPTED:
            left = counted(len(hunt.suspects), "commit")
            yield f"{hunt.why or 'interrupted'}: {left} left"
            known = hunt.followed is not None
            yield f"  go on with: {resume}" if known else "  nothing is known yet"
            return
        case End.NOT_SLOWER:
            yield f"{hunt.bad.short} is not slower than {hunt.good.short}: nothing to look for"
        case End.NOT_KNOWN:
            yield f"it is not known whether {hunt.bad.short} is slower than {hunt.good.short}"
            yield "  name fewer tests, or quiet the machine: both make rounds more precise"
        case End.FOUND:
            of = f" of {hunt.path}" if hunt.path else ""
            yield f"the first slow commit{of} is {commit_text(last)}"
            yield f"  date: {last.date}"
            yield from _origin(hunt, last)
        case End.NOT_CONFIRMED:
            yield f"half of the slowdown is there from {commit_text(last)} on"
            yield f"  but it alone is not known to be slower than {hunt.before.short} before it:"
            yield "  it may have come in small steps, or the search took a wrong turn"
        case End.RANGE:
            count = len(hunt.suspects)
            yield f"the first slow commit is one of {count}, {first.short} to {last.short}:"
            yield "  those between could not be determined, see above; their effect together:"
    if whole:
        yield from _effects(hunt)
    if whole and hunt.end is End.FOUND and len(last.parents) > 1 and not hunt.path:
        one, two = (parent[:12] for parent in last.parents[:2])
        branch = f"ttnn-perf bisect $(git merge-base {one} {two}) {command_line(two, *words)}"
        yield f"  it is a merge; to look into its branch: {branch}"


def _origin(hunt: Hunt, last: Commit) -> Iterator[str]:
    if last.author:
        yield f"  author: {last.author}"
    files = _files(hunt)
    more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
    if files:
        yield f"  files: {', '.join(files[:_MOST_FILES])}{more}"


def _effects(hunt: Hunt) -> Iterator[str]:
    ref = (hunt.good if hunt.end in {End.NOT_SLOWER, End.NOT_KNOWN} else hunt.before).short
    is_found = hunt.end in {End.FOUND, End.RANGE}
    for compared in hunt.effects:
        if is_found and compared.outcome is Outcome.WITHIN:
            continue
        yield f"  {compared.word} {compared.test}: {ab_sentence(compared, ref)}"
        if not compared.is_undecided:
            yield f"    between {interval_text(compared).replace(' to ', ' and ')}"
        if compared.by_op is not None and compared.outcome is not Outcome.WITHIN:
            yield f"    by op: {compared.by_op}"
