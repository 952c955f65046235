"""Judge one test's observation against its baseline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import MetricBaseline, Session
from pytest_ttnn_perf.core.codec import LARGEST
from pytest_ttnn_perf.core.hardware import first_difference
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source, median, representative
from pytest_ttnn_perf.core.observation import (
    NO_LIMITS,
    NOT_TIMED,
    End,
    EndKind,
    Outcome,
    Reason,
    Requester,
    Verdict,
)
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.gate.ratios import POLICY, centre_of, judge_ratio, mad

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from pytest_ttnn_perf.core.baseline import TestBaseline
    from pytest_ttnn_perf.core.observation import MetricObservation, Observation
    from pytest_ttnn_perf.gate.ratios import Suite

    #: What the times of each source show together.
    Suites: TypeAlias = Mapping[Source, Suite]


#: Each metric is judged by its own baseline alone.
NO_SUITES: Final[Suites] = {}


def with_parts_explaining(
    verdicts: Iterable[Verdict], observation: Observation
) -> tuple[Verdict, ...]:
    """Turn verdicts on changed parts of a total into explanations of it.

    A total that was not compared with a baseline explains nothing away, and no total does so for a
    part that the author of the test gave a limit of its own, or asked to be gated.
    """
    judged = tuple(verdicts)
    compared = {
        verdict.metric.name
        for verdict in judged
        if verdict.centre is not None and verdict.outcome is not Outcome.NO_DATA
    }

    def explaining(verdict: Verdict) -> Verdict:
        total = next((name for name in verdict.metric.totals if name in compared), None)
        if total is None or verdict.outcome is Outcome.WITHIN:
            return verdict
        observed = observation.metrics.get(verdict.metric.name)
        if observed is not None and replace(observed.limits, target=None) != NO_LIMITS:
            return verdict
        return replace(
            verdict,
            outcome=Outcome.WITHIN,
            reason=Reason.EXPLAINS,
            detail=total,
            limit=None,
            provisional=False,
        )

    return tuple(map(explaining, judged))


#: Ops that differ by more than this share may be those of a capture that was cut.
_OPS_SHARE: Final = 0.2


def doubt_gains(verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
    """Mark gains where other ops ran: the capture may be cut."""
    for verdict in verdicts:
        now, then = verdict.observed, verdict.centre
        if now and then and verdict.metric.counts_ops and abs(now - then) > _OPS_SHARE * then:
            changed = f"ops changed: {then:g} → {now:g}"
            return tuple(
                replace(each, reason=Reason.OPS_CHANGED, detail=changed)
                if each.outcome is Outcome.IMPROVED and each.reason is None
                else each
                for each in verdicts
            )
    return verdicts


#: Stands for the metric in the verdict of a test that has none.
NO_METRIC: Final = Metric("-", unit="")


def judge_test(
    observation: Observation,
    baseline: TestBaseline | None,
    *,
    other_keys: tuple[str, ...] = (),
    suites: Suites = NO_SUITES,
) -> tuple[Verdict, ...]:
    """Judge every gated metric of a test, and of its baseline.

    Args:
        observation: The test as it was recorded.
        baseline: Its baseline on the same hardware key, if there is one.
        other_keys: The other hardware keys that have a baseline of it.
        suites: What the baselines of the hardware key show together, by source.
    """
    ended = observation.ended
    match ended:
        case End(EndKind.LOST, why):
            return (_no_data(NO_METRIC, Reason.LOST, why),)
        case End(EndKind.OUT_OF_MEMORY, why):
            return _out_of_memory(why, baseline)
        case End(EndKind.RAISED):
            broken = (
                _unusable(observed) or _broken_bound(observed)
                for observed in observation.metrics.values()
            )
            limits = [v for v in broken if v and v.reason is Reason.ABSOLUTE_LIMIT]
            return (_no_data(NO_METRIC, Reason.RAISED, ended.brief), *limits)
    obstacle = _obstacle(observation, baseline, other_keys)
    stored = baseline.metrics if baseline else {}
    stored = {name: metric for name, metric in stored.items() if not metric.metric.only_recorded}
    verdicts = [
        _judge_metric(observed, stored.get(name), obstacle, suites)
        if not observed.confirmations
        else _judge_again(observed, stored.get(name), obstacle, suites, ended)
        for name, observed in observation.metrics.items()
        # What has a baseline is gated: to be only recorded from now on, it must leave the file.
        # What says nothing of the test alone is never gated, whatever an older file has.
        if (observed.gated or name in stored) and not observed.metric.only_recorded
    ]
    verdicts += [
        verdict
        for name, metric in stored.items()
        if name not in observation.metrics and metric.metric.source not in observation.left_out
        if (verdict := _absent(metric, observation)) is not None
    ]
    if not verdicts and not observation.metrics:
        return (_no_data(NO_METRIC, Reason.NOTHING_RECORDED),)
    # Its author has not asked: what a test of another project does not gate, it cannot pass.
    if not verdicts and observation.asked is Requester.PROJECT and not observation.left_out:
        timed = all(m.why_ungated != NOT_TIMED for m in observation.metrics.values())
        reason = Reason.NOTHING_GATED if timed else Reason.NOTHING_TIMED
        return (_no_data(NO_METRIC, reason, _ungated(observation)),)
    return with_parts_explaining(verdicts, observation)


def _ungated(observation: Observation) -> str:
    metrics = observation.metrics
    whys = dict.fromkeys(m.why_ungated or "recorded only" for m in metrics.values())
    return f"{counted(len(metrics), 'number')} is gated: {'; '.join(whys)}"


def _out_of_memory(why: str, baseline: TestBaseline | None) -> tuple[Verdict, ...]:
    # A point of a sweep that does not fit is worse only where the baseline has numbers.
    stored = list(baseline.metrics.values()) if baseline else []
    if not stored:
        return ()
    first = next((each for each in stored if each.metric.compared_by_ratio), stored[0])
    centre = median([session.median for session in first.current])
    reason = Reason.OUT_OF_MEMORY
    return (Verdict(first.metric, Outcome.REGRESSED, reason=reason, detail=why, centre=centre),)


def _absent(baseline: MetricBaseline, observation: Observation) -> Verdict | None:
    """Judge a metric that only the baseline has.

    None for a part of a total that has no data itself: that says it for its parts.
    """
    metric = baseline.metric
    whole = next(filter(None, map(observation.metrics.get, metric.totals)), None)
    if whole is not None and _unusable(whole):
        return None
    if not metric.is_part_of_kernel_time or whole is None:
        return _no_data(metric, Reason.NOT_RECORDED)
    other = _metric_obstacle(whole.metric, metric)  # another source has no categories
    if other is not None:
        return other
    centre = median([session.median for session in baseline.current])
    return Verdict(metric, Outcome.IMPROVED, reason=Reason.GONE, observed=0.0, centre=centre)


def session_of(observed: MetricObservation, samples: tuple[float, ...], run: str = "") -> Session:
    """Return samples as the session that is stored."""
    centre = representative(observed.metric, samples)
    spread = mad(samples, centre)
    if observed.metric.compared_by_ratio:
        # Digits far below any limit would only make the stored file's diffs longer.
        centre, spread = float(f"{centre:.7g}"), float(f"{spread:.7g}")
    return Session(centre, min(spread, LARGEST), len(samples), run)


def _value_to_store(observed: MetricObservation) -> float:
    """Return what becomes the centre of a new baseline."""
    if not observed.confirmations:
        return representative(observed.metric, observed.samples)
    measured = (observed.samples, *observed.confirmations)
    sessions = tuple(session_of(observed, samples) for samples in measured)
    return centre_of(MetricBaseline(observed.metric, sessions))


def _obstacle(
    observation: Observation, baseline: TestBaseline | None, other_keys: tuple[str, ...]
) -> Verdict | None:
    """Return the verdict on a test that cannot be compared."""
    if baseline is None and other_keys:
        keys = ", ".join(other_keys)
        return Verdict(NO_METRIC, Outcome.NOT_COMPARABLE, Reason.OTHER_KEY, keys)
    if baseline is None:
        return Verdict(NO_METRIC, Outcome.NO_BASELINE, Reason.NEW_TEST)
    difference = first_difference(observation.setting, baseline.configuration)
    if difference is None:
        return None
    name, now, then = difference
    detail = f"{name} is {now!r}, in the baseline {then!r}"
    return Verdict(NO_METRIC, Outcome.NOT_COMPARABLE, Reason.OTHER_CONFIGURATION, detail)


def _judge_metric(
    observed: MetricObservation,
    baseline: MetricBaseline | None,
    obstacle: Verdict | None,
    suites: Suites,
) -> Verdict:
    # Unusable samples, broken absolute limits and unsteady values fail whatever is stored.
    verdict = _unusable(observed) or _broken_bound(observed) or _unsteady(observed)
    if verdict:
        return verdict
    if obstacle is None and baseline is not None:
        obstacle = _metric_obstacle(observed.metric, baseline.metric)
    if obstacle or baseline is None:
        return replace(
            obstacle or Verdict(NO_METRIC, Outcome.NO_BASELINE, Reason.NEW_METRIC),
            metric=observed.metric,
            observed=_value_to_store(observed),
            samples=len(observed.samples),
        )
    if observed.metric.better is Better.EQUAL:
        return _judge_equal(observed, baseline)
    if observed.metric.compared_by_ratio:
        suite = suites.get(observed.metric.source)
        verdict = judge_ratio(observed, baseline, suite=suite)
        return verdict if observed.rounds is None else _by_rounds(verdict, observed.rounds)
    return _judge_difference(observed, baseline)


def _by_rounds(verdict: Verdict, rounds: Verdict) -> Verdict:
    """Return the verdict that rounds against the baseline's commit decide.

    Both versions were measured under the same weather, so history has no say. Where rounds are
    undecided, a regression by history stands, and what is within its limit is no pass.
    """
    if rounds.reason is not None:
        if verdict.outcome is Outcome.REGRESSED:
            return replace(verdict, detail=rounds.detail)
        return replace(
            verdict,
            outcome=Outcome.TOO_NOISY,
            reason=Reason.UNDECIDED,
            detail=rounds.detail,
            provisional=False,
        )
    regressed = rounds.outcome is Outcome.REGRESSED
    return replace(
        verdict,
        outcome=Outcome.REGRESSED if regressed else Outcome.WITHIN,
        detail=rounds.detail,
        observed=rounds.observed,
        centre=rounds.centre,
        change=rounds.change,
        limit=rounds.limit,
        machine=None,
        provisional=False,
        undecided=False,
    )


def _metric_obstacle(metric: Metric, stored: Metric) -> Verdict | None:
    part = metric.differs_from(stored)
    if part:
        now, then = metric.part(part), stored.part(part)
        detail = f"{part} is {now!r}, in the baseline {then!r}"
        return Verdict(stored, Outcome.NOT_COMPARABLE, Reason.OTHER_DEFINITION, detail)
    if metric.source is not stored.source:
        detail = f"source is {metric.source.value}, in the baseline {stored.source.value}"
        return Verdict(stored, Outcome.NOT_COMPARABLE, Reason.OTHER_SOURCE, detail)
    return None


def _unusable(observed: MetricObservation) -> Verdict | None:
    metric, samples = observed.metric, observed.samples
    reason = _flaw(metric, samples)
    if reason is None:
        return None
    least = 0.0 if reason is Reason.NOT_POSITIVE else -LARGEST
    beyond = (n for n, sample in enumerate(samples, 1) if not least < sample <= LARGEST)
    first = next(beyond, None)
    detail = observed.note or (first and f"sample {first} of {len(samples)}")
    return _no_data(metric, reason, detail or None, samples=len(samples))


def _judge_again(
    observed: MetricObservation,
    baseline: MetricBaseline | None,
    obstacle: Verdict | None,
    suites: Suites,
    unconfirmed: End | None,
) -> Verdict:
    """Judge a metric that was measured again, perhaps in vain.

    It passes only if that was within its limits at first, and with each pass that did not fail.
    """
    flaws = [_flaw(observed.metric, samples) for samples in observed.confirmations]
    number = next((number for number, flaw in enumerate(flaws) if flaw), None)
    if number is None:
        return _judge_metric(observed, baseline, obstacle, suites)
    flaw = flaws[number]
    flawed = f"confirm pass {number + 1}: {flaw.value if flaw else ''}"
    why = unconfirmed.text if unconfirmed else flawed
    known = replace(observed, confirmations=observed.confirmations[:number])
    once, so_far = (
        _judge_metric(seen, baseline, obstacle, suites)
        for seen in (replace(observed, confirmations=()), known)
    )
    if once.outcome is so_far.outcome is Outcome.WITHIN:
        return once  # near its limit, and no further
    seen = so_far if once.outcome is Outcome.WITHIN else once
    return replace(seen, outcome=Outcome.NO_DATA, reason=Reason.NOT_CONFIRMED, detail=why)


def _flaw(metric: Metric, samples: Sequence[float]) -> Reason | None:
    if not samples:
        return Reason.NO_SAMPLES
    least = min(samples)
    # Parts of a sum that is a number are numbers: NaN and infinities show in it.
    if not (-LARGEST <= sum(samples, 0.0) <= LARGEST and least >= -LARGEST):
        return Reason.NOT_FINITE
    return Reason.NOT_POSITIVE if least <= 0 and metric.compared_by_ratio else None


def _broken_bound(observed: MetricObservation) -> Verdict | None:
    limits = observed.limits
    if limits.at_least is None and limits.at_most is None:
        return None  # for most, and their samples are not looked at
    value = representative(observed.metric, observed.samples)
    if limits.at_least is not None and value < limits.at_least:
        bound = limits.at_least
    elif limits.at_most is not None and value > limits.at_most:
        bound = limits.at_most
    else:
        return None
    return Verdict(
        observed.metric,
        Outcome.REGRESSED,
        Reason.ABSOLUTE_LIMIT,
        observed.note,
        value,
        samples=len(observed.samples),
        bound=bound,
    )


def _no_data(
    metric: Metric, reason: Reason, detail: str | None = None, *, samples: int = 0
) -> Verdict:
    return Verdict(metric, Outcome.NO_DATA, reason=reason, detail=detail, samples=samples)


# Counts, bytes, accuracies and values that must not change are compared by difference.


def _judge_difference(observed: MetricObservation, baseline: MetricBaseline) -> Verdict:
    metric, tolerance = observed.metric, observed.limits.tolerance
    value = representative(metric, observed.samples)
    medians = tuple(session.median for session in baseline.current)
    centre, worst = median(medians), None
    if metric.kind is Kind.ACCURACY:
        gain = POLICY.accuracy_drop * max(1.0, abs(centre)) if tolerance is None else tolerance
        worst = representative(baseline.metric, medians)
    else:
        usual = POLICY.bytes_tolerance if metric.kind is Kind.BYTES else 0.0
        share = usual if tolerance is None else tolerance
        gain = share * abs(centre)
    cap = observed.limits.max_regression
    # A cap narrows what may get worse, never what counts as better.
    allowed = gain if cap is None else min(gain, cap * abs(centre))
    worse = centre - value if metric.better is Better.HIGHER else value - centre
    if worse > allowed:
        outcome = Outcome.REGRESSED
    elif worse < -gain:
        outcome = Outcome.IMPROVED
    else:
        outcome = Outcome.WITHIN
    return Verdict(
        metric=metric,
        outcome=outcome,
        observed=value,
        centre=centre,
        change=_fraction(worse, centre),
        limit=_fraction(allowed, centre),
        # These kinds do not vary between sessions: one session is as good as twenty.
        provisional=False,
        samples=len(observed.samples),
        sessions=len(baseline.current),
        worst=None if worst == centre else worst,
    )


def _judge_equal(observed: MetricObservation, baseline: MetricBaseline) -> Verdict:
    value, expected = observed.samples[0], baseline.sessions[-1].median
    same = value == expected
    return Verdict(
        observed.metric,
        Outcome.WITHIN if same else Outcome.REGRESSED,
        reason=None if same else Reason.VALUE_CHANGED,
        observed=value,
        centre=expected,
        change=0.0 if same else None,
        limit=0.0 if same else None,
        samples=len(observed.samples),
        sessions=len(baseline.current),
    )


def _unsteady(observed: MetricObservation) -> Verdict | None:
    samples = observed.samples
    lowest, highest = min(samples), max(samples)
    if lowest == highest or observed.metric.better is not Better.EQUAL:
        return None
    return Verdict(
        observed.metric,
        Outcome.TOO_NOISY,
        reason=Reason.SAMPLES_DIFFER,
        detail=f"{lowest!r} to {highest!r}",
        observed=samples[0],
        samples=len(samples),
    )


def is_learning(verdict: Verdict) -> bool:
    """Return whether a verdict on few runs is a warning.

    What is assumed of their noise may be too little, but not by so much.
    """
    small = verdict.change is not None and round(verdict.change, 9) < POLICY.too_noisy
    return verdict.provisional and verdict.reason is None and small


def _fraction(part: float, whole: float) -> float | None:
    """Return ``part / whole``, or None if ``whole`` is zero."""
    if part == 0:
        return 0.0
    fraction = part / abs(whole) if whole else math.inf
    return fraction if math.isfinite(fraction) else None
