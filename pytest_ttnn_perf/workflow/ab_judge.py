"""Both sides of a comparison joined, metric by metric, and judged round by round."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf.gate.differences import representative
from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.gate.paired import judge_rounds
from pytest_ttnn_perf.gate.parts import with_parts_explaining
from pytest_ttnn_perf.gate.statistics import median
from pytest_ttnn_perf.model.ab import MIN_ROUNDS, Compared
from pytest_ttnn_perf.model.baseline import Accepted, TestBaseline
from pytest_ttnn_perf.model.metric import Better
from pytest_ttnn_perf.model.observation import JudgedTest, Run
from pytest_ttnn_perf.model.paired import Paired, Round
from pytest_ttnn_perf.model.verdict import Outcome, Reason, Verdict
from pytest_ttnn_perf.workflow.ab_rounds import after_is_first
from pytest_ttnn_perf.workflow.compare_runs import compare_runs
from pytest_ttnn_perf.workflow.sessions import baselines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.model.comparison import Pair, Reading
    from pytest_ttnn_perf.model.observation import Observation

    #: What one side measured of one test, round by round.
    Seen = Sequence[Observation]


def whole_rounds(before: Seen, after: Seen) -> int:
    """Return how many rounds of a test both sides have."""
    return min(len(before), len(after))


def compared(before: Mapping[str, Seen], after: Mapping[str, Seen]) -> Iterator[Compared]:
    """Judge every gated metric of the tests that both sides have measured often enough."""
    for test, seen in after.items():
        if test not in before:
            continue
        rounds = whole_rounds(before[test], seen)
        if rounds >= MIN_ROUNDS:
            yield from _test(test, before[test][:rounds], seen[:rounds])


def _test(test: str, before: Seen, after: Seen) -> Iterator[Compared]:
    merged = [_merged(seen) for seen in (before, after)]
    told = compare_runs(*(Run(None, {test: JudgedTest(each)}) for each in merged))
    by_op = told.by_op[0].sentence if told.by_op else None
    # With its own setting: one that differs is an obstacle, and told in the words of this command.
    stored = TestBaseline(Accepted(""), baselines_of(list(before)), merged[1].setting)
    exact = {verdict.metric.name: verdict for verdict in judge_test(merged[1], stored)}
    gated = [pair for pair in told.pairs if _is_gated(pair.metric, merged)]
    judged = [_paired(pair, before, after, exact) for pair in gated]
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
    return any(each.metrics[name].gated for each in sides if name in each.metrics)


def _paired(pair: Pair, before: Seen, after: Seen, exact: Mapping[str, Verdict]) -> Paired:
    name, then, now = pair.metric, pair.before, pair.after
    if then is None or now is None:
        return Paired(_one_sided(then, now))
    missing = sum(name not in each.metrics for each in (*before, *after))
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
    observed = (each.metrics[name] for each in seen if name in each.metrics)
    return tuple(representative(each.metric, each.samples) for each in observed if each.samples)


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
    values = [sample for each in before for sample in each.metrics[name].samples]
    metric = before[0].metrics[name].metric
    if metric.better is not Better.EQUAL or min(values) == max(values):
        return None
    detail = f"{min(values)!r} to {max(values)!r}"
    return Verdict(metric, Outcome.TOO_NOISY, Reason.SAMPLES_DIFFER, detail, centre=values[0])


def _merged(seen: Seen) -> Observation:
    """Return what a side measured in all rounds as one observation."""
    last = seen[-1]
    metrics = {name: each for observed in seen for name, each in observed.metrics.items()}
    joined = {
        name: replace(
            each,
            samples=tuple(s for o in seen if name in o.metrics for s in o.metrics[name].samples),
        )
        for name, each in metrics.items()
    }
    return replace(last, metrics=joined, ops=next((o.ops for o in reversed(seen) if o.ops), None))


def movement(seen: Mapping[str, Seen]) -> tuple[float, str, str] | None:
    """Return how far the same code moved between rounds at most, as a fraction: test and metric."""
    found = [
        (max(values) / min(values) - 1, test, name)
        for test, observations in seen.items()
        for name, each in observations[0].metrics.items()
        if each.metric.compared_by_ratio and each.gated
        if all(name in observed.metrics for observed in observations)
        for values in [[median(observed.metrics[name].samples) for observed in observations]]
    ]
    return max(found, default=None)
