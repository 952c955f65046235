"""Limits worked out by hand from the formulas, and what each outcome takes."""

from __future__ import annotations

from math import exp, expm1, hypot, log, log1p, sqrt

import pytest

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import NO_LIMITS, Limits, MetricObservation, Outcome, Verdict
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.gate.ratios import (
    Band,
    band_of,
    centre_of,
    is_open,
    judge_ratio,
    learned_prior,
)

WALL = Metric("wall_time", "ns")
RATE = Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
KERNEL = Metric("kernel", "s", source=Source.DEVICE)
#: How much runs are taken to differ, and what single or equal samples add to it.
PRIOR, PRIOR_DEVICE, UNSEEN = 0.015, 0.005, hypot(1, 2 / 3)
#: A spread within sessions that is plainly there, and too small to count.
LITTLE = 1e-5


def baseline(
    *medians: float, mad: float = LITTLE, n: int = 10, since: int = 0, metric: Metric = WALL
) -> MetricBaseline:
    """Return a baseline with one session per run, ``mad`` as a fraction."""
    sessions = (Session(m, m * mad, n, f"run-{k}") for k, m in enumerate(medians))
    return MetricBaseline(metric, tuple(sessions), since)


def around(*residuals: float) -> MetricBaseline:
    """Return a baseline whose runs lie so far from 1e6, in logarithms."""
    return baseline(*(1e6 * exp(residual) for residual in residuals))


def band(stored: MetricBaseline, limits: Limits = NO_LIMITS, samples: int | None = None) -> Band:
    return band_of(stored, limits, policy=DEFAULT_POLICY, samples=samples)


def judged(
    stored: MetricBaseline,
    now: float,
    *again: float,
    limits: Limits = NO_LIMITS,
    machine: tuple[float | None, ...] = (),
) -> Verdict:
    confirmations = tuple((value,) * 10 for value in again)
    run = MetricObservation(stored.metric, (now,) * 10, confirmations, machine, limits=limits)
    return judge_ratio(run, stored, policy=DEFAULT_POLICY)


def approx(value: float) -> object:
    return pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(("metric", "prior"), [(WALL, PRIOR), (KERNEL, PRIOR_DEVICE)])
@pytest.mark.parametrize("runs", [1, 2])
def test_fewer_than_three_runs_leave_it_to_the_prior(
    metric: Metric, prior: float, runs: int
) -> None:
    found = band(baseline(*[1e6, 1.04e6][:runs], metric=metric))
    assert found.noise == approx(3.4 * prior * sqrt(1 + 1 / runs))
    assert (found.runs, found.assumed) == (runs, False)


@pytest.mark.parametrize("d", [0.0, 0.01, 0.03])
def test_three_runs_add_what_they_show(d: float) -> None:
    found = band(around(-d, 0, d))
    spread = sqrt((2 * d**2 + 6 * PRIOR**2) / (2 + 6))
    assert found.limit == found.gain == found.noise == approx(3.4 * spread * sqrt(4 / 3))
    assert found.centre == approx(log(1e6))


def test_twenty_runs_and_one_that_is_clipped() -> None:
    # 19 alike have no robust deviation of their own: what is left is the prior's.
    most = 2.5 * sqrt(6 * PRIOR**2 / 25)
    spread = sqrt((most**2 + 6 * PRIOR**2) / 25)
    for far in (1.3, 1 / 1.3, 9.0):
        found = band(baseline(*[1e6] * 19, far * 1e6))
        assert found.limit == found.gain == approx(3.4 * spread * sqrt(1.05))


def test_four_runs_are_too_few_to_clip_any() -> None:
    spread = sqrt((log(1.3) ** 2 + 6 * PRIOR**2) / 9)
    assert band(baseline(*[1e6] * 3, 1.3e6)).noise == approx(3.4 * spread * sqrt(1.25))


