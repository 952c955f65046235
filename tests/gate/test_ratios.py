"""Limits worked out by hand from the formulas, and what each outcome takes."""

from __future__ import annotations

from math import exp, expm1, log, log1p, sqrt

import pytest

from pytest_ttnn_perf.core.baseline import MetricBaseline, Session
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import NO_LIMITS, Limits, MetricObservation, Outcome, Verdict
from pytest_ttnn_perf.gate.ratios import (
    POLICY,
    Band,
    Suite,
    band_of,
    centre_of,
    judge_ratio,
    suite_of,
    t_quantile,
)

WALL = Metric("wall_time", "ns")
RATE = Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
KERNEL = Metric("kernel", "s", source=Source.DEVICE)
PRIOR, CHANCE, WEIGHT = 0.015, POLICY.chance, POLICY.weight
#: A suite in which nothing is new in a process, and tests differ by the prior.
LASTING = Suite(PRIOR, PRIOR**2, PRIOR)


def baseline(
    *medians: float, mad: float = 0.0, n: int = 10, since: int = 0, metric: Metric = WALL
) -> MetricBaseline:
    """Return a baseline with one session per run, ``mad`` as a fraction."""
    sessions = (Session(m, m * mad, n, f"run-{k}") for k, m in enumerate(medians))
    return MetricBaseline(metric, tuple(sessions), since)


def around(*residuals: float) -> MetricBaseline:
    """Return a baseline whose runs lie so far from 1e6, in logarithms."""
    return baseline(*(1e6 * exp(residual) for residual in residuals))


def band(
    stored: MetricBaseline, limits: Limits = NO_LIMITS, suite: Suite = LASTING, **more: int
) -> Band:
    return band_of(stored, limits, suite=suite, **more)


def reach(variance: float, runs: int, current: int, sides: int = 1) -> float:
    """Return what noise that lasts for a night reaches."""
    quantile = t_quantile(1 - CHANCE, runs - sides + WEIGHT)
    return quantile * sqrt(variance * (1 + 1.2533**2 / current))


def approx(value: float) -> object:
    return pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("d", [0.0, 0.01, 0.03])
def test_three_runs_add_what_they_show(d: float) -> None:
    found = band(around(-d, 0, d))
    variance = (2 * d**2 + WEIGHT * PRIOR**2) / (2 + WEIGHT)
    assert found.limit == found.gain == found.noise == approx(reach(variance, 3, 3))
    assert (found.centre, found.runs) == (approx(log(1e6)), 3)


def test_one_run_leaves_it_to_the_suite_and_two_runs_add_theirs() -> None:
    assert band(around(0)).noise == approx(reach(PRIOR**2, 1, 1))
    variance = (2 * 0.02**2 + WEIGHT * PRIOR**2) / (1 + WEIGHT)
    assert band(around(-0.02, 0.02)).noise == approx(reach(variance, 2, 2))


def test_what_is_new_in_each_process_averages_out() -> None:
    suite = LASTING._replace(fresh=0.8 * PRIOR**2, share=0.8)
    error = 1.2533**2 / 3
    for passes in (1, 4):
        expected = (
            PRIOR**2 * WEIGHT / (2 + WEIGHT) * (0.2 * (1 + error) + 0.8 * (1 / passes + error))
        )
        found = band(around(0, 0, 0), suite=suite, passes=passes).noise
        assert found == approx(t_quantile(1 - CHANCE, 2 + WEIGHT) * sqrt(expected))
    # A run that is like the one before it lasts longer.
    after = band(around(0, 0, 0), suite=LASTING._replace(follows=0.5))
    assert after.noise == approx(sqrt(1.5) * band(around(0, 0, 0)).noise)


def test_sessions_of_one_run_count_once_and_show_how_far_processes_lie_apart() -> None:
    medians = {"a": (1.01e6, 1.025e6, 1.02e6), "b": (1.04e6,), "c": (1e6, 1.01e6)}
    sessions = tuple(Session(m, 0.0, 10, run) for run in medians for m in medians[run])
    stored = MetricBaseline(WALL, sessions)
    # Runs are at 1.02, 1.04 and the geometric mean of 1 and 1.01.
    variance = (2 * log(1.02 / sqrt(1.01)) ** 2 + WEIGHT * PRIOR**2) / (2 + WEIGHT)
    found = band(stored)
    assert (found.runs, stored.runs, found.centre) == (3, 3, approx(log(1.02e6)))
    assert centre_of(stored) == approx(1.02e6)
    least = 2 * log(1.04 / 1.02) ** 2  # the second furthest is nearer than this
    assert found.limit <= reach(variance + least, 3, 3)
    assert 0 < suite_of([stored]).share < 1


def test_runs_before_an_accept_tell_the_spread_but_not_the_centre() -> None:
    half = log(1.04) / 2  # of each from the middle of the two; one degree of freedom
    variance = (2 * half**2 + WEIGHT * PRIOR**2) / (1 + WEIGHT)
    found = band(baseline(1e6, 1.04e6, 2e6, since=2))
    assert (found.centre, found.limit) == (approx(log(2e6)), approx(reach(variance, 3, 1, 2)))


