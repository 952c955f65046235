"""Rounds: two versions of a project measured in turns, each time in a fresh process.

The order changes from round to round (A B, B A, A B, ...), so that what drifts evenly is as often
to the one's disadvantage as to the other's.
"""

from __future__ import annotations

import os
import time
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.experiments.calibrate import Progress
from pytest_ttnn_perf.experiments.compare_runs import compare_runs
from pytest_ttnn_perf.gate.judge import judge_test, representative, with_parts_explaining
from pytest_ttnn_perf.gate.paired import Paired, Round, judge_rounds
from pytest_ttnn_perf.observe.strays import Stray
from pytest_ttnn_perf.records.baseline import Accepted, TestBaseline
from pytest_ttnn_perf.records.messages import Collected, PassKind, Strayed
from pytest_ttnn_perf.records.metric import Better, median
from pytest_ttnn_perf.records.observation import JudgedTest, Run
from pytest_ttnn_perf.records.settings import MIN_ROUNDS
from pytest_ttnn_perf.records.verdict import Outcome, Reason, Verdict
from pytest_ttnn_perf.run.sessions import SessionListener, Sessions, baselines_of
from pytest_ttnn_perf.run.workers import Listener, LostWorker, Pass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.experiments.compare_runs import Difference, Pair, Reading
    from pytest_ttnn_perf.processes.git import Commit, WorkingTree
    from pytest_ttnn_perf.records.messages import Message
    from pytest_ttnn_perf.records.observation import Observation
    from pytest_ttnn_perf.run.workers import WorkerFactory

    #: What one side measured of one test, round by round.
    Seen = Sequence[Observation]


#: What could not be judged is no pass.
_FAILING = frozenset({Outcome.REGRESSED, Outcome.TOO_NOISY, Outcome.NO_DATA})


_KNOWN = frozenset({Outcome.REGRESSED, Outcome.IMPROVED, Outcome.WITHIN})


@dataclass(frozen=True, slots=True)
class Compared:
    """One metric of one test on both sides. ``obstacle`` is what forbids to compare the two.

    ``before`` and ``after`` are the values of the rounds, in the order in which these were run.
    ``by_op`` says which ops make up the change of a time.
    """

    test: str
    paired: Paired
    rounds: int
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    obstacle: Difference | None = None
    by_op: str | None = None

    @property
    def verdict(self) -> Verdict:
        """What the rounds say of the metric."""
        return self.paired.verdict

    @property
    def outcome(self) -> Outcome:
        """What the verdict says."""
        return self.paired.verdict.outcome