def test_sessions_of_one_run_count_once() -> None:
    medians = {"a": (1.01e6, 1.025e6, 1.02e6), "b": (1.04e6,), "c": (1e6, 1.01e6)}
    sessions = tuple(Session(m, m * LITTLE, 10, run) for run in medians for m in medians[run])
    stored = MetricBaseline(WALL, sessions)
    # Runs are at 1.02, 1.04 and the geometric mean of 1 and 1.01.
    last = sqrt(1.01)
    spread = sqrt((log(1.04 / 1.02) ** 2 + log(last / 1.02) ** 2 + 6 * PRIOR**2) / 8)
    assert (band(stored).runs, stored.runs) == (3, 3)
    assert band(stored).centre == approx(log(1.02e6))
    assert centre_of(stored) == approx(1.02e6)
    assert band(stored).limit == approx(3.4 * spread * sqrt(4 / 3))


def test_sessions_of_unknown_runs_are_one_run_on_each_side_of_an_accept() -> None:
    sessions = tuple(Session(m, 10.0, 10) for m in (1e6, 1.01e6, 1e6, 2e6, 2.02e6))
    stored = MetricBaseline(WALL, sessions, since=3)
    assert (band(stored).runs, stored.runs) == (2, 2)
    assert band(stored).centre == approx(log(2e6 * sqrt(1.01)))
    assert band(stored).limit == approx(3.4 * PRIOR * sqrt(2))


def test_runs_before_an_accept_tell_the_spread_but_not_the_centre() -> None:
    stored = baseline(1e6, 1.04e6, 2e6, since=2)
    half = log(1.04) / 2  # of each from the middle of the two; one degree of freedom
    spread = sqrt((2 * half**2 + 6 * PRIOR**2) / (1 + 6))
    assert band(stored).centre == approx(log(2e6))
    assert band(stored).limit == approx(3.4 * spread * sqrt(2))


def test_noise_within_sessions_is_the_prior_where_it_is_larger() -> None:
    mad, n = 0.2, 10
    within = 1.2533 * 1.4826 * mad / sqrt(n)
    assert band(baseline(1e6, mad=mad)).noise == approx(3.4 * within * sqrt(2))
    # From three runs on it is still the least that is believed.
    assert band(baseline(*[1e6] * 20, mad=mad)).noise == approx(3.4 * within * sqrt(1.05))


def test_single_or_equal_samples_show_no_noise_so_some_is_assumed() -> None:
    found = band(baseline(1e6, mad=0))
    assert found.assumed
    assert found.noise == approx(3.4 * UNSEEN * PRIOR * sqrt(2))
    assert judged(baseline(1e6, mad=0), 1e6).assumed


@pytest.mark.parametrize(("samples", "fold"), [(16, 0), (99, 0), (4, 3), (1, 15)])
def test_fewer_samples_than_stored_are_noisier(samples: int, fold: int) -> None:
    within = 1.2533 * 1.4826 * 0.03 / sqrt(16)
    spread = sqrt(PRIOR**2 + fold * within**2)
    found = band(baseline(1e6, mad=0.03, n=16), samples=samples)
    assert found.noise == approx(3.4 * spread * sqrt(2))


def test_a_quiet_history_is_held_to_the_least_noise_and_the_floor() -> None:
    quiet = baseline(*[1e6] * 20, metric=KERNEL)
    # The prior alone would leave 0.005 · sqrt(6/25) = 0.0024.
    assert band(quiet).noise == approx(3.4 * 0.003 * sqrt(1.05))
    assert band(quiet).limit == approx(log(1.02))
    assert band(quiet, Limits(tolerance=0.05)).limit == approx(log(1.05))
    assert band(quiet, Limits(tolerance=0.0)).limit == band(quiet).noise
    assert band(quiet, Limits(max_regression=0.01)).limit == approx(log(1.01))


@pytest.mark.parametrize(("unit", "centre"), [("ns", 2000), ("us", 2)])
def test_a_short_device_time_is_held_to_a_microsecond(unit: str, centre: float) -> None:
    metric = Metric("kernel", unit, source=Source.DEVICE)
    assert band(baseline(*[centre] * 20, metric=metric)).limit == approx(log(1.5))


