"""Runs of 200 tests on a machine that is slower as a whole: who is named, by the package itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.quality.noise import Noise, draw
from benchmarks.quality.ours import metric_of
from pytest_ttnn_perf.gate.judge import judge_test, session_of
from pytest_ttnn_perf.gate.machine import explain_by_shift, shift_of
from pytest_ttnn_perf.records.baseline import Accepted, MetricBaseline, TestBaseline
from pytest_ttnn_perf.records.observation import MetricObservation, Observation
from pytest_ttnn_perf.records.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from benchmarks.quality import Array
    from pytest_ttnn_perf.records.metric import Metric

TESTS = 200
STORED = 10
SAMPLES = 10
#: A run measures once, and what stays suspect again up to twice.
PASSES = 3
#: The first test of every run is slower by this beside the machine.
SLOWED = 0.10


@dataclass(frozen=True)
class Shifted:
    """What a number of runs on a slower machine named, per run."""

    noise: Noise
    slower: float
    runs: int
    #: How many runs found that the machine has shifted.
    seen: int
    #: Unchanged tests that failed by name, and the same if confirms kept the shift.
    innocent: int
    innocent_without: int
    #: Runs that named the test that was slower than the machine.
    named: int


def run(noise: Noise, *, slower: float, runs: int, seed: tuple[int, ...]) -> Shifted:
    """Judge runs in which every test is ``slower``, and one more so."""
    chance = np.random.default_rng(seed)
    metric = metric_of(device=noise.device)
    seen = innocent = without = named = 0
    for _ in range(runs):
        times = draw(noise, chance, TESTS, tuple(range(STORED + PASSES)), SAMPLES)
        times[:, STORED:] *= 1 + slower
        times[0, STORED:] *= 1 + SLOWED
        shifted, failed, kept = _judge_run(times, metric)
        seen += shifted
        named += 0 in failed
        innocent += len(failed - {0})
        without += len(kept - {0})
    return Shifted(noise, slower, runs, seen, innocent, without, named)


def _judge_run(times: Array, metric: Metric) -> tuple[bool, set[int], set[int]]:
    """Return whether the machine shifted, and who fails: with the shift taken off, and without."""
    tests = [[tuple(samples) for samples in sessions] for sessions in times.tolist()]
    stored = [_baseline(sessions[:STORED], metric) for sessions in tests]
    first = [
        _judge(sessions[STORED:], 1, metric, baseline)
        for sessions, baseline in zip(tests, stored, strict=True)
    ]
    shift = shift_of([verdict] for verdict in first)
    failed: set[int] = set()
    kept: set[int] = set()
    for number, (sessions, baseline) in enumerate(zip(tests, stored, strict=True)):
        for adjusts, names in ((True, failed), (False, kept)):
            for passes in range(1, PASSES + 1):
                verdict = _judge(sessions[STORED:], passes, metric, baseline)
                if shift is not None:
                    seen = verdict if adjusts else verdict._replace(confirmed=())
                    (verdict,) = explain_by_shift([seen], shift)
                if verdict.outcome is not Outcome.REGRESSED:
                    break
            else:
                names.add(number)
    return shift is not None, failed, kept


def _judge(
    passes: list[tuple[float, ...]], count: int, metric: Metric, baseline: TestBaseline
) -> Verdict:
    observed = MetricObservation(metric, passes[0], confirmations=tuple(passes[1:count]))
    (verdict,) = judge_test(Observation("test", {metric.name: observed}), baseline)
    return verdict


def _baseline(sessions: list[tuple[float, ...]], metric: Metric) -> TestBaseline:
    empty = MetricObservation(metric, ())
    stored = tuple(session_of(replace(empty, samples=samples), samples) for samples in sessions)
    return TestBaseline(Accepted(""), {metric.name: MetricBaseline(metric, stored)})
