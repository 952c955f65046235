"""Nightly updates of one test, by the package's own judge and planner: does the centre walk?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.quality.noise import Noise, draw
from benchmarks.quality.ours import metric_of
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY, judge_test
from pytest_ttnn_perf.gate.ratios import band_of, centre_of, is_open
from pytest_ttnn_perf.records.baseline import MAX_SESSIONS, Accepted, TestBaseline
from pytest_ttnn_perf.records.observation import (
    NO_LIMITS,
    JudgedTest,
    MetricObservation,
    Observation,
)
from pytest_ttnn_perf.records.settings import Update
from pytest_ttnn_perf.records.verdict import Outcome
from pytest_ttnn_perf.run.update import plan

if TYPE_CHECKING:
    from benchmarks.quality import Array
    from pytest_ttnn_perf.records.metric import Metric

NIGHTS = 180
#: A night measures once, and again up to twice.
PASSES = 3
SAMPLES = 10
ACCEPTED = Accepted("")


@dataclass(frozen=True)
class Walk:
    """What became of one test over the nights. Shifts are fractions of where it truly began."""

    shift: float
    accepts: int
    failures: int
    #: The first night that failed; None for none.
    caught: int | None


@dataclass(frozen=True)
class Ratchet:
    """Many walks of one noise model: with unchanged code, and with a slow drift."""

    noise: Noise
    unchanged: tuple[Walk, ...]
    drifting: tuple[Walk, ...]


def run(noise: Noise, *, walks: int, drift: float, seed: tuple[int, ...]) -> Ratchet:
    """Walk through the nights twice on the same noise: unchanged, and slower each night.

    Without the host's walk, which would move the test itself.
    """
    chance = np.random.default_rng(seed)
    times = draw(noise, chance, walks, tuple(range(NIGHTS * PASSES)), SAMPLES)
    times = times.reshape(walks, NIGHTS, PASSES, SAMPLES)
    slower = (1 + drift) ** np.arange(NIGHTS)
    # Where the test truly is: the middle of everything this noise ever gave.
    truth = float(np.median(np.log(np.median(times, axis=-1))))
    metric = metric_of(device=noise.device)
    return Ratchet(
        noise,
        tuple(_walk(each, metric, truth) for each in times),
        tuple(
            _walk(each * slower[:, None, None], metric, truth, until_caught=True) for each in times
        ),
    )


def _walk(nights: Array, metric: Metric, truth: float, *, until_caught: bool = False) -> Walk:
    """Walk through the nights; with ``until_caught`` to the first that fails."""
    baseline: TestBaseline | None = None
    firsts = np.log(np.median(nights[:, 0], axis=-1))
    accepts = failures = number = 0
    caught = None
    while (number := _next_that_matters(firsts, number, metric, baseline)) < len(nights):
        passes = [tuple(samples) for samples in nights[number].tolist()]
        judged = _judge(passes, metric, baseline)
        (verdict,) = judged.verdicts
        if verdict.outcome in {Outcome.REGRESSED, Outcome.TOO_NOISY}:
            failures += 1
            caught = number if caught is None else caught
            if until_caught:
                break
        accepts += verdict.outcome is Outcome.IMPROVED
        change = plan(judged, Update.IMPROVED, accepted=ACCEPTED, run=f"night {number}")
        baseline = change(baseline) if change else baseline
        number += 1
    assert baseline is not None
    centre = math.log(centre_of(baseline.metrics[metric.name]))
    return Walk(math.expm1(centre - truth), accepts, failures, caught)


def _next_that_matters(
    firsts: Array, number: int, metric: Metric, baseline: TestBaseline | None
) -> int:
    """Return the next night that can fail or change anything; the number of nights for none.

    Once a baseline is full, a night that is not measured again is a pass, not even written.
    """
    if baseline is None:
        return number
    current = baseline.metrics[metric.name].current
    if len({session.run for session in current}) < MAX_SESSIONS:
        return number
    policy = DEFAULT_POLICY
    of = band_of(baseline.metrics[metric.name], NO_LIMITS, policy=policy)
    if of.noise > math.log1p(policy.too_noisy):
        return number
    changes = firsts[number:] - of.centre
    (beyond,) = np.nonzero((changes > policy.screen * of.limit) | (changes < -of.gain))
    return number + int(beyond[0]) if len(beyond) else len(firsts)


def _judge(
    passes: list[tuple[float, ...]], metric: Metric, baseline: TestBaseline | None
) -> JudgedTest:
    """Judge a night as a run does: what is near the limit, better or new, is measured again."""
    again = len(passes) if baseline is None else 1
    while True:
        observed = MetricObservation(metric, passes[0], confirmations=tuple(passes[1:again]))
        observation = Observation("test", {metric.name: observed})
        verdicts = judge_test(observation, baseline)
        (verdict,) = verdicts
        # Confirming stops at the first measurement that does not agree.
        by_numbers = verdict.outcome in {Outcome.REGRESSED, Outcome.WITHIN}
        doubtful = by_numbers and is_open(verdict, observed, policy=DEFAULT_POLICY)
        if again == len(passes) or not (doubtful or verdict.outcome is Outcome.IMPROVED):
            return JudgedTest(observation, verdicts)
        again += 1