@pytest.mark.parametrize(("samples", "count"), [(None, 16), (99, 16), (4, 4)])
def test_noise_of_samples_is_the_least_where_a_measurement_has_few(
    samples: int | None, count: int
) -> None:
    within = 1.2533 * 1.4826 * 0.3 / sqrt(count)
    stored = baseline(1e6, mad=0.3, n=16)
    found = band_of(stored, NO_LIMITS, suite=LASTING, samples=samples)
    assert found.noise == approx(reach(within**2, 1, 1))


def test_a_quiet_history_is_held_to_the_floor() -> None:
    quiet = baseline(*[1e6] * 20, metric=KERNEL)
    alone = suite_of([quiet])
    assert band(quiet, suite=alone).limit == approx(log(1.02))
    assert band(quiet, Limits(tolerance=0.05), alone).limit == approx(log(1.05))
    assert band(quiet, Limits(tolerance=0.0), alone).limit == band(quiet, suite=alone).noise
    assert band(quiet, Limits(max_regression=0.01), alone).limit == approx(log(1.01))
    assert band(quiet, Limits(max_regression=0.01), alone).gain == approx(log(1.02))


def test_a_short_op_is_held_to_no_other_floor() -> None:
    """Device clocks count cycles, so that 6 % of 2.2 µs are seen as well as 6 % of a second."""
    metric = Metric("kernel", "ns", source=Source.DEVICE)
    stored = baseline(2200, 2201, 2198, 2203, mad=0.001, metric=metric)
    seen = MetricObservation(metric, (2200 * 1.06,))
    assert judge_ratio(seen, stored).outcome is Outcome.REGRESSED


@pytest.mark.parametrize(
    ("nights", "counts_as"),
    [
        ((0.0, 0.0, 0.01, -0.01, 0.01, -0.01, 0.5), 2.5 * 1.4826 * 0.01),
        ((0.0, 0.0, 0.01, -0.01, 0.01, -0.01, 0.03), 0.03),
        # Most runs are the same: then the second furthest says how far is usual.
        ((0.0, 0.0, 0.0, 0.0, 0.04, 0.5), 0.04),
    ],
)
def test_a_wild_night_widens_no_limit(nights: tuple[float, ...], counts_as: float) -> None:
    tamed = band(around(*nights[:-1], counts_as))
    assert band(around(*nights)).limit == approx(tamed.limit)


def test_the_machine_leaves_the_noise_where_three_tests_tell_of_it() -> None:
    """All tests move together from night to night, which is no noise of theirs."""
    nights = (0.0, 0.08, -0.06, 0.05, 0.0, -0.09)
    tests = [around(*nights) for _ in range(3)]
    suite = suite_of(tests)
    assert list(suite.machine.values()) == pytest.approx(nights)
    quiet, alone = band(tests[0], suite=suite), suite_of(tests[:1])
    assert quiet.limit < band(tests[0], suite=alone).limit / 2
    # A run of one test does not know how its machine is.
    assert band(tests[0], suite=suite._replace(move=None)).limit > 2 * quiet.limit


