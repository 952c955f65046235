"""What holds for every time and throughput, whatever their values."""

from __future__ import annotations

import math
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import MetricBaseline, Session
from pytest_ttnn_perf.core.metric import Better, Metric, Source
from pytest_ttnn_perf.core.observation import NO_LIMITS, Limits, MetricObservation, Outcome
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.gate.ratios import Band, band_of
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

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

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
    samples = len(case.run.samples)
    return band_of(case.baseline, case.run.limits, policy=DEFAULT_POLICY, samples=samples)


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
    sessions = tuple(
        Session(m * factor, s * factor, n, run) for m, s, n, run in case.baseline.sessions
    )
    scaled = case.with_samples(*(sample * factor for sample in case.run.samples))
    passes = (tuple(value * factor for value in each) for each in case.run.confirmations)
    scaled = scaled.with_confirmations(*passes, machine=case.run.machine)
    return replace(scaled, baseline=replace(case.baseline, sessions=sessions))


@pytest.mark.parametrize(
    ("outcome", "towards"), [(Outcome.REGRESSED, 1), (Outcome.IMPROVED, -1)], ids=["worse", "gain"]
)
@SOME
@given(case=cases(), beyond=between(1.01, 5), data=st.data())
def test_moving_further_the_same_way_keeps_the_verdict(
    outcome: Outcome, towards: int, case: Case, beyond: float, data: st.DataObject
) -> None:
    case = case.with_samples(*case.run.samples[:1] * 3)  # how many there are widens a limit
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
    within=between(-3, 0.49),
    data=st.data(),
)
def test_one_confirmation_within_half_the_limit_clears_a_suspect_and_doubts_a_gain(
    towards: int, case: Case, beyond: list[float], within: float, data: st.DataObject
) -> None:
    case = _with_one_sample(case)
    assume(_has_room(case))
    passes = [(_worse(case, towards * each),) for each in beyond[1:]]
    position = data.draw(st.integers(0, len(passes)))
    passes.insert(position, (_worse(case, towards * within),))
    settled = case.with_samples(_worse(case, towards * beyond[0])).with_confirmations(*passes)
    verdict = settled.judged()
    assert verdict.outcome is not (Outcome.REGRESSED if towards > 0 else Outcome.IMPROVED)


def _with_one_sample(case: Case) -> Case:
    """Return the case with one sample: how many there are widens a limit."""
    return case.with_samples(case.run.samples[0])


#: From clearly better to clearly worse, in limits; and what a machine may do meanwhile.
PLACES = st.lists(between(-2, 3), min_size=1, max_size=4)
MOVES = st.none() | between(-0.2, 0.5)


@MANY
@given(case=cases(), places=PLACES, slower=between(0, 3), data=st.data())
def test_a_slower_measurement_never_clears_a_regression(
    case: Case, places: list[float], slower: float, data: st.DataObject
) -> None:
    case = _with_one_sample(case)
    moves = tuple(data.draw(MOVES) for _ in places) if len(places) > 1 else ()
    before = _measured(case, places, moves)
    at = data.draw(st.integers(0, len(places) - 1))
    moved = [place + slower * (index == at) for index, place in enumerate(places)]
    if before.judged().outcome is Outcome.REGRESSED:
        assert _measured(case, moved, moves).judged().outcome is Outcome.REGRESSED
    if _measured(case, moved, moves).judged().outcome is Outcome.IMPROVED:
        assert before.judged().outcome is Outcome.IMPROVED


def _measured(case: Case, places: Sequence[float], moves: tuple[float | None, ...]) -> Case:
    first, *again = (_at(case, place) for place in places)
    return case.with_samples(first).with_confirmations(*((each,) for each in again), machine=moves)


def _at(case: Case, place: float) -> float:
    """Return the value that is worse than the centre by this fraction of the limit for worse."""
    band = _band(_with_one_sample(case))
    return math.exp(band.centre + _sign(case.run.metric) * place * max(band.limit, 1e-3))


@MANY
@given(
    case=cases(),
    places=st.lists(between(0.1, 3), min_size=2, max_size=4),
    slower=between(0, 1),
)
def test_a_slow_machine_changes_no_verdict_on_a_suspect_where_it_is_known(
    case: Case, places: list[float], slower: float
) -> None:
    # The parts of the limit at which a measurement clears a suspect are edges, too.
    parts = (DEFAULT_POLICY.agree, DEFAULT_POLICY.screen)
    assume(all(abs(place - part) > 1e-9 for place in places for part in parts))
    case = _with_one_sample(case)
    still = _measured(case, places, ())
    assume(_clear_of_every_edge(still))
    factor = math.exp(_sign(case.run.metric) * slower)
    slowed = still.with_samples(*(value * factor for value in still.run.samples))
    passes = (tuple(value * factor for value in each) for each in still.run.confirmations)
    slowed = slowed.with_confirmations(*passes, machine=(math.expm1(slower),) * len(places))
    before, after = still.judged(), slowed.judged()
    assert after.outcome is before.outcome
    assert after.change == pytest.approx(before.change, rel=1e-6, abs=1e-9)
    assert after.limit == before.limit
    assert after.machine == pytest.approx(math.expm1(slower), abs=1e-9)


