"""What holds for every time and throughput, whatever their values."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.gate.ratios import Band, band_of
from pytest_ttnn_perf.records.baseline import MetricBaseline, Session
from pytest_ttnn_perf.records.metric import Better, Metric, Source
from pytest_ttnn_perf.records.observation import NO_LIMITS, Limits, MetricObservation
from pytest_ttnn_perf.records.verdict import Outcome
from tests.properties.strategies import (
    MANY,
    SOME,
    TIMINGS,
    Case,
    baselines,
    between,
    cases,
    judged,
)

#: Sessions this close together differ by less than the floor of 2 % from any centre of theirs.
QUIET = 0.009
#: And these by so much less than 4 % that the furthest of them, and some more, is no change.
TAME = 0.015
#: Nothing here depends on how long a time is, but for this floor.
NO_DEVICE_FLOOR = replace(DEFAULT_POLICY, device_floor_ns=0.0)


@SOME
@given(st.data())
def test_a_baseline_judged_against_its_own_last_session_is_within(data: st.DataObject) -> None:
    metric = data.draw(TIMINGS)
    baseline = data.draw(baselines(metric, spread=QUIET))
    last = baseline.sessions[-1]
    samples = (last.median - last.mad, last.median, last.median + last.mad)
    assert judged(MetricObservation(metric, samples), baseline).outcome is Outcome.WITHIN


@SOME
@given(st.data())
def test_what_was_measured_since_the_last_accept_is_neither_worse_nor_better(
    data: st.DataObject,
) -> None:
    metric = data.draw(TIMINGS)
    baseline = data.draw(baselines(metric, spread=TAME))
    for session in baseline.current:
        verdict = judged(MetricObservation(metric, (session.median,)), baseline)
        assert verdict.outcome in {Outcome.WITHIN, Outcome.TOO_NOISY}


@pytest.mark.parametrize("median_ns", [10, 999, 4_000])
def test_a_short_device_time_is_not_called_noisy(median_ns: int) -> None:
    # The absolute floor of 1 us is more than 20 % of these: a wide limit, but no noise.
    metric = Metric("kernel_time", "ns", source=Source.DEVICE)
    baseline = MetricBaseline(metric, (Session(median_ns, 0, 10),) * 5)
    assert judged(MetricObservation(metric, (median_ns,)), baseline).outcome is Outcome.WITHIN


@MANY
@given(cases(), between(-6, 6).map(lambda exponent: 10**exponent))
def test_scaling_everything_by_one_factor_changes_no_verdict(case: Case, factor: float) -> None:
    before = case.judged()
    assume(_clear_of_every_edge(case))
    after = _scaled(case, factor).judged(
        policy=replace(DEFAULT_POLICY, device_floor_ns=DEFAULT_POLICY.device_floor_ns * factor)
    )
    assert after.outcome is before.outcome
    assert after.change == pytest.approx(before.change, rel=1e-9, abs=1e-9)
    assert after.limit == pytest.approx(before.limit, rel=1e-9)


def _clear_of_every_edge(case: Case) -> bool:
    """Tell whether rounding alone cannot tip the outcome: logarithms carry errors of about 1e-14.

    Where a value equals a limit, or the noise its bound, to the last digits, scaling may round to
    either side; that is arithmetic and no property of the gate.
    """
    verdict, band = case.judged(), _band(case)
    assert verdict.change is not None
    change = math.log1p(verdict.change)
    tolerance = case.run.limits.tolerance or 0.0
    edges = (
        change - band.limit,
        change + band.gain,
        band.noise - math.log1p(DEFAULT_POLICY.too_noisy),
        band.noise - math.log1p(tolerance),
    )
    return min(map(abs, edges)) > 1e-9


def _band(case: Case) -> Band:
    return band_of(case.baseline, case.run.limits, policy=DEFAULT_POLICY)


def _has_room(case: Case) -> bool:
    """Tell whether a value can lie on either side of the limit: with a limit of 0 none can."""
    return _band(case).limit > 0


def _worse(case: Case, fraction: float) -> float:
    """Return the value that is worse than the centre by this fraction of what may get worse.

    A negative fraction is one of what may get better.
    """
    band = _band(case)
    reach = fraction * (band.limit if fraction > 0 else band.gain)
    return math.exp(band.centre + _sign(case.run.metric) * reach)


def _sign(metric: Metric) -> int:
    return -1 if metric.better is Better.HIGHER else 1


def _scaled(case: Case, factor: float) -> Case:
    sessions = tuple(Session(m * factor, s * factor, n) for m, s, n in case.baseline.sessions)
    scaled = case.with_samples(*(sample * factor for sample in case.run.samples))
    return replace(scaled, baseline=replace(case.baseline, sessions=sessions))


@pytest.mark.parametrize(
    ("outcome", "towards"), [(Outcome.REGRESSED, 1), (Outcome.IMPROVED, -1)], ids=["worse", "gain"]
)
@SOME
@given(case=cases(), beyond=between(1.01, 5), data=st.data())
def test_moving_further_the_same_way_keeps_the_verdict(
    outcome: Outcome, towards: int, case: Case, beyond: float, data: st.DataObject
) -> None:
    assume(_has_room(case))
    value = _worse(case, towards * beyond)
    first = case.with_samples(value, value, value).with_confirmations((value, value))
    assert first.judged().outcome is outcome
    # Every sample by a factor of its own: the shape of the samples may change as well.
    slower = towards if case.run.metric.better is Better.LOWER else -towards
    factors = [math.exp(slower * data.draw(between(0, 2))) for _ in range(5)]
    moved = first.with_samples(*(value * factor for factor in factors[:3]))
    moved = moved.with_confirmations(tuple(value * factor for factor in factors[3:]))
    assert moved.judged().outcome is outcome


@pytest.mark.parametrize("towards", [1, -1], ids=["suspect", "gain"])
@SOME
@given(
    case=cases(),
    beyond=st.lists(between(1.01, 3), min_size=1, max_size=4),
    within=between(-0.99, 0.99),
    data=st.data(),
)
def test_one_confirmation_within_the_limit_clears_a_suspect_and_doubts_a_gain(
    towards: int, case: Case, beyond: list[float], within: float, data: st.DataObject
) -> None:
    assume(_has_room(case))
    passes = [(_worse(case, towards * each),) for each in beyond[1:]]
    position = data.draw(st.integers(0, len(passes)))
    passes.insert(position, (_worse(case, within),))
    settled = case.with_samples(_worse(case, towards * beyond[0])).with_confirmations(*passes)
    assert settled.judged().outcome in {Outcome.WITHIN, Outcome.TOO_NOISY}


@pytest.mark.parametrize("towards", [1, -1], ids=["suspect", "gain"])
@SOME
@given(case=cases(), beyond=between(1.01, 3), contradiction=between(1.01, 3))
def test_measurements_beyond_opposite_limits_are_neither_regressed_nor_improved(
    towards: int, case: Case, beyond: float, contradiction: float
) -> None:
    assume(_has_room(case))
    run = case.with_samples(_worse(case, towards * beyond))
    run = run.with_confirmations((_worse(case, -towards * contradiction),))
    assert run.judged().outcome not in {Outcome.REGRESSED, Outcome.IMPROVED}


def _residuals(baseline: MetricBaseline) -> list[float]:
    """Return how much worse each session is than the middle of its side of the last accept."""
    logs = [math.log(session.median) for session in baseline.sessions]
    sides = (logs[: baseline.since], logs[baseline.since :])
    sign = _sign(baseline.metric)
    return [sign * (value - median(side)) for side in sides for value in side]


@MANY
@given(st.data())
def test_no_limit_is_narrower_than_the_furthest_sessions_and_a_tenth(data: st.DataObject) -> None:
    baseline = data.draw(baselines(data.draw(TIMINGS), spread=0.3))
    cap = data.draw(st.none() | st.floats(1e-6, 0.5))
    worst = sorted(_residuals(baseline), reverse=True)
    best = [-residual for residual in reversed(worst)]
    band = band_of(baseline, Limits(max_regression=cap), policy=DEFAULT_POLICY)
    capped = math.inf if cap is None else math.log1p(cap)
    # The furthest up to 4 %, the second up to 20 %, from where on it is a matter of noise alone.
    for place, bound in enumerate((math.log(1.04), math.log(1.2))):
        if place < len(worst):
            assert band.limit >= min(1.1 * worst[place], bound, capped) - 1e-12
            assert band.gain >= min(1.1 * best[place], bound) - 1e-12


@pytest.mark.parametrize("towards", [1, -1], ids=["worse", "better"])
@MANY
@given(data=st.data())
def test_a_furthest_session_that_lies_further_out_narrows_no_limit(
    towards: int, data: st.DataObject
) -> None:
    metric = data.draw(TIMINGS)
    baseline = data.draw(baselines(metric, spread=0.3))
    further = math.exp(towards * _sign(metric) * data.draw(between(0, 0.5)))
    residuals = _residuals(baseline)
    furthest = max(range(len(residuals)), key=lambda index: towards * residuals[index])
    # Not one more session: each one also makes the others count for more.
    moved = list(baseline.sessions)
    was = moved[furthest]
    moved[furthest] = Session(was.median * further, was.mad * further, was.n)
    before = band_of(baseline, NO_LIMITS, policy=NO_DEVICE_FLOOR)
    after = band_of(replace(baseline, sessions=tuple(moved)), NO_LIMITS, policy=NO_DEVICE_FLOOR)
    assert after.limit >= before.limit - 1e-12
    assert after.gain >= before.gain - 1e-12
    assert after.noise >= before.noise - 1e-12


@SOME
@given(st.data())
def test_limits_for_worse_and_better_change_places_when_higher_becomes_better(
    data: st.DataObject,
) -> None:
    metric = data.draw(TIMINGS)
    baseline = data.draw(baselines(metric, spread=0.3))
    other = Better.LOWER if metric.better is Better.HIGHER else Better.HIGHER
    turned = replace(baseline, metric=replace(metric, better=other))
    band = band_of(baseline, NO_LIMITS, policy=DEFAULT_POLICY)
    assert band_of(turned, NO_LIMITS, policy=DEFAULT_POLICY) == band._replace(
        limit=band.gain, gain=band.limit
    )