def test_a_test_with_its_own_nights_does_not_widen_the_limits_of_quiet_ones() -> None:
    quiet = [around(*[0.001 * (-1) ** (k + n) for k in range(10)]) for n in range(9)]
    noisy = around(*[0.2 * (-1) ** (k // 2) for k in range(10)])
    suite, without = (suite_of(each) for each in ([*quiet, noisy], quiet))
    assert suite.variance < 4 * without.variance
    assert band(noisy, suite=suite).limit > 5 * band(quiet[0], suite=suite).limit


def judged(
    stored: MetricBaseline,
    now: float,
    *again: float,
    limits: Limits = NO_LIMITS,
    machine: tuple[float | None, ...] = (),
    suite: Suite = LASTING,
) -> Verdict:
    confirmations = tuple((value,) * 10 for value in again)
    run = MetricObservation(stored.metric, (now,) * 10, confirmations, machine, limits=limits)
    return judge_ratio(run, stored, suite=suite)


def test_noise_beyond_twenty_per_cent_is_told_and_judged_with_all_the_same() -> None:
    noisy = around(0.0, 0.1, -0.1, 0.1, -0.1)
    limit = band(noisy).limit
    assert judged(noisy, 1e6).outcome is Outcome.TOO_NOISY
    assert judged(noisy, 1e6).limit == approx(expm1(limit))
    assert judged(noisy, 1e6, limits=Limits(max_regression=0.05)).outcome is Outcome.TOO_NOISY
    assert judged(noisy, 9e6).outcome is Outcome.REGRESSED
    assert judged(noisy, 1e5).outcome is Outcome.IMPROVED
    # The author's own word that such a change is fine.
    assert judged(noisy, 1e6, limits=Limits(tolerance=2.0)).outcome is Outcome.WITHIN


#: Three equal runs, whose limit is the same for one measurement and for many.
STORED, LIMIT = baseline(*[1e6] * 3), reach(PRIOR**2 * WEIGHT / (2 + WEIGHT), 3, 3)
SUSPECT, GAIN, NEITHER = Outcome.REGRESSED, Outcome.IMPROVED, Outcome.WITHIN


def at(limits: float, metric: Metric = WALL) -> float:
    """Return the value that is worse than the centre by so many limits."""
    return 1e6 * exp((-1 if metric is RATE else 1) * limits * LIMIT)


@pytest.mark.parametrize("metric", [WALL, RATE], ids=["time", "rate"])
@pytest.mark.parametrize(
    ("measured", "machine", "outcome", "change", "moved"),
    [
        ((1.001,), (), SUSPECT, 1.001, None),
        ((0.999,), (), NEITHER, 0.999, None),
        ((-1.001,), (), GAIN, -1.001, None),
        # The first makes a suspect; the others decide.
        ((9.0, 1.4, 0.7), (), SUSPECT, 1.05, None),
        ((9.0, 0.9, 0.9), (), NEITHER, 0.9, None),
        ((0.71, 2.0, 2.0), (), SUSPECT, 2.0, None),
        ((0.69, 2.0, 2.0), (), NEITHER, 0.69, None),
        ((2.0, 1.5, 0.499), (), NEITHER, 0.499, None),
        ((2.0, 1.5, -3.0), (), NEITHER, -1.0, None),
        ((-2.0, -1.4, -0.7), (), GAIN, -1.05, None),
        ((-9.0, -0.9, -0.9), (), NEITHER, -0.9, None),
        ((-2.0, -0.499, -1.5), (), NEITHER, -0.499, None),
        # What the machine did counts for a test and never against it, ...
        ((1.5, 1.5), (0.6, 0.6), NEITHER, 0.9, 0.6),
        ((1.1, 1.9), (0.0, 0.6), SUSPECT, 1.3, 0.6),
        ((2.5, 1.5), (0.0, 1.1), NEITHER, 0.4, 1.1),
        ((0.8, 0.8), (-0.5, -0.5), NEITHER, 0.8, 0.0),
        ((-1.2, -1.2), (0.5, 0.5), GAIN, -1.2, 0.0),
        ((-1.5, -1.5), (-0.6, -0.6), NEITHER, -0.9, -0.6),
        # ... and what nothing tells of is taken to stand still.
        ((1.5, 1.5, 1.5), (None, None, 0.4), SUSPECT, 1.3, 0.2),
        # It explains a change, and never makes one the other way of it.
        ((1.5, 1.5), (4.0, 4.0), NEITHER, 0.0, 1.5),
    ],
)
def test_the_first_makes_a_suspect_and_the_mean_of_the_others_decides(
    metric: Metric,
    measured: tuple[float, ...],
    machine: tuple[float | None, ...],
    outcome: Outcome,
    change: float,
    moved: float | None,
) -> None:
    moves = tuple(None if move is None else expm1(move * LIMIT) for move in machine)
    values = [at(limits, metric) for limits in measured]
    verdict = judged(baseline(*[1e6] * 3, metric=metric), *values, machine=moves)
    assert verdict.outcome is outcome
    assert verdict.change == pytest.approx(expm1(change * LIMIT), abs=1e-12)
    assert verdict.machine == (None if moved is None else pytest.approx(expm1(moved * LIMIT)))
    assert verdict.observed == approx(at(change + (moved or 0.0), metric))  # as it was measured
    assert verdict.confirmed == pytest.approx(values[1:])


@pytest.mark.parametrize(
    ("measured", "undecided"),
    [
        ((0.71,), True),
        ((0.69,), False),
        ((-0.9,), False),
        ((0.8, 0.51), True),
        ((2.0, 1.5, 0.49), False),
        ((2.0, 1.5), False),  # it is REGRESSED
    ],
)
def test_what_measuring_again_would_decide(measured: tuple[float, ...], undecided: bool) -> None:
    assert judged(STORED, *map(at, measured)).undecided is undecided


def test_a_move_of_the_whole_machine_makes_no_suspect() -> None:
    moved = LASTING._replace(move=0.5 * LIMIT)
    excused = judged(STORED, at(1.1), suite=moved)
    assert (excused.outcome, excused.undecided) == (NEITHER, False)
    assert (excused.change, excused.machine) == (
        approx(expm1(0.6 * LIMIT)),
        approx(expm1(0.5 * LIMIT)),
    )
    assert judged(STORED, at(0.9), suite=moved).machine is None  # nothing to excuse
    assert judged(STORED, at(1.6), suite=moved).outcome is SUSPECT


def test_a_night_in_which_all_tests_lie_further_apart_widens_the_limit() -> None:
    wide = LASTING._replace(spread=2.0)
    assert band(STORED, suite=wide).limit == approx(2 * LIMIT)
    assert log1p(judged(STORED, at(1.9), suite=wide).limit or 0) == approx(2 * LIMIT)