@SOME
@given(case=cases(), places=st.lists(between(-4, 3), min_size=1, max_size=3), data=st.data())
def test_what_the_machine_did_excuses_a_test_and_does_no_more(
    case: Case, places: list[float], data: st.DataObject
) -> None:
    """It makes no regression, nor of what was slower a gain that would become the baseline."""
    places = [*places, data.draw(between(-2, 3))]
    moves = tuple(data.draw(MOVES) for _ in places)
    known, unknown = (_measured(case, places, each).judged() for each in (moves, ()))
    if known.outcome in {Outcome.REGRESSED, Outcome.IMPROVED}:
        assert unknown.outcome is not Outcome.WITHIN
    if min(places) >= 0:
        assert known.outcome is not Outcome.IMPROVED


@SOME
@given(st.data())
def test_more_equal_sessions_of_the_same_run_change_neither_centre_nor_limit(
    data: st.DataObject,
) -> None:
    baseline = data.draw(baselines(data.draw(TIMINGS), spread=0.3))
    apart = (each._replace(run=f"run-{k}") for k, each in enumerate(baseline.sessions))
    baseline = replace(baseline, sessions=tuple(apart))
    # As many more of each, so that the spread within sessions is the same on the whole.
    times = data.draw(st.integers(2, 3))
    split = tuple(session for session in baseline.sessions for _ in range(times))
    more = replace(baseline, sessions=split, since=baseline.since * times)
    before, after = (band_of(each, NO_LIMITS, policy=DEFAULT_POLICY) for each in (baseline, more))
    assert after == pytest.approx(before, rel=1e-12)
    assert more.runs == baseline.runs == before.runs


@SOME
@given(st.data(), st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(data: st.DataObject, random: Random) -> None:
    baseline = data.draw(baselines(data.draw(TIMINGS), spread=0.3))
    sides = []
    for side in (baseline.sessions[: baseline.since], baseline.current):
        runs = [list(sessions) for _, sessions in groupby(side, key=lambda session: session.run)]
        random.shuffle(runs)
        sides += [session for run in runs for session in run]
    shuffled = replace(baseline, sessions=tuple(sides))
    before, after = (
        band_of(each, NO_LIMITS, policy=DEFAULT_POLICY) for each in (baseline, shuffled)
    )
    assert after == pytest.approx(before, rel=1e-9)


@SOME
@given(st.data(), st.none() | between(0, 0.5))
def test_no_limit_is_below_the_floor_or_the_least_noise(
    data: st.DataObject, tolerance: float | None
) -> None:
    baseline = data.draw(baselines(data.draw(TIMINGS), spread=0.3))
    band = band_of(baseline, Limits(tolerance=tolerance), policy=DEFAULT_POLICY)
    floor = math.log1p(0.02 if tolerance is None else tolerance)
    assert min(band.limit, band.gain) >= max(floor, 3.4 * 0.003) * (1 - 1e-12)
    assert min(band.limit, band.gain) >= band.noise


def _residuals(baseline: MetricBaseline) -> list[float]:
    """Return how much worse each run is than the middle of its side of the last accept."""
    sign, found = _sign(baseline.metric), []
    for side in (baseline.sessions[: baseline.since], baseline.current):
        runs = groupby(side, key=lambda session: session.run)
        values = [median(math.log(each.median) for each in sessions) for _, sessions in runs]
        found += [sign * (value - median(values)) for value in values]
    return found


@MANY
@given(st.data())
def test_no_limit_is_narrower_than_the_third_furthest_runs_and_a_tenth(
    data: st.DataObject,
) -> None:
    baseline = data.draw(baselines(data.draw(TIMINGS), spread=0.3))
    cap = data.draw(st.none() | st.floats(1e-6, 0.5))
    worst = sorted(_residuals(baseline), reverse=True)
    best = [-residual for residual in reversed(worst)]
    band = band_of(baseline, Limits(max_regression=cap), policy=DEFAULT_POLICY)
    capped = math.inf if cap is None else math.log1p(cap)
    # The second furthest up to 4 %, the third up to 20 %; the furthest may be an accident.
    for place, bound in ((1, math.log(1.04)), (2, math.log(1.2))):
        if place < len(worst):
            assert band.limit >= min(1.1 * worst[place], bound, capped) - 1e-12
            assert band.gain >= min(1.1 * best[place], bound) - 1e-12


@SOME
@given(st.data(), between(0.1, 3))
def test_one_run_however_far_out_widens_a_limit_by_little(data: st.DataObject, far: float) -> None:
    """What it adds to the spread is bounded once there are five runs to show it by."""
    metric = data.draw(TIMINGS)
    quiet = [1e9 * math.exp(data.draw(between(-0.01, 0.01))) for _ in range(9)]
    medians = enumerate([*quiet, 1e9 * math.exp(far)])
    sessions = tuple(Session(m, m * 1e-3, 10, f"run-{k}") for k, m in medians)
    band = band_of(MetricBaseline(metric, sessions), NO_LIMITS, policy=NO_DEVICE_FLOOR)
    assert max(band.limit, band.gain) < math.log(1.12)


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