def spread_of_twenty(apart: float, count: int) -> float:
    """Return the limit by the spread of 20 runs, all alike but for ``count`` of them."""
    most = 2.5 * sqrt(6 * PRIOR**2 / 25)
    clipped = min(apart, most)
    return 3.4 * sqrt((count * clipped**2 + 6 * PRIOR**2) / 25) * sqrt(1.05)


@pytest.mark.parametrize(
    ("metric", "way", "worse"),
    [(WALL, 1, True), (WALL, -1, False), (RATE, -1, True), (RATE, 1, False)],
    ids=["slower", "faster", "lower", "higher"],
)
@pytest.mark.parametrize(
    ("count", "apart", "widened"),
    [
        (1, 0.3, None),
        (2, 0.035, 1.1 * 0.035),
        (2, 0.3, log(1.04)),
        (3, 0.05, 1.1 * 0.05),
        (3, 0.3, log(1.2)),
    ],
    ids=["one", "two near", "two far", "three near", "three far"],
)
def test_the_second_and_third_furthest_runs_widen_the_limit_on_their_own_side(
    metric: Metric, way: int, worse: bool, count: int, apart: float, widened: float | None
) -> None:
    medians = [1e6] * (20 - count) + [1e6 * exp(way * apart)] * count
    found = band(baseline(*medians, metric=metric))
    far, near = (found.limit, found.gain) if worse else (found.gain, found.limit)
    assert near == found.noise == approx(spread_of_twenty(apart, count))
    assert far == approx(widened or near)
    assert judged(baseline(*medians, metric=metric), 1e6).outcome is Outcome.WITHIN


def test_the_furthest_runs_before_an_accept_still_count() -> None:
    stored = baseline(*[1e6] * 8, *[1.06e6] * 3, *[2e6] * 8, *[2e6 / 1.07] * 3, since=11)
    assert band(stored).centre == approx(log(2e6))
    assert band(stored).limit == approx(1.1 * log(1.06))
    assert band(stored).gain == approx(1.1 * log(1.07))


def test_a_cap_holds_against_the_furthest_runs_but_not_for_gains() -> None:
    capped = Limits(max_regression=0.03)
    slow, fast = (baseline(*[1e6] * 17, *[1e6 * 1.05**way] * 3) for way in (1, -1))
    assert band(slow, capped).limit == approx(log(1.03))
    assert band(fast, capped).gain == approx(1.1 * log(1.05))
    # A gain is told with the limit it is beyond; all else with the limit for the worse.
    assert judged(fast, 0.9e6).limit == approx(expm1(1.1 * log(1.05)))
    assert judged(fast, 0.96e6).limit == approx(expm1(band(fast).limit))


def test_noise_beyond_twenty_per_cent_is_too_noisy() -> None:
    for noise, outcome in ((0.199, Outcome.WITHIN), (0.201, Outcome.TOO_NOISY)):
        within = log1p(noise) / (3.4 * sqrt(2))
        stored = baseline(1e6, mad=within * sqrt(10) / (1.2533 * 1.4826))
        assert judged(stored, 1e6).outcome is outcome
    # A cap does not make it quiet; a suspect is a suspect; and faster beyond doubt is faster.
    noisy = baseline(1e6, 1.5e6, 0.7e6)
    assert judged(noisy, 1e6).limit == approx(expm1(band(noisy).noise))
    assert judged(noisy, 1e6, limits=Limits(max_regression=0.05)).outcome is Outcome.TOO_NOISY
    assert judged(noisy, 9e6).outcome is Outcome.REGRESSED
    assert judged(noisy, 1e5).outcome is Outcome.IMPROVED
    # The author's own word that such a change is fine.
    assert judged(noisy, 1e6, limits=Limits(tolerance=2.0)).outcome is Outcome.WITHIN


