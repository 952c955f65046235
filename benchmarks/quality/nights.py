"""Suites over many nights of ``--ttnn-perf-update``: this gate and the one before, same draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log1p
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.quality import ours, previous, suite
from benchmarks.quality.history import SINCE, Histories, summary
from benchmarks.quality.ours import Band
from benchmarks.quality.runners import Runner, Weather
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY as POLICY
from pytest_ttnn_perf.records.baseline import MAX_SESSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.quality import Array
    from benchmarks.quality.suite import Night

NIGHTS = 90
MONTH = 30
#: Regressions that are tried, on every second night, in one test of each suite ...
EFFECTS = (0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.10, 0.12, 0.15, 0.20)
TRIED_EVERY = 2
#: ... of so many suites at most.
TRIED_SUITES = 15
GATES = ("this gate", "previous gate")
#: What false reds are counted by: a month of 200 tests.
TEST_NIGHTS = 6_000


@dataclass
class Counts:
    """What one gate did over the nights of some suites."""

    #: By suite: tests that failed although unchanged.
    reds: list[int] = field(default_factory=list)
    nights: int = 0
    #: Nights that ended with a slower machine and no test named, or with any test named.
    exit_6: int = 0
    failed: int = 0
    #: Tests measured again, controls included.
    again: int = 0
    gains: int = 0
    #: Of the tests that failed, those that were too noisy to tell.
    noisy: int = 0
    found: dict[float, int] = field(default_factory=dict)
    tried: int = 0

    def add(self, other: Counts) -> None:
        """Add what another part of the same row has counted."""
        self.reds += other.reds
        for name in ("nights", "exit_6", "failed", "again", "gains", "noisy", "tried"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for effect, count in other.found.items():
            self.found[effect] = self.found.get(effect, 0) + count


@dataclass
class Row:
    """One kind of runner: both gates on the same draws."""

    runner: Runner
    counts: dict[str, Counts]

    @property
    def test_nights(self) -> int:
        """How many verdicts on unchanged tests there were."""
        return self.counts[GATES[0]].nights * self.runner.tests

    def reds_a_month(self, gate: str = GATES[0]) -> tuple[float, float, float]:
        """Return false reds in a month of 200 tests, and their 95 % interval.

        Suites are independent of each other, the nights of one are not: the interval is that of a
        mean over suites, or that of so few events where that is wider.
        """
        reds = np.asarray(self.counts[gate].reds, dtype=float)
        total, scale = reds.sum(), TEST_NIGHTS / self.test_nights
        reach = 1.96 * np.sqrt(len(reds)) * (reds.std(ddof=1) if len(reds) > 1 else 0.0)
        # The usual approximation to a Poisson count's interval; 3.7 for none.
        low = total - max(reach, 1.96 * np.sqrt(total))
        high = total + max(reach, 1.92 + 1.96 * np.sqrt(total + 1))
        return total * scale, max(0.0, low) * scale, high * scale

    def share(self, gate: str, name: str) -> float:
        """Return the share of nights of a kind."""
        counts = self.counts[gate]
        return float(getattr(counts, name) / counts.nights)

    def power(self, effect: float, gate: str = GATES[0]) -> float:
        """Return the share of regressions of this size that are named."""
        counts = self.counts[gate]
        return counts.found.get(effect, 0) / counts.tried if counts.tried else float("nan")

    def smallest_found(self, power: float, gate: str = GATES[0]) -> float | None:
        """Return the smallest regression found so often, between those tried; None for none."""
        below, least = 0.0, 0.0
        for effect in EFFECTS:
            found = self.power(effect, gate)
            if found >= power:
                part = (power - least) / (found - least) if found > least else 1.0
                return below + part * (effect - below)
            below, least = effect, found
        return None


def joined(parts: Sequence[Row]) -> Row:
    """Return one row of parts that differ in their seed only."""
    counts = {name: Counts() for name in GATES}
    for part in parts:
        for name, more in part.counts.items():
            counts[name].add(more)
    return Row(parts[0].runner, counts)


class _Gate:
    """The baselines of one gate, and how it judges."""

    def __init__(self, name: str, runner: Runner, suites: int) -> None:
        self.name, self.runner = name, runner
        self.shape = (suites, runner.tests, runner.timings)
        self.stored = Histories(int(np.prod(self.shape)), runner.samples)
        self.by_session = name != GATES[0]
        self.counts = Counts([0] * suites)

    def record(self, times: Array) -> None:
        """Begin all baselines anew with (sessions, suites, tests, timings, samples) times."""
        everywhere = np.ones(self.stored.runs.shape[1], dtype=bool)
        self.stored.replace(everywhere, *self._sessions(times), as_runs=self.by_session)

    def append(self, times: Array, where: Array | None = None) -> None:
        """Add the first of the measurements where there is room."""
        room = self.stored.runs[SINCE] < MAX_SESSIONS
        chosen = room if where is None else room & where.ravel()
        logs, mads = self._sessions(times[:1])
        self.stored.append(chosen, logs[chosen], mads[chosen], as_runs=self.by_session)

    def _sessions(self, times: Array) -> tuple[Array, Array]:
        logs, mads = summary(times)
        return logs.reshape(len(times), -1).T, mads.reshape(len(times), -1).T

    def band(self) -> Band:
        """Return the bands as they are tonight."""
        metric = ours.metric_of(device=False)
        of = previous.band(self.stored) if self.by_session else ours.band(self.stored, metric)
        return of.shaped(*self.shape)

    def judge(self, of: Band, logs: Array, weather: Weather, at: Array | None = None) -> Night:
        """Judge tonight's run of each suite, or of those ``at`` some places: bands and logs too."""
        changes = [each - of.centre for each in logs]
        updates = self.runner.updates
        if self.by_session:
            return previous.judge(of, changes, updates=updates)
        chosen = slice(None) if at is None else at
        return suite.judge(of, changes, weather.seconds[chosen], updates=updates)

    def live(self, of: Band, times: Array, logs: Array, weather: Weather) -> None:
        """Judge a night of unchanged code, count, and update the baselines if that is due."""
        night = self.judge(of, logs, weather)
        counts = self.counts
        for at, number in enumerate(night.red.sum(axis=1)):
            counts.reds[at] += int(number)
        failed = night.red.any(axis=1)
        counts.nights += len(failed)
        counts.failed += int(failed.sum())
        counts.exit_6 += int((night.shifted & ~failed).sum())
        counts.again += int(night.again.sum())
        counts.gains += int(night.accepted.sum())
        counts.noisy += int(night.noisy.sum())
        if not self.runner.updates or weather.night % self.runner.apart:
            return
        self.append(times, night.appended)
        if night.accepted.any():
            where = night.accepted.ravel()
            logs_by_cell, mads = self._sessions(times[: 1 + suite.PASSES])
            self.stored.accept(where, logs_by_cell[where], mads[where], as_runs=self.by_session)

    def try_regressions(self, of: Band, logs: Array, weather: Weather, slowed: Array) -> None:
        """Count the nights on which one test of a suite, slower by some share, is named.

        In suites of many tests a larger regression is taken to be found where a smaller one is, and
        one that is not even measured again is not judged any further: nothing else comes out.
        """
        suites = np.arange(min(len(slowed), TRIED_SUITES))
        many = self.runner.tests >= POLICY.shift_tests
        found: Array = np.zeros(len(suites), dtype=bool)
        for effect in EFFECTS:
            found = found if many else np.zeros_like(found)
            own = logs[0][suites, slowed[suites]] - of.centre[suites, slowed[suites]]
            near = own + log1p(effect) > POLICY.screen * of.limit[suites, slowed[suites]]
            at = suites[~found & near.any(axis=1)] if many else suites
            if len(at):
                slower = logs[:, at].copy()
                slower[:, np.arange(len(at)), slowed[at]] += log1p(effect)
                part = Band(*(each[at] for each in of))
                night = self.judge(part, slower, weather, at)
                found[at] = night.red[np.arange(len(at)), slowed[at]]
            self.counts.found[effect] = self.counts.found.get(effect, 0) + int(found.sum())
        self.counts.tried += len(suites)


