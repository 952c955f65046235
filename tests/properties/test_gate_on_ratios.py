"""What holds for every time and throughput, whatever their values."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_ttnn_perf.gate.policy import DEFAULT_POLICY
from pytest_ttnn_perf.model.baseline import MetricBaseline, Session
from pytest_ttnn_perf.model.metric import Better, Metric, Source
from pytest_ttnn_perf.model.observation import MetricObservation
from pytest_ttnn_perf.model.verdict import Outcome, Verdict
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


@SOME
@given(st.data())
def test_a_baseline_judged_against_its_own_last_session_is_within(data: st.DataObject) -> None:
    metric = data.draw(TIMINGS)
    baseline = data.draw(baselines(metric, spread=QUIET))
    last = baseline.sessions[-1]
    samples = (last.median - last.mad, last.median, last.median + last.mad)
    assert judged(MetricObservation(metric, samples), baseline).outcome is Outcome.WITHIN


@pytest.mark.parametrize("median_ns", [10, 999, 4_000])
def test_a_short_device_time_is_not_called_noisy(median_ns: int) -> None:
    # The absolute floor of 1 us is more than 20 % of these: a wide limit, but no noise.
    metric = Metric("kernel_time", "ns", source=Source.DEVICE)
    baseline = MetricBaseline(metric, (Session(median_ns, 0, 10),) * 5)
    assert judged(MetricObservation(metric, (median_ns,)), baseline).outcome is Outcome.WITHIN


@SOME
@given(st.data())
def test_a_run_of_the_sessions_medians_is_neither_worse_nor_better(data: st.DataObject) -> None:
    metric = data.draw(TIMINGS)
    # Up to 1.8 times apart; the run then is the centre but for the two means of an even count
    # (of values here, of logarithms there). A noisy baseline is called so, and nothing else.
    baseline = data.draw(baselines(metric, spread=0.3))
    samples = tuple(session.median for session in baseline.current)
    verdict = judged(MetricObservation(metric, samples), baseline)
    assert verdict.outcome in {Outcome.WITHIN, Outcome.TOO_NOISY}


@MANY
@given(cases(), between(-6, 6).map(lambda exponent: 10**exponent))
def test_scaling_everything_by_one_factor_changes_no_verdict(case: Case, factor: float) -> None:
    before = case.judged()
    assume(_clear_of_every_edge(before))
    after = _scaled(case, factor).judged(
        policy=replace(DEFAULT_POLICY, device_floor_ns=DEFAULT_POLICY.device_floor_ns * factor)
    )
    assert after.outcome is before.outcome
    assert after.change == pytest.approx(before.change, rel=1e-9, abs=1e-9)
    assert after.limit == pytest.approx(before.limit, rel=1e-9)


def _clear_of_every_edge(verdict: Verdict) -> bool:
    """Tell whether rounding alone cannot tip the outcome: logarithms carry errors of about 1e-14.

    Where a value equals its limit, or a limit the bound of TOO_NOISY, to the last digits, scaling
    may round to either side; that is arithmetic and no property of the gate.
    """
    assert verdict.change is not None
    assert verdict.limit is not None
    change, limit = math.log1p(verdict.change), math.log1p(verdict.limit)
    bound = math.log1p(DEFAULT_POLICY.too_noisy)
    return abs(abs(change) - limit) > 1e-9 and abs(limit - bound) > 1e-9


def _has_room(case: Case) -> bool:
    """Tell whether a value can lie on either side of the limit: with a limit of 0 none can."""
    _, limit = case.reach
    return limit > 0


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
    value = case.worse(towards * beyond)
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
    passes = [(case.worse(towards * each),) for each in beyond[1:]]
    position = data.draw(st.integers(0, len(passes)))
    passes.insert(position, (case.worse(within),))
    settled = case.with_samples(case.worse(towards * beyond[0])).with_confirmations(*passes)
    assert settled.judged().outcome in {Outcome.WITHIN, Outcome.TOO_NOISY}


@pytest.mark.parametrize(
    ("outcome", "towards"), [(Outcome.REGRESSED, 1), (Outcome.IMPROVED, -1)], ids=["worse", "gain"]
)
@SOME
@given(case=cases(), beyond=st.lists(between(1.01, 3), min_size=2, max_size=5))
def test_confirmations_that_all_lie_beyond_the_limit_keep_the_verdict(
    outcome: Outcome, towards: int, case: Case, beyond: list[float]
) -> None:
    assume(_has_room(case))
    first, *passes = [case.worse(towards * each) for each in beyond]
    confirmed = case.with_samples(first).with_confirmations(*((each,) for each in passes))
    assert confirmed.judged().outcome is outcome


@pytest.mark.parametrize("towards", [1, -1], ids=["suspect", "gain"])
@SOME
@given(case=cases(), beyond=between(1.01, 3), contradiction=between(1.01, 3))
def test_measurements_beyond_opposite_limits_are_neither_regressed_nor_improved(
    towards: int, case: Case, beyond: float, contradiction: float
) -> None:
    assume(_has_room(case))
    run = case.with_samples(case.worse(towards * beyond))
    run = run.with_confirmations((case.worse(-towards * contradiction),))
    assert run.judged().outcome not in {Outcome.REGRESSED, Outcome.IMPROVED}
