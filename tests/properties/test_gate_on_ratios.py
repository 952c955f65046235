"""What holds for every time and throughput, whatever their values."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import MetricBaseline, Session
from pytest_ttnn_perf.core.metric import Better, Metric, median
from pytest_ttnn_perf.core.observation import NO_LIMITS, MetricObservation, Outcome
from pytest_ttnn_perf.gate.ratios import POLICY, Band, band_of, judge_ratio, suite_of
from tests.properties.strategies import (
    MANY,
    SOME,
    TIMINGS,
    Case,
    baselines,
    between,
    cases,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random


@MANY
@given(cases(), between(-6, 6).map(lambda exponent: 10**exponent))
def test_scaling_everything_by_one_factor_changes_no_verdict(case: Case, factor: float) -> None:
    before = case.judged()
    assume(_clear_of_every_edge(case))
    after = _scaled(case, factor).judged()
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
    assert verdict.limit is not None
    change = math.log1p(verdict.change)
    tolerance = case.run.limits.tolerance or 0.0
    first = abs(math.log(median(case.run.samples)) - _sign(case.run.metric) * band.centre)
    edges = (
        abs(change) - math.log1p(verdict.limit),
        first - POLICY.screen * band.limit,
        first - POLICY.screen * band.gain,
        band.noise - math.log1p(POLICY.too_noisy),
        band.noise - math.log1p(tolerance),
    )
    return min(map(abs, edges)) > 1e-9


def _band(case: Case) -> Band:
    samples = len(case.run.samples)
    return band_of(case.baseline, case.run.limits, samples=samples)


def _has_room(case: Case) -> bool:
    """Tell whether a value can lie on either side of the limit: with a limit of 0 none can."""
    return _band(case).limit > 0


def _worse(case: Case, fraction: float) -> float:
    """Return the value that is worse than the centre by this fraction of what may get worse.

    A negative fraction is one of what may get better.
    """
    band = _band(case)
    reach = fraction * (band.limit if fraction > 0 else band.gain)
    return math.exp(_sign(case.run.metric) * (band.centre + reach))


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
    return math.exp(_sign(case.run.metric) * (band.centre + place * max(band.limit, 1e-3)))


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
    parts = (POLICY.agree, POLICY.screen)
    assume(places[0] > POLICY.screen)
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
@given(st.data(), st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(data: st.DataObject, random: Random) -> None:
    baseline = data.draw(baselines(data.draw(TIMINGS), spread=0.3))
    sides = []
    for side in (baseline.sessions[: baseline.since], baseline.current):
        runs = [list(sessions) for _, sessions in groupby(side, key=lambda session: session.run)]
        random.shuffle(runs)
        sides += [session for run in runs for session in run]
    shuffled = replace(baseline, sessions=tuple(sides))
    # But for how much a run is like the one before.
    suites = [suite_of([e])._replace(follows=0.3) for e in (baseline, shuffled)]
    before, after = (
        band_of(each, NO_LIMITS, suite=suite)
        for each, suite in zip((baseline, shuffled), suites, strict=True)
    )
    assert list(after) == pytest.approx(list(before), rel=1e-9)


def _limits(baseline: MetricBaseline, of_suite: MetricBaseline) -> Band:
    suite = suite_of([of_suite])._replace(follows=0.3)
    return band_of(baseline, NO_LIMITS, suite=suite)


@SOME
@given(baselines(Metric("m", "ms"), spread=0.05), between(-3, 3))
def test_one_wild_run_does_not_widen_the_limit_for_good(
    baseline: MetricBaseline, wild: float
) -> None:
    """A limit with it is no wider than with one that is as far as the furthest of the others."""
    runs = tuple(session._replace(run=f"{k}") for k, session in enumerate(baseline.sessions))
    assume(len(runs) > 4)
    stored = replace(baseline, sessions=runs, since=0)
    far, further = (
        replace(
            stored,
            sessions=(*runs, Session(runs[0].median * math.exp(each), 0.0, 9, "wild")),
        )
        for each in (math.copysign(1, wild), wild + math.copysign(1, wild))
    )
    suite = suite_of([stored])._replace(move=0.0)
    limits = [band_of(e, NO_LIMITS, suite=suite).limit for e in (far, further)]
    assert limits[1] == pytest.approx(limits[0])


@MANY
@given(cases(), between(0.5, 3), st.lists(between(0, 0.49), min_size=1, max_size=3))
def test_more_passes_never_turn_a_clear_one_into_a_failure(
    case: Case, first: float, cleared: list[float]
) -> None:
    case = _with_one_sample(case)
    assume(_has_room(case))
    for passes in ([*cleared], [*cleared, 5.0], [*cleared, 5.0, 5.0]):
        assert _measured(case, [first, *passes], ()).judged().outcome is not Outcome.REGRESSED


@SOME
@given(st.integers(1, 20), st.integers(1, 9), between(1e-3, 1e9))
def test_identical_numbers_never_fail(runs: int, tests: int, value: float) -> None:
    sessions = tuple(Session(value, 0.0, 9, f"{k}") for k in range(runs))
    baseline = MetricBaseline(Metric("m", "ms"), sessions)
    suite = suite_of([baseline] * tests)
    run = MetricObservation(baseline.metric, (value,) * 9)
    verdict = judge_ratio(run, baseline, suite=suite)
    assert (verdict.outcome, verdict.undecided) == (Outcome.WITHIN, False)
