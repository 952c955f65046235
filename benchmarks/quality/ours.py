"""The project's gate over many trials at once, and the proof that it is the package's gate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY, Policy, judge_test, session_of
from pytest_ttnn_perf.gate.ratios import MAD_TO_SIGMA, t_quantile
from pytest_ttnn_perf.records.baseline import Accepted, MetricBaseline, TestBaseline
from pytest_ttnn_perf.records.metric import Metric, Source
from pytest_ttnn_perf.records.observation import MetricObservation, Observation
from pytest_ttnn_perf.records.verdict import Outcome

if TYPE_CHECKING:
    from benchmarks.quality import Array

OUTCOMES = (Outcome.WITHIN, Outcome.REGRESSED, Outcome.IMPROVED, Outcome.TOO_NOISY)


@dataclass(frozen=True)
class Formula:
    """The gate's formula: as shipped, or with one thing changed for an experiment."""

    name: str = "as shipped"
    policy: Policy = DEFAULT_POLICY


def _tried(
    name: str,
    *,
    guard: float = DEFAULT_POLICY.guard,
    one: float = DEFAULT_POLICY.guard_of_one,
    level: float = 0.95,
) -> Formula:
    return Formula(name, replace(DEFAULT_POLICY, guard=guard, guard_of_one=one, level=level))


SHIPPED = Formula()
#: By the spread alone, without the furthest sessions.
PLAIN = _tried("by the spread alone", guard=0.0)
ONE_COUNTS = _tried("one far session counts up to 20 %", one=0.20)
#: What was tried instead; ``--formulas`` compares them.
EXPERIMENTS = (
    PLAIN,
    _tried("by the spread alone, level 0.96", guard=0.0, level=0.96),
    _tried("by the spread alone, level 0.98", guard=0.0, level=0.98),
    _tried("furthest sessions × 1", guard=1.0),
    _tried("furthest sessions × 1.2", guard=1.2),
    _tried("one far session up to 2 %", one=0.02),
    _tried("one far session up to 6 %", one=0.06),
    ONE_COUNTS,
)


class Band(NamedTuple):
    """Centre, limits and their part from the spread; natural logarithms, one per trial."""

    centre: Array
    limit: Array
    gain: Array
    noise: Array


def metric_of(*, device: bool) -> Metric:
    return Metric("time", unit="ns", source=Source.DEVICE if device else Source.WALL)


def band(history: Array, metric: Metric, formula: Formula = SHIPPED) -> Band:
    """Return the bands of baselines of (trials, sessions, n) times, none accepted since."""
    policy, sessions, n = formula.policy, history.shape[1], history.shape[2]
    medians = np.median(history, axis=-1)
    mads = _seven_digits(np.median(np.abs(history - medians[..., None]), axis=-1))
    medians = _seven_digits(medians)
    logs = np.log(medians)
    centre = np.median(logs, axis=1)
    residuals = logs - centre[:, None]
    within = 1.2533 * MAD_TO_SIGMA * (mads / medians).mean(axis=1) / np.sqrt(n)
    on_wall = metric.source is Source.WALL
    prior = np.maximum(policy.prior_wall if on_wall else policy.prior_device, within)
    spread = np.maximum(_spread(residuals, prior), np.maximum(within, policy.least_noise))
    quantile = t_quantile(policy.level, sessions + 2)
    noise = quantile * spread * np.sqrt(1 + 1 / sessions)
    floor = np.log1p(np.maximum(policy.floor, policy.absolute_floor(metric) / np.exp(centre)))
    least = np.maximum(noise, floor)
    limit, gain = (_clear_of(sign * residuals, least, policy) for sign in (1.0, -1.0))
    return Band(centre, limit, gain, noise)


def usual_limit(sessions: int, spread: float, *, trials: int, seed: tuple[int, ...]) -> float:
    """Return the median limit of random baselines of a wall time, as a fraction.

    Sessions differ by ``spread`` and are quiet in themselves.
    """
    chance = np.random.default_rng(seed)
    history = 1e6 * np.exp(spread * chance.standard_normal((trials, sessions, 1)))
    return float(np.expm1(np.median(band(history, metric_of(device=False)).limit)))


def _clear_of(residuals: Array, least: Array, policy: Policy) -> Array:
    """Return limits that are clear of the two furthest sessions on the side of plus."""
    furthest = policy.guard * np.sort(residuals, axis=1)[:, ::-1]
    limit = np.maximum(least, np.minimum(furthest[:, 0], np.log1p(policy.guard_of_one)))
    if furthest.shape[1] > 1:
        limit = np.maximum(limit, np.minimum(furthest[:, 1], np.log1p(policy.too_noisy)))
    return limit


def _spread(residuals: Array, prior: Array) -> Array:
    count = residuals.shape[1]
    if count == 1:
        return prior
    shown = residuals.std(axis=1) * np.sqrt(count)
    if count >= 5:
        typical = MAD_TO_SIGMA * np.median(np.abs(residuals), axis=1)
        shown = np.maximum(shown, typical * np.sqrt(count - 1))
    return np.hypot(shown, prior * np.sqrt(3)) / np.sqrt(count + 2)


def outcomes(of: Band, changes: Array, policy: Policy = DEFAULT_POLICY) -> Array:
    """Return indices into OUTCOMES; ``changes`` is (trials, 1 + confirm passes)."""
    worse = (changes > of.limit[:, None]).all(axis=1)
    better = (changes < -of.gain[:, None]).all(axis=1)
    noisy = of.noise > np.log1p(policy.too_noisy)
    return np.select([worse, better, noisy], [1, 2, 3], 0)


def check(history: Array, now: Array, metric: Metric) -> int:
    """Judge each trial with the package too; return how many comparisons agreed.

    Raises:
        AssertionError: An outcome or a limit (beyond 1e-9) differs.
    """
    of = band(history, metric)
    changes = np.log(np.median(now, axis=-1)) - of.centre[:, None]
    agreed = 0
    for passes in (1, now.shape[1]):
        fast = outcomes(of, changes[:, :passes])
        for trial in range(len(now)):
            samples = [tuple(map(float, session)) for session in now[trial, :passes]]
            outcome, limit = _package(history[trial], samples, metric)
            assert outcome is OUTCOMES[fast[trial]], (outcome, fast[trial])
            expected = (of.gain if outcome is Outcome.IMPROVED else of.limit)[trial]
            assert abs(limit - np.expm1(expected)) < 1e-9, (limit, expected)
            agreed += 1
    return agreed


def _package(
    history: Array, samples: list[tuple[float, ...]], metric: Metric
) -> tuple[Outcome, float]:
    observed = MetricObservation(metric, samples[0], confirmations=tuple(samples[1:]))
    sessions = tuple(session_of(observed, tuple(map(float, session))) for session in history)
    baseline = TestBaseline(Accepted(""), {metric.name: MetricBaseline(metric, sessions)})
    (verdict,) = judge_test(Observation("test", {metric.name: observed}), baseline)
    assert verdict.limit is not None
    return verdict.outcome, verdict.limit


def _seven_digits(values: Array) -> Array:
    """Round as the baseline's file does."""
    positive = np.where(values > 0, values, 1.0)
    scale = 10.0 ** (6 - np.floor(np.log10(positive)))
    return np.round(values * scale) / scale
