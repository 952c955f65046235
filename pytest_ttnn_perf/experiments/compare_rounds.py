"""What rounds tell of two versions: every gated metric of the tests that both have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.experiments.compare_runs import compare_runs
from pytest_ttnn_perf.gate.judge import judge_test, representative, with_parts_explaining
from pytest_ttnn_perf.gate.paired import Paired, Plan, Round, judge_rounds
from pytest_ttnn_perf.records.baseline import Accepted, TestBaseline
from pytest_ttnn_perf.records.metric import Better, median
from pytest_ttnn_perf.records.observation import NO_LIMITS, JudgedTest, Limits, Run
from pytest_ttnn_perf.records.settings import MIN_ROUNDS
from pytest_ttnn_perf.records.verdict import Outcome, Reason, Verdict
from pytest_ttnn_perf.run.sessions import baselines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.experiments.compare_runs import Difference, Pair, Reading
    from pytest_ttnn_perf.records.observation import Observation

    #: What one side measured of one test, round by round.
    Seen = Sequence[Observation]


#: What is called so is not known after all rounds.
INCONCLUSIVE: Final = "INCONCLUSIVE"


@dataclass(frozen=True, slots=True)
class Compared:
    """One metric of one test on both sides. ``obstacle`` is what forbids to compare the two.

    ``before`` and ``after`` are the values of the rounds, in the order in which these were run;
    the verdict may rest on the first ``rounds`` of them. ``by_op`` says which ops make up the
    change of a time. ``limits`` are what the author of the test asks for.
    """

    test: str
    paired: Paired
    rounds: int
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    obstacle: Difference | None = None
    by_op: str | None = None
    limits: Limits = NO_LIMITS

    @property
    def verdict(self) -> Verdict:
        """What the rounds say of the metric."""
        return self.paired.verdict

    @property
    def outcome(self) -> Outcome:
        """What the verdict says."""
        return self.paired.verdict.outcome

    @property
    def word(self) -> str:
        """The same as users read it."""
        return INCONCLUSIVE if self.is_undecided else self.outcome.value

    @property
    def is_undecided(self) -> bool:
        """Whether the rounds do not tell."""
        return self.paired.is_undecided


def whole_rounds(before: Seen, after: Seen) -> int:
    """Return how many rounds of a test both sides have."""
    return min(len(before), len(after))


def is_exact(before: Seen, after: Seen) -> bool:
    """Return whether one round of a test says all: on a simulated device no time is judged."""
    return all(
        each.is_simulated
        and not any(m.gated and m.metric.compared_by_ratio for m in each.metrics.values())
        for each in (*before, *after)
    )


def after_is_first(number: int) -> bool:
    """Return whether the later version is measured first: in rounds of odd number."""
    return number % 2 == 1


def compare_tests(
    before: Mapping[str, Seen], after: Mapping[str, Seen], *, rounds: int
) -> list[Compared]:
    """Judge every gated metric of the tests that both sides have measured often enough.

    ``rounds`` are the most that there may be. The comparisons share one chance of a false alarm.
    """
    tests = [
        _Test(test, before[test][:whole], seen[:whole])
        for test, seen in after.items()
        if test in before
        and (whole := whole_rounds(before[test], seen))
        and (whole >= MIN_ROUNDS or is_exact(before[test], seen))
    ]
    plan = Plan(rounds, max(1, sum(test.comparisons for test in tests)))
    return [compared for test in tests for compared in test.judge(plan)]


def undecided_tests(compared: Sequence[Compared]) -> tuple[str, ...]:
    """Return the tests of which more rounds could tell more."""
    return tuple(dict.fromkeys(each.test for each in compared if each.is_undecided))


class _Test:
    """One test on both sides, with as many rounds of each."""

    def __init__(self, test: str, before: Seen, after: Seen) -> None:
        self.test, self.before, self.after = test, before, after
        self.merged = [_merge_rounds(seen) for seen in (before, after)]
        runs = (Run(None, {test: JudgedTest(side)}) for side in self.merged)
        self.comparison = compare_runs(*runs)
        self.gated = [pair for pair in self.comparison.pairs if _is_gated(pair.metric, self.merged)]

    @property
    def comparisons(self) -> int:
        """How many metrics are judged by their rounds, and do not only explain another."""
        names = {pair.metric for pair in self.gated}
        return sum(self._counts(pair, names) for pair in self.gated)

    def _counts(self, pair: Pair, names: set[str]) -> bool:
        if pair.before is None or pair.after is None or pair.obstacle is not None:
            return False
        metric = pair.after.metric
        explains = not names.isdisjoint(metric.totals)
        own_limits = self.merged[1].metrics[pair.metric].limits != NO_LIMITS
        return metric.compared_by_ratio and (own_limits or not explains)

    def judge(self, plan: Plan) -> Iterator[Compared]:
        """Yield what the rounds say of each metric."""
        by_op = self.comparison.by_op[0].sentence if self.comparison.by_op else None
        # With its own setting: one that differs is an obstacle, told in the words of this command.
        setting = self.merged[1].setting
        stored = TestBaseline(Accepted(""), baselines_of(list(self.before)), setting)
        exact = {verdict.metric.name: verdict for verdict in judge_test(self.merged[1], stored)}
        judged = [_judge_pair(pair, self.before, self.after, exact, plan) for pair in self.gated]
        verdicts = with_parts_explaining([paired.verdict for paired in judged], self.merged[1])
        for pair, paired, verdict in zip(self.gated, judged, verdicts, strict=True):
            values = [_values(pair.metric, seen) for seen in (self.before, self.after)]
            own = self.merged[1].metrics.get(pair.metric)
            yield Compared(
                self.test,
                replace(paired, verdict=verdict),
                paired.rounds or len(self.after),
                values[0],
                values[1],
                obstacle=pair.obstacle,
                by_op=by_op if verdict.is_of_changed_time else None,
                limits=own.limits if own else NO_LIMITS,
            )


def _is_gated(name: str, sides: Sequence[Observation]) -> bool:
    return any(side.metrics[name].gated for side in sides if name in side.metrics)


def _judge_pair(
    pair: Pair, before: Seen, after: Seen, exact: Mapping[str, Verdict], plan: Plan
) -> Paired:
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
        return judge_rounds(now.metric, list(rounds_of(name, before, after)), limits, plan=plan)
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


def rounds_of(name: str, before: Seen, after: Seen) -> Iterator[Round]:
    """Yield the rounds of a metric that all of them have."""
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