def run(runner: Runner, *, suites: int, nights: int, seed: tuple[int, ...]) -> Row:
    """Let suites live on one kind of runner."""
    chance = np.random.default_rng(seed)
    weather = Weather(runner, chance, suites)
    gates = [_Gate(name, runner, suites) for name in GATES]
    _record(gates, weather)
    for number in range(nights):
        weather.next_night()
        times = weather.measure(suite.MEASUREMENTS)
        if runner.anew and number and number % MONTH == 0:
            for gate in gates:
                gate.record(times[: 1 + suite.PASSES])
            continue
        logs = np.log(np.median(times, axis=-1))
        slowed = chance.integers(0, runner.tests, suites)
        for gate in gates:
            of = gate.band()
            if number % TRIED_EVERY == 0:
                gate.try_regressions(of, logs, weather, slowed)
            gate.live(of, times, logs, weather)
    return Row(runner, {gate.name: gate.counts for gate in gates})


def _record(gates: list[_Gate], weather: Weather) -> None:
    """Record baselines: a new one is measured three times in its night, then once each night."""
    runner = weather.runner
    count = runner.one_hour or 1 + suite.PASSES
    times = weather.measure(count, calm=True)
    for gate in gates:
        gate.record(times)
    for _ in range(runner.recorded - 1 if not runner.one_hour else 0):
        for _ in range(runner.apart):
            weather.next_night()
        times = weather.measure(1, calm=True)
        for gate in gates:
            gate.append(times)