#: Three equal runs: the limit is 3.4 · 0.015 · sqrt(6/8 · 4/3) either way, a logarithm.
STORED, LIMIT = baseline(*[1e6] * 3), 3.4 * 0.015
SUSPECT, GAIN, NEITHER = Outcome.REGRESSED, Outcome.IMPROVED, Outcome.WITHIN


def at(limits: float, metric: Metric = WALL) -> float:
    """Return the value that is worse than the centre by so many limits."""
    return 1e6 * exp((-1 if metric is RATE else 1) * limits * LIMIT)


@pytest.mark.parametrize("metric", [WALL, RATE], ids=["time", "rate"])
@pytest.mark.parametrize(
    ("measured", "outcome", "change"),
    [
        ((1.001,), SUSPECT, 1.001),
        ((0.999,), NEITHER, 0.999),
        ((-1.001,), GAIN, -1.001),
        ((2.0, 1.4, 0.6), SUSPECT, 3.4 / 3),
        ((9.0, 0.9, 0.9), NEITHER, 0.9),  # the first outvotes nobody
        ((0.71, 2.0, 2.0), SUSPECT, 4.71 / 3),
        ((0.69, 2.0, 2.0), NEITHER, 1.0),  # it was no suspect
        ((2.0, 0.499, 1.5), NEITHER, 0.499),
        ((2.0, 1.5, -3.0), NEITHER, 0.0),
        ((-2.0, -1.4, -0.6), GAIN, -3.4 / 3),
        ((-9.0, -0.9, -0.9), NEITHER, -0.9),
        ((-2.0, -0.499, -1.5), NEITHER, -0.499),
    ],
)
def test_all_measurements_count_and_the_first_no_more_than_the_furthest_of_the_others(
    metric: Metric, measured: tuple[float, ...], outcome: Outcome, change: float
) -> None:
    stored = baseline(*[1e6] * 3, metric=metric)
    verdict = judged(stored, *(at(limits, metric) for limits in measured))
    assert verdict.outcome is outcome
    assert verdict.change == approx(expm1(change * LIMIT))
    assert verdict.observed == approx(at(change, metric))
    assert verdict.confirmed == pytest.approx([at(limits, metric) for limits in measured[1:]])
    assert (verdict.machine, verdict.provisional, verdict.runs) == (None, False, 3)


@pytest.mark.parametrize("metric", [WALL, RATE], ids=["time", "rate"])
@pytest.mark.parametrize(
    ("measured", "machine", "outcome", "change", "moved"),
    [
        ((1.5, 1.5), (0.6, 0.6), NEITHER, 0.9, 0.6),
        ((1.1, 1.9), (0.0, 0.6), SUSPECT, 1.2, 0.3),
        ((2.5, 1.5), (0.0, 1.1), NEITHER, 0.4, 1.1),  # one pass refutes
        # What the machine did counts for a test and never against it.
        ((0.8, 0.8), (-0.5, -0.5), NEITHER, 0.8, 0.0),
        ((-1.2, -1.2), (0.5, 0.5), GAIN, -1.2, 0.0),
        ((0.8, 0.5), (0.0, 9.0), NEITHER, 0.0, 0.5),  # nor is what was slower faster for it
        ((-3.5, 1.6, 1.6), (-9.0, -9.0, -9.0), NEITHER, 1.0, 0.0),
        # What nothing tells of is taken to stand still.
        ((1.5, 1.5), (None, 1.1), NEITHER, 0.4, 1.1),
        ((-1.5, -1.5), (-0.6, -0.6), NEITHER, -0.9, -0.6),
        # It explains a change, and never makes one the other way of it.
        ((1.5, 1.5), (4.0, 4.0), NEITHER, 0.0, 1.5),
        ((-1.5, -1.5), (-4.0, -4.0), NEITHER, 0.0, -1.5),
    ],
)
def test_what_the_machine_did_is_taken_off_each_measurement(
    metric: Metric,
    measured: tuple[float, ...],
    machine: tuple[float | None, ...],
    outcome: Outcome,
    change: float,
    moved: float,
) -> None:
    moves = tuple(None if move is None else expm1(move * LIMIT) for move in machine)
    values = [at(limits, metric) for limits in measured]
    verdict = judged(baseline(*[1e6] * 3, metric=metric), *values, machine=moves)
    assert verdict.outcome is outcome
    assert verdict.change == approx(expm1(change * LIMIT))
    assert verdict.machine == pytest.approx(expm1(moved * LIMIT))
    assert verdict.observed == approx(at(change + moved, metric))  # as it was measured


