"""The project's gate over many tests at once, and the proof that it is the package's gate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.quality.history import BEFORE, SINCE, Histories, middle
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY, Policy, judge_test, session_of
from pytest_ttnn_perf.records.baseline import Accepted, MetricBaseline, TestBaseline
from pytest_ttnn_perf.records.metric import Metric, Source
from pytest_ttnn_perf.records.observation import MetricObservation, Observation
from pytest_ttnn_perf.records.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from benchmarks.quality import Array

OUTCOMES = (Outcome.WITHIN, Outcome.REGRESSED, Outcome.IMPROVED, Outcome.TOO_NOISY)
WITHIN, REGRESSED, IMPROVED, TOO_NOISY = range(4)

#: What the package has as constants of its own; the check fails where these are not the same.
PRIOR_WEIGHT, CLIP, RUNS_FOR_SPREAD, RUNS_FOR_CLIP, UNSEEN_WITHIN = 6, 2.5, 3, 5, 2 / 3


@dataclass(frozen=True)
class Formula:
    """The gate's formula: as shipped, or with one thing changed for an experiment."""

    name: str = "as shipped"
    policy: Policy = DEFAULT_POLICY
    clip: float = CLIP


SHIPPED = Formula()
#: By the spread alone, without the furthest runs.
PLAIN = Formula("by the spread alone", replace(DEFAULT_POLICY, guard=0.0))
#: A far run counts in the spread as far out as it is.
UNCLIPPED = Formula("far runs count in full", clip=np.inf)
#: What was tried instead; ``--formulas`` compares them.
EXPERIMENTS = (
    PLAIN,
    UNCLIPPED,
    Formula("furthest runs × 1.2", replace(DEFAULT_POLICY, guard=1.2)),
    Formula("two far runs up to 6 %", replace(DEFAULT_POLICY, guard_of_two=0.06)),
    Formula("3.2 deviations", replace(DEFAULT_POLICY, deviations=3.2)),
    Formula("3.6 deviations", replace(DEFAULT_POLICY, deviations=3.6)),
)


class Band(NamedTuple):
    """Centre, limits and their part from the spread; natural logarithms, one per cell."""

    centre: Array
    limit: Array
    gain: Array
    noise: Array

    def shaped(self, *shape: int) -> Band:
        """Return the band with its cells in another shape."""
        return Band(*(part.reshape(shape) for part in self))


def metric_of(*, device: bool) -> Metric:
    return Metric("time", unit="ns", source=Source.DEVICE if device else Source.WALL)


def band(stored: Histories, metric: Metric, formula: Formula = SHIPPED) -> Band:
    """Return the bands of baselines."""
    policy = formula.policy
    centre, residuals = stored.residuals()
    runs = stored.runs.sum(axis=0)
    degrees = np.maximum(stored.runs - 1, 0).sum(axis=0)
    within = stored.within()
    on_wall = metric.source is Source.WALL
    prior = policy.prior_wall if on_wall else policy.prior_device
    prior = np.where(within > 0, np.maximum(prior, within), np.hypot(1, UNSEEN_WITHIN) * prior)
    spread = _spread(residuals, runs, degrees, prior, formula.clip)
    spread = np.maximum(spread, np.maximum(within, policy.least_noise))
    noise = policy.deviations * spread * np.sqrt(1 + 1 / stored.runs[SINCE])
    floor = np.log1p(np.maximum(policy.floor, policy.absolute_floor(metric) / np.exp(centre)))
    least = np.maximum(noise, floor)
    rows = np.arange(len(residuals))
    ranks = (1, 2)  # from the furthest, which counts for nothing
    high = [np.where(runs > k, residuals[rows, runs - 1 - k], 0.0) for k in ranks]
    low = [np.where(runs > k, -residuals[:, k], 0.0) for k in ranks]
    return Band(centre, _clear_of(high, least, policy), _clear_of(low, least, policy), noise)


def usual_limit(runs: int, spread: float, *, trials: int, seed: tuple[int, ...]) -> float:
    """Return the median limit of random baselines of a wall time, as a fraction.

    Runs differ by ``spread``; samples within a session by a little, so that they tell.
    """
    chance = np.random.default_rng(seed)
    levels = spread * chance.standard_normal((trials, runs, 1))
    history = 1e6 * np.exp(levels + 1e-4 * np.array([-1.0, 0.0, 1.0]))
    of = band(Histories.of(history), metric_of(device=False))
    return float(np.expm1(np.median(of.limit)))


