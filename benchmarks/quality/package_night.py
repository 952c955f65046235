"""The same run judged by the package itself: the proof that ``suite`` does what a run does."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.quality import ours, suite
from benchmarks.quality.history import Histories
from benchmarks.quality.runners import Runner, Weather
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.records.baseline import Accepted, MetricBaseline, TestBaseline
from pytest_ttnn_perf.records.hardware import CiJob
from pytest_ttnn_perf.records.json import encode
from pytest_ttnn_perf.records.metric import Metric
from pytest_ttnn_perf.records.observation import MetricObservation, Observation
from pytest_ttnn_perf.records.settings import Settings, Update
from pytest_ttnn_perf.report.sentences import Rerun
from pytest_ttnn_perf.run.gate_run import GateRun
from pytest_ttnn_perf.run.judge import is_failed
from pytest_ttnn_perf.run.record import RunContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.quality import Array

RUNS = 6


def check(runner: Runner, *, suites: int, seed: tuple[int, ...]) -> int:
    """Judge runs of small suites with the package too; return how many tests agreed.

    Raises:
        AssertionError: another test fails, or the machine is told otherwise.
    """
    chance = np.random.default_rng(seed)
    weather = Weather(runner, chance, suites)
    stored = np.concatenate([_next(weather, 1) for _ in range(RUNS)])
    weather.night += -weather.night % 3  # one on which something happens
    now = weather.measure(suite.MEASUREMENTS)
    # Some 0.3 s a test.
    scale = 30 * np.exp(0.8 * chance.standard_normal((suites, runner.tests)))[..., None, None]
    now, stored = now * scale, stored * scale
    slowed = chance.random((suites, runner.tests)) < 0.1
    now = now * np.where(slowed, 1.08, 1.0)[..., None, None]
    shape = now.shape[1:-1]
    histories = Histories.of(np.moveaxis(stored, 0, -2).reshape(-1, RUNS, runner.samples))
    of = ours.band(histories, ours.metric_of(device=False)).shaped(*shape)
    changes = [np.log(np.median(each, axis=-1)) - of.centre for each in now]
    seconds = now[0].sum(axis=-1).max(axis=-1) / 1e9
    fast = suite.judge(of, changes, seconds, updates=True)
    for at in range(suites):
        red, shifted, written = _package(stored[:, at], now[:, at])
        assert red == set(np.nonzero(fast.red[at])[0]), (red, np.nonzero(fast.red[at]))
        assert shifted == bool(fast.shifted[at]), (shifted, fast.shifted[at])
        ours_written = (fast.appended[at] | fast.accepted[at]).any(axis=1)
        assert written == set(np.nonzero(ours_written)[0]), (written, np.nonzero(ours_written))
    return suites * runner.tests


def _next(weather: Weather, count: int) -> Array:
    weather.next_night()
    return weather.measure(count, calm=True)


def _package(stored: Array, now: Array) -> tuple[set[int], bool, set[int]]:
    """Return who fails, whether the machine is slower, and whose results are written."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = Settings(
            baselines=folder / "baselines", artifacts=folder / "artifacts", update=Update.IMPROVED
        )
        context = RunContext(
            settings,
            folder,
            folder,
            Rerun(),
            CiJob(),
            isolated=True,
            profiler="",
            has_devices=False,
        )
        gate = GateRun(context)
        tests = [f"test_suite.py::test_{number:03}" for number in range(now.shape[1])]
        baselines = {test: _baseline(stored[:, at]) for at, test in enumerate(tests)}
        store = gate._store  # noqa: SLF001 (what the run itself reads)
        store.amend(
            context.hardware,
            {test: partial(_begin, baseline) for test, baseline in baselines.items()},
        )
        gate.begin(tests)
        for at, test in enumerate(tests):
            gate.judge(test, encode(_observation(test, now[0, at])))
        gate.assess_machine()
        again = {
            number: {test: _observation(test, now[number, at]) for at, test in enumerate(tests)}
            for number in range(1, len(now))
        }
        _confirm(gate, tests, again)
        judged = [gate.judged(test) for test in tests]
        known = [each for each in judged if each is not None]
        assert len(known) == len(tests)
        red = {at for at, each in enumerate(known) if is_failed(each, settings)}
        written = {at for at, each in enumerate(known) if each.written}
        return red, gate.shift is not None and gate.shift.worse, written


def _confirm(
    gate: GateRun, tests: list[str], measured: Mapping[int, Mapping[str, Observation]]
) -> None:
    """Do as the confirm passes of a run do, with what was measured already."""
    number, passes = 0, gate.settings.confirm
    while number < passes and (any(map(gate.in_question, tests)) or gate.doubts_shift):
        number += 1
        doubted = gate.doubts_shift
        asked = [test for test in tests if gate.in_question(test)]
        controls = gate.controls(asked, profiled=False)
        moves = gate.moves_of({test: measured[number][test] for test in controls})
        if doubted and gate.check_shift(moves.overall) is not None:
            moves = gate.moves_of({test: measured[number][test] for test in controls})
        both = gate.first_moves(), moves
        for test in asked:
            gate.confirm(test, measured[number][test], number=number, profiled=False, moves=both)
        if doubted and gate.shift is None:
            passes = 1 + gate.settings.confirm


def _begin(baseline: TestBaseline, _: TestBaseline | None) -> TestBaseline:
    return baseline


def _metrics(timings: int) -> list[Metric]:
    return [Metric(f"time_{number}", unit="ns") for number in range(timings)]


def _observation(test: str, times: Array) -> Observation:
    observed = {
        metric.name: MetricObservation(metric, tuple(map(float, samples)))
        for metric, samples in zip(_metrics(len(times)), times, strict=True)
    }
    return Observation(test, observed)


def _baseline(times: Array) -> TestBaseline:
    """Return a baseline of (runs, timings, samples) times."""
    metrics = {}
    for number, metric in enumerate(_metrics(times.shape[1])):
        empty = MetricObservation(metric, ())
        sessions = (
            session_of(empty, tuple(map(float, each[number])), f"run {at}")
            for at, each in enumerate(times)
        )
        metrics[metric.name] = MetricBaseline(metric, tuple(sessions))
    return TestBaseline(Accepted(""), metrics)