@pytest.mark.parametrize("metric", [WALL, RATE], ids=["time", "rate"])
@pytest.mark.parametrize(
    ("measured", "machine", "is_it"),
    [
        ((0.71,), (), True),
        ((0.69,), (), False),
        ((0.8, 0.51), (), True),
        ((2.0, 1.5, 0.49), (), False),
        ((2.0, 1.5, 0.51), (), True),
        ((2.0, 0.4), (0.0, -0.41), False),
    ],
)
def test_what_measuring_again_would_decide(
    metric: Metric, measured: tuple[float, ...], machine: tuple[float, ...], is_it: bool
) -> None:
    first, *again = (at(limits, metric) for limits in measured)
    moves = tuple(expm1(move * LIMIT) for move in machine)
    run = MetricObservation(metric, (first,) * 10, tuple((value,) for value in again), moves)
    verdict = judge_ratio(run, baseline(*[1e6] * 3, metric=metric), policy=DEFAULT_POLICY)
    assert is_open(verdict, run, policy=DEFAULT_POLICY) is is_it


def kernel_of(*medians: float, runs: str, metric: Metric = KERNEL) -> TestBaseline:
    """Return a test with one session per median, and a letter for the run of each."""
    sessions = (Session(m, 0.0, 5, run) for m, run in zip(medians, runs, strict=True))
    return TestBaseline(Acceptance("now"), {metric.name: MetricBaseline(metric, tuple(sessions))})


def learned(*tests: TestBaseline) -> float | None:
    return learned_prior(tests, policy=DEFAULT_POLICY)


#: Two runs that are 2 % apart: their variance is half the square of that.
PAIR = kernel_of(100.0, 100 * exp(0.02), runs="ab")
VARIANCE = 0.02**2 / 2


def test_eight_tests_tell_how_quiet_a_device_is() -> None:
    assert learned(*[PAIR] * 7) is None
    assert learned(*[PAIR] * 8) == approx(sqrt(VARIANCE))
    # The mean of squares: a test that tells nothing but quiet halves them.
    quiet = kernel_of(100.0, 100.0, 100.0, runs="abc")
    assert learned(*[PAIR] * 8, *[quiet] * 8) == approx(sqrt(VARIANCE / 2))
    assert learned(*[quiet] * 8) == 0.003


def test_processes_of_a_single_run_vary_half_as_much_as_runs() -> None:
    assert learned(*[kernel_of(100.0, 100 * exp(0.02), runs="aa")] * 8) == approx(
        sqrt(2 * VARIANCE)
    )
    # With a second run, only how the runs differ counts, by their medians.
    both = kernel_of(100 * exp(-0.3), 100.0, 100 * exp(0.3), 100 * exp(0.02), runs="aaab")
    assert learned(*[both] * 8) == approx(sqrt(VARIANCE))


@pytest.mark.parametrize(
    "silent",
    [
        kernel_of(100.0, runs="a"),
        kernel_of(100.0, 120.0, runs="ab", metric=WALL),
        kernel_of(100.0, 120.0, runs="ab", metric=Metric("ops", "", kind=Kind.COUNT)),
    ],
    ids=["one session", "wall", "count"],
)
def test_what_says_nothing_of_a_device_teaches_nothing(silent: TestBaseline) -> None:
    assert learned(*[silent] * 20, *[PAIR] * 7) is None
    assert learned(*[silent] * 20, *[PAIR] * 8) == approx(sqrt(VARIANCE))