@dataclass(frozen=True, slots=True)
class AbResult:
    """What rounds tell. ``ref`` is the commit as the user named it.

    ``stopped`` says why there are fewer rounds than ``wanted``; ``whole`` is how many there are of
    the test that has fewest. ``troubles`` say why a test has no result.
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
    def judged_any(self) -> bool:
        """Whether anything is known to be better, worse, or as it was."""
        return any(metric.outcome in _KNOWN for metric in self.compared)

    @property
    def failed(self) -> bool:
        """Whether something is worse, or could not be judged."""
        bad = any(metric.outcome in _FAILING for metric in self.compared)
        return bad or bool(self.troubles) or not self.judged_any


@dataclass(slots=True)
class Side:
    """One of the two versions: its name, the workers that measure it, and their results.

    ``tests`` are those to run in the first round; None for all that are collected.
    """

    name: str
    factory: WorkerFactory
    found: Sessions
    tests: Sequence[str] | None = None


class StrayedError(UsageError):
    """A side's tests ran code that is not that side's."""

    def __init__(self, side: Side, strays: Sequence[Stray]) -> None:
        super().__init__(f"{side.name}: {strays[0].name} is {strays[0].file}")
        self.side = side
        self.strays = tuple(strays)


def after_is_first(number: int) -> bool:
    """Return whether the working tree is measured first: in rounds of odd number."""
    return number % 2 == 1


def run_rounds(
    before: Side,
    after: Side,
    *,
    rounds: int,
    progress: Callable[[Progress], None],
    begin: Callable[[Collected], None],
) -> str | None:
    """Measure both sides, ``rounds`` times; return why it ended early, None if it did not.

    ``begin`` is told what the working tree collects, before any other process starts. Ctrl-C, or a
    round that cannot be run after others could, keeps what there is.

    Raises:
        UsageError: the tests of a side cannot be collected or run at all.
        StrayedError: a side's tests ran code that is not that side's.
    """
    start_s = time.monotonic()

    def tell(number: int, done: int, side: Side, ready: int, of: int | None) -> None:
        elapsed_s = time.monotonic() - start_s
        progress(Progress(number, rounds, ready, of, elapsed_s, "round", side.name, 2, done))

    try:
        for number in range(1, rounds + 1):
            order = (after, before) if after_is_first(number) else (before, after)
            for done, side in enumerate(order):
                session_listener = SessionListener(
                    side.found, number, partial(tell, number, done, side)
                )
                session_listener.begin = begin if side is after else session_listener.begin
                # What has failed once has no result any more, and costs time only.
                tests = side.tests if number == 1 else _in_both(before, after)
                _run_session(side, session_listener, tests)
                if side.found.stopped is not None:
                    return f"{side.found.stopped}, {side.name}"
                if number == 1 and side is after and not side.found.measured:
                    return None  # nothing to compare the other side with
            if not _in_both(before, after):
                return None
    except KeyboardInterrupt:
        return "interrupted"
    return None


def _in_both(before: Side, after: Side) -> tuple[str, ...]:
    """Return the tests that had no trouble on either side."""
    known = before.found.good()
    return tuple(test for test in after.found.good() if test in known)


def _run_session(
    side: Side, session_listener: SessionListener, tests: Sequence[str] | None
) -> None:
    """Measure one side once, as a usual run does: a device pass if there is one, then the other."""
    factory, found = side.factory, side.found
    session_listener.alike, session_listener.word = False, "round"
    if factory.has_device_pass:
        device = factory.run_device_pass()
        if device.stopped is not None:
            found.stopped = f"stopped in round {session_listener.number} ({device.stopped})"
            return
        session_listener.complete = device.add_to
    listener = _Listener(session_listener)
    kind = PassKind.AB if factory.first_kind is PassKind.WALL else factory.first_kind
    one = Pass(kind, factory.first(), listener, factory.settings.timeout)
    one.run(tests)
    if listener.strays:
        raise StrayedError(side, listener.strays)
    if one.stopped is not None:
        found.stopped = f"stopped in round {session_listener.number} (a worker {one.stopped})"
        return
    try:
        session_listener.close(one.left, () if session_listener.number == 1 else tests)
    except UsageError as error:
        message = f"{side.name}: {error}"
        raise UsageError(message) from error
    found.completed = session_listener.number


@dataclass(slots=True)
class _Listener(Listener):
    """Receives what a side's workers send, and stops them if they do not run that side's code."""

    session_listener: SessionListener
    strays: list[Stray] = field(default_factory=list)
    _stop: str | None = None

    @property
    def stop(self) -> str | None:
        return self._stop or self.session_listener.stop

    def receive(self, message: Message) -> None:
        """Take notice of what a worker says."""
        match message:
            case Strayed(modules=modules):
                strays = [Stray(*stray) for stray in modules]
                self.strays += [stray for stray in strays if stray not in self.strays]
                self._stop = "code of another version was loaded"
            case Collected(measured=None):
                wrong = "ab measures one test at a time: leave out -n and --tx"
                raise UsageError(wrong)
            case _:
                self.session_listener.receive(message)

    def worker_lost(self, loss: LostWorker) -> None:
        """Take notice of a worker that died or hung."""
        self.session_listener.worker_lost(loss)


def whole_rounds(before: Seen, after: Seen) -> int:
    """Return how many rounds of a test both sides have."""
    return min(len(before), len(after))


def compare_tests(before: Mapping[str, Seen], after: Mapping[str, Seen]) -> Iterator[Compared]:
    """Judge every gated metric of the tests that both sides have measured often enough."""
    for test, seen in after.items():
        if test not in before:
            continue
        rounds = whole_rounds(before[test], seen)
        if rounds >= MIN_ROUNDS:
            yield from _test(test, before[test][:rounds], seen[:rounds])


def _test(test: str, before: Seen, after: Seen) -> Iterator[Compared]:
    merged = [_merge_rounds(seen) for seen in (before, after)]
    comparison = compare_runs(*(Run(None, {test: JudgedTest(side)}) for side in merged))
    by_op = comparison.by_op[0].sentence if comparison.by_op else None
    # With its own setting: one that differs is an obstacle, and told in the words of this command.
    stored = TestBaseline(Accepted(""), baselines_of(list(before)), merged[1].setting)
    exact = {verdict.metric.name: verdict for verdict in judge_test(merged[1], stored)}
    gated = [pair for pair in comparison.pairs if _is_gated(pair.metric, merged)]
    judged = [_judge_pair(pair, before, after, exact) for pair in gated]
    verdicts = with_parts_explaining([paired.verdict for paired in judged], merged[1])
    for pair, paired, verdict in zip(gated, judged, verdicts, strict=True):
        values = [_values(pair.metric, seen) for seen in (before, after)]
        yield Compared(
            test,
            replace(paired, verdict=verdict),
            len(after),
            values[0],
            values[1],
            obstacle=pair.obstacle,
            by_op=by_op if verdict.is_of_changed_time else None,
        )


def _is_gated(name: str, sides: Sequence[Observation]) -> bool:
    return any(side.metrics[name].gated for side in sides if name in side.metrics)


def _judge_pair(pair: Pair, before: Seen, after: Seen, exact: Mapping[str, Verdict]) -> Paired:
    name, then, now = pair.metric, pair.before, pair.after
    if then is None or now is None:
        return Paired(_one_sided(then, now))
    missing = sum(name not in observation.metrics for observation in (*before, *after))
    if missing:
        return Paired(Verdict(now.metric, Outcome.NO_DATA, Reason.NOT_RECORDED))
    if pair.obstacle is not None:
        reason = Reason.OTHER_CONFIGURATION
        verdict = Verdict(now.metric, Outcome.NOT_COMPARABLE, reason)
        return Paired(verdict._replace(observed=now.value, centre=then.value))
    if now.metric.compared_by_ratio:
        limits = after[-1].metrics[name].limits
        return judge_rounds(now.metric, list(_rounds(name, before, after)), limits)
    return Paired(_unsteady(name, before) or exact[name])


def _values(name: str, seen: Seen) -> tuple[float, ...]:
    """Return what stands for a metric in each round that recorded it."""
    observed = (observation.metrics[name] for observation in seen if name in observation.metrics)
    return tuple(representative(one.metric, one.samples) for one in observed if one.samples)


def _one_sided(then: Reading | None, now: Reading | None) -> Verdict:
    if now is not None:
        verdict = Verdict(now.metric, Outcome.NOT_COMPARABLE, Reason.NEW_METRIC)
        return verdict._replace(observed=now.value)
    assert then is not None, "a metric of neither side"
    verdict = Verdict(then.metric, Outcome.NOT_COMPARABLE, Reason.NOT_RECORDED)
    return verdict._replace(centre=then.value)


def _rounds(name: str, before: Seen, after: Seen) -> Iterator[Round]:
    for number, (then, now) in enumerate(zip(before, after, strict=True), start=1):
        samples = then.metrics[name].samples, now.metrics[name].samples
        yield Round(*samples, not after_is_first(number))


def _unsteady(name: str, before: Seen) -> Verdict | None:
    """Return the verdict of a value that must not change, and did from round to round before."""
    values = [sample for observation in before for sample in observation.metrics[name].samples]
    metric = before[0].metrics[name].metric
    if metric.better is not Better.EQUAL or min(values) == max(values):
        return None
    detail = f"{min(values)!r} to {max(values)!r}"
    return Verdict(metric, Outcome.TOO_NOISY, Reason.SAMPLES_DIFFER, detail, centre=values[0])


def _merge_rounds(seen: Seen) -> Observation:
    """Return what a side measured in all rounds as one observation."""
    last = seen[-1]
    metrics = {name: metric for observed in seen for name, metric in observed.metrics.items()}
    joined = {
        name: replace(
            metric,
            samples=tuple(s for o in seen if name in o.metrics for s in o.metrics[name].samples),
        )
        for name, metric in metrics.items()
    }
    return replace(last, metrics=joined, ops=next((o.ops for o in reversed(seen) if o.ops), None))


def movement(seen: Mapping[str, Seen]) -> tuple[float, str, str] | None:
    """Return how far the same code moved between rounds at most, as a fraction: test and metric."""
    found = [
        (max(values) / min(values) - 1, test, name)
        for test, observations in seen.items()
        for name, observed in observations[0].metrics.items()
        if observed.metric.compared_by_ratio and observed.gated
        if all(name in observed.metrics for observed in observations)
        for values in [[median(observed.metrics[name].samples) for observed in observations]]
    ]
    return max(found, default=None)


#: Options of pytest whose value may be the name of a file, which then is no test to run.
_WITH_PATH: Final = frozenset({
    "-c", "--config-file", "--rootdir", "--confcutdir", "--ignore", "--deselect", "--basetemp",
    "-k", "-m", "-p", "-o", "-W", "-n", "-r", "--junitxml", "--junit-xml", "--log-file",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moved:
    """Words for the other side. ``narrowed``: some tests that were asked for are not there."""

    argv: tuple[str, ...]
    narrowed: bool


@dataclass(frozen=True, slots=True)
class Move:
    """From the project in ``root`` to the one in ``tree``; the user stands in ``cwd``."""

    root: Path
    tree: Path
    cwd: Path

    @property
    def there(self) -> Path:
        """Where the user would stand in the other project."""
        return self.tree / self.cwd.relative_to(self.root)

    def path(self, text: str) -> str:
        """Return a text that begins with a path into the project, as a path into the other."""
        root = str(self.root)
        after = text[len(root) : len(root) + 1]
        inside = text.startswith(root) and after in {"", os.sep, ":"}
        return f"{self.tree}{text[len(root) :]}" if inside else text

    def argv(self, argv: Sequence[str]) -> Moved:
        """Return pytest's arguments; a file or test that only this project has is left out.

        pytest would refuse all for the sake of one that is not there. The tests of a file are then
        chosen by their ids.

        Raises:
            UsageError: none of the files that were asked for is there.
        """
        kept, missing, named = [], [], False
        for before, word in zip(("", *argv), argv, strict=False):
            file, of_test, _ = word.partition("::")
            option = word.startswith("-") or before in _WITH_PATH
            if option or not file or not (self.cwd / file).exists():
                name, equals, value = word.partition("=")
                kept.append(f"{name}={self.path(value)}" if equals else self.path(word))
            elif not Path(self.path(str(self.cwd / file))).exists():
                missing.append(word)
            else:
                kept.append(self.path(file) if of_test else self.path(word))
                named = named or bool(of_test)
        is_test = [word for word in kept if (self.cwd / word).exists()]
        if missing and not is_test:
            message = f"nothing to compare: the commit does not have {', '.join(missing)}"
            raise UsageError(message)
        return Moved(tuple(kept), named or bool(missing))

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the environment, with modules looked for in the other project."""
        moved = dict(variables)
        places = moved.get("PYTHONPATH", "").split(os.pathsep)
        if places != [""]:
            moved["PYTHONPATH"] = os.pathsep.join(map(self.path, places))
        if "PWD" in moved:
            moved["PWD"] = str(self.there)
        return moved