def _clear_of(furthest: list[Array], least: Array, policy: Policy) -> Array:
    """Return limits that are clear of the second and third furthest run on one side."""
    limit = least
    bounds = (policy.guard_of_two, policy.too_noisy)
    for residual, bound in zip(furthest, bounds, strict=True):
        limit = np.maximum(limit, np.minimum(policy.guard * residual, np.log1p(bound)))
    return limit


def _spread(residuals: Array, runs: Array, degrees: Array, prior: Array, clip: float) -> Array:
    known = np.where(np.isfinite(residuals), residuals, 0.0)
    assumed = prior * np.sqrt(PRIOR_WEIGHT)
    weight = np.sqrt(degrees + PRIOR_WEIGHT)
    distances = np.sort(np.abs(residuals), axis=1)
    typical = 1.4826 * middle(distances, runs)
    most = clip * np.hypot(typical * np.sqrt(degrees), assumed) / weight
    most = np.where(runs >= RUNS_FOR_CLIP, most, np.inf)[:, None]
    shown = np.sqrt((np.clip(known, -most, most) ** 2).sum(axis=1))
    return np.where(runs < RUNS_FOR_SPREAD, prior, np.hypot(shown, assumed) / weight)


def excused(changes: Array, moves: Array, worse: Array) -> Array:
    """Return how much of each (cells, measurements) change the machine's moves explain.

    A slow machine excuses what is ``worse``, a fast one makes a gain doubtful, and no more.
    """
    slow = np.maximum(np.minimum(moves, changes), 0.0)
    fast = np.minimum(np.maximum(moves, changes), 0.0)
    return np.where(worse[:, None], slow, fast)


def settled(
    of: Band, changes: Array, moves: Array | float = 0.0, policy: Policy = DEFAULT_POLICY
) -> tuple[Array, Array]:
    """Return the changes that (cells, measurements) amount to, and what is the machine's beside.

    The first alone as it is; of more their mean without the machine's part, the first no further
    out than the furthest of the others, unless a confirm pass does not bear it out. What was no
    suspect at first is no regression.
    """
    if changes.shape[1] == 1:
        return changes[:, 0], np.zeros(len(changes))
    worse = changes.sum(axis=1) > 0
    excuse = excused(changes, np.broadcast_to(moves, changes.shape), worse)
    left = changes - excuse
    rows = np.arange(len(left))
    again, again_excuse = left[:, 1:], excuse[:, 1:]
    furthest = np.where(worse, again.argmax(axis=1), again.argmin(axis=1))
    further = np.where(worse, 1, -1) * (left[:, 0] - again[rows, furthest]) > 0
    first = np.where(further, again[rows, furthest], left[:, 0])
    first_excuse = np.where(further, again_excuse[rows, furthest], excuse[:, 0])
    mean = (first + again.sum(axis=1)) / left.shape[1]
    slower = (mean > of.limit) & (again.min(axis=1) <= policy.agree * of.limit)
    faster = (mean < -of.gain) & (again.max(axis=1) >= -policy.agree * of.gain)
    refuted = slower | faster
    at = np.abs(again).argmin(axis=1)
    change = np.where(refuted, np.clip(again[rows, at], -of.gain, of.limit), mean)
    change = np.where(worse, np.maximum(change, -of.gain), change)
    suspect = worse & (changes[:, 0] > policy.screen * of.limit)
    change = np.where(suspect, change, np.minimum(change, of.limit))
    mean_excuse = (first_excuse + again_excuse.sum(axis=1)) / left.shape[1]
    return change, np.where(refuted, again_excuse[rows, at], mean_excuse)


def outcomes(
    of: Band, changes: Array, moves: Array | float = 0.0, policy: Policy = DEFAULT_POLICY
) -> Array:
    """Return indices into OUTCOMES; ``changes`` is (cells, 1 + confirm passes)."""
    change, _ = settled(of, changes, moves, policy)
    noisy = of.noise > np.log1p(policy.too_noisy)
    worse, better = change > of.limit, change < -of.gain
    return np.select([worse, better, noisy], [REGRESSED, IMPROVED, TOO_NOISY], WITHIN)


def fails(of: Band, changes: Array, effect: Array, policy: Policy = DEFAULT_POLICY) -> Array:
    """Return a score above 1 where (cells, 3) changes, slower by ``effect``, are REGRESSED.

    All that must hold for that, each as a part of what it must exceed: the first beyond the
    screen, the mean beyond the limit, every confirm pass beyond half of it. In the mean, the first
    is no further out than the furthest of the others.
    """
    slower = changes + effect
    parts = [slower[:, 0] / (policy.screen * of.limit)]
    if changes.shape[1] > 1:
        parts.append(slower[:, 1:].min(axis=1) / (policy.agree * of.limit))
        slower[:, 0] = np.minimum(slower[:, 0], slower[:, 1:].max(axis=1))
    parts.append(slower.mean(axis=1) / of.limit)
    return np.minimum.reduce(parts)


def check(times: Array, now: Array, metric: Metric, chance: np.random.Generator) -> int:
    """Judge each trial with the package too; return how many comparisons agreed.

    Each as it is, with runs of several sessions, as after an accept, and with a machine that moved.

    Raises:
        AssertionError: An outcome or a limit (beyond 1e-9) differs.
    """
    cells, count = times.shape[:2]
    agreed_count = 0
    for sizes, since in _layouts(count):
        stored = _stored(times, sizes, since)
        of = band(stored, metric)
        changes = np.log(np.median(now, axis=-1)) - of.centre[:, None]
        moves = np.round(0.02 * chance.standard_normal(now.shape[:2]), 5)
        for passes in (1, 2, now.shape[1]):
            fast = outcomes(of, changes[:, :passes], np.log1p(moves[:, :passes]))
            for trial in range(cells):
                verdict = _package(times[trial], now[trial, :passes], metric, sizes, since,
                                   tuple(map(float, moves[trial, :passes])))  # fmt: skip
                wanted = OUTCOMES[fast[trial]]
                assert verdict.outcome is wanted, (verdict, wanted)
                limit = (of.gain if wanted is Outcome.IMPROVED else of.limit)[trial]
                limit = max(limit, of.noise[trial]) if wanted is Outcome.TOO_NOISY else limit
                assert verdict.limit is not None
                assert abs(verdict.limit - np.expm1(limit)) < 1e-9, (verdict, limit)
                assert verdict.runs == int(stored.runs[:, trial].sum()), verdict
                agreed_count += 1
    return agreed_count


def _layouts(count: int) -> list[tuple[tuple[int, ...], int]]:
    """Return run sizes that make so many sessions, and at which run an accept stands."""
    found: list[tuple[tuple[int, ...], int]] = [((1,) * count, 0)]
    if count >= 5:
        found += [((3, *(1,) * (count - 3)), 0), ((count,), 0), ((1,) * count, count - 2)]
    return found


def _stored(times: Array, sizes: tuple[int, ...], since: int) -> Histories:
    stored = Histories.of(times, run_sizes=sizes)
    if since:
        later = Histories.of(times[:, sum(sizes[:since]) :], run_sizes=sizes[since:])
        stored = Histories.of(times[:, : sum(sizes[:since])], run_sizes=sizes[:since])
        for part in ("values", "runs", "sessions", "mads"):
            sides = getattr(stored, part)
            sides[BEFORE] = sides[SINCE]
            sides[SINCE] = getattr(later, part)[SINCE]
    return stored


def _package(
    times: Array, now: Array, metric: Metric, sizes: tuple[int, ...], since: int,
    moves: tuple[float, ...],
) -> Verdict:  # fmt: skip
    samples = [tuple(map(float, session)) for session in now]
    again = tuple(samples[1:])
    machine = moves if again else ()
    observed = MetricObservation(metric, samples[0], confirmations=again, machine=machine)
    runs = [f"run {number}" for number, size in enumerate(sizes) for _ in range(size)]
    sessions = tuple(
        session_of(observed, tuple(map(float, session)), run)
        for session, run in zip(times, runs, strict=True)
    )
    place = MetricBaseline(metric, sessions, since=sum(sizes[:since]))
    baseline = TestBaseline(Accepted(""), {metric.name: place})
    (verdict,) = judge_test(Observation("test", {metric.name: observed}), baseline)
    return verdict
