"""Baselines from recorded runs: the last runs of a branch become the sessions of a test.

What is not the same test all along is refused, and so is what got worse: however slowly it came,
nobody has accepted it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import chain
from math import expm1, isfinite, log, log1p
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.gate.ratios import band_of, centre_of
from pytest_ttnn_perf.history.series import LATEST, series_of
from pytest_ttnn_perf.history.steps import LEAST_SERIES
from pytest_ttnn_perf.history.trends import circumstances, find_trends, tracks_of
from pytest_ttnn_perf.records.baseline import MetricBaseline
from pytest_ttnn_perf.records.hardware import Hardware
from pytest_ttnn_perf.records.metric import Better, median
from pytest_ttnn_perf.records.settings import MIN_REFRESHED
from pytest_ttnn_perf.records.verdict import Outcome
from pytest_ttnn_perf.report.numbers import format_value
from pytest_ttnn_perf.report.sentences import accept_command, sentence
from pytest_ttnn_perf.run.judge import Policies, judge_observation, violations
from pytest_ttnn_perf.run.update import Action, Change, acceptance_now, sessions_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.history.runs import RecordedRun, RunHistory, Source
    from pytest_ttnn_perf.history.series import Series
    from pytest_ttnn_perf.history.trends import Trend
    from pytest_ttnn_perf.records.baseline import Session, TestBaseline
    from pytest_ttnn_perf.records.metric import Metric
    from pytest_ttnn_perf.records.observation import JudgedTest, Observation, Run
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.records.verdict import Verdict


class Taken(NamedTuple):
    """A run of a test that can become a session; ``number`` is its place in the history."""

    number: int
    run: RecordedRun
    observation: Observation

    @property
    def name(self) -> str:
        """What a session calls it."""
        return self.run.id or f"{self.run.source.name} of {self.run.at}"


@dataclass(frozen=True, slots=True)
class Window:
    """The last runs of a test on one hardware, the oldest first; ``unfit`` were passed over."""

    hardware: Hardware
    test: str
    runs: tuple[Taken, ...]
    unfit: int

    @property
    def newest(self) -> Taken:
        """The last run."""
        return self.runs[-1]


class Obstacle(NamedTuple):
    """Why a baseline is not refreshed, and what to do about it."""

    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh makes of the baseline of a test; ``gained`` are metrics that got better."""

    change: Change
    gained: frozenset[str]

    def __call__(self, stored: TestBaseline | None) -> TestBaseline:
        """Return the baseline with other sessions, which still knows what was accepted."""
        after = self.change(stored)
        metrics = dict(after.metrics)
        before = stored.metrics if stored else {}
        for name, action in self.change.actions.items():
            if action is Action.REPLACE and name in before and name not in self.gained:
                accepted = _accepted_value(before[name])
                metrics[name] = replace(metrics[name], accepted_value=accepted)
        return replace(after, metrics=metrics)


def _accepted_value(stored: MetricBaseline) -> float:
    """Return the centre at the last accept, in the digits that are stored."""
    value = stored.accepted_value
    return float(f"{centre_of(stored):.7g}") if value is None else value


class Refresh:
    """Looks at tests of a history, one after the other.

    ``last`` is how many runs a baseline is made of. ``options`` are what commands that are offered
    must repeat.
    """

    def __init__(
        self,
        history: RunHistory,
        store: BaselineStore,
        settings: Settings,
        *,
        last: int,
        options: tuple[str, ...] = (),
    ) -> None:
        self.history, self.store, self.settings = history, store, settings
        self.last, self.options = last, options
        self._policies = Policies(store)
        self._records: dict[Source, Run | None] = {}

    def windows(self) -> Iterator[Window]:
        """Yield the last runs of each test and key that are fit to be compared with."""
        having: dict[tuple[str, str], dict[int, str]] = {}
        for number, run in enumerate(self.history.runs):
            for reading in run.readings:
                own = having.setdefault((reading.key, reading.test), {})
                own[number] = reading.recorded_as or reading.test
        for (key, test), names in sorted(having.items()):
            hardware = Hardware.from_key(key)
            if hardware is None:
                continue
            taken: list[Taken] = []
            unfit = 0
            for number, recorded_as in sorted(names.items(), reverse=True):
                if len(taken) == self.last:
                    break
                observation = self._fit(self.history.runs[number], recorded_as)
                if observation is None:
                    unfit += 1
                else:
                    renamed = replace(observation, test=test, hardware=hardware)
                    taken.append(Taken(number, self.history.runs[number], renamed))
            yield Window(hardware, test, tuple(reversed(taken)), unfit)

    def _fit(self, run: RecordedRun, test: str) -> Observation | None:
        """Return what a run observed of a test; None if it must not be compared with."""
        if run.source not in self._records:
            try:
                self._records[run.source] = run.source.read()
            except TtnnPerfError:  # its numbers are known, and what they are made of is gone
                self._records[run.source] = None
        read = self._records[run.source]
        judged = read.tests.get(test) if read else None
        if read is None or judged is None or not read.complete or read.shift is not None:
            return None
        seen = judged.observation
        trouble = (seen.lost, seen.raised, seen.out_of_memory, seen.unconfirmed, *seen.problems)
        return None if any(trouble) else seen

    def obstacle(self, window: Window) -> Obstacle | None:
        """Say why the runs of a test must not become its baseline; None if they may."""
        if len(window.runs) < self.last:
            return self._too_few(window)
        first = self._unlike(window)
        if first is not None:
            return first
        judged = [self._judged(taken, window) for taken in window.runs]
        obstacles = chain(
            self._failing(window, judged), self._changed(window), self._crept(window, judged[-1])
        )
        return next(obstacles, None)

    def _judged(self, taken: Taken, window: Window) -> JudgedTest:
        return judge_observation(taken.observation, self._policies, hardware=window.hardware)

    def _accept(self, window: Window) -> str:
        source = window.newest.run.source
        accept = accept_command([source.file], (window.test,), self.options)
        return f"(after ttnn-perf history export -o .) {accept}" if source.is_stored else accept

    def _too_few(self, window: Window) -> Obstacle:
        count = len(window.runs)
        more = ""
        if window.unfit:
            more = f"; {window.unfit} more were cut short, had no result, or a machine that shifted"
        why = f"expected {self.last} runs, found {count}{more}"
        fewer = f"--last {count} takes these" if count >= MIN_REFRESHED else "wait for more runs"
        return Obstacle(why, fewer)

    def _unlike(self, window: Window) -> Obstacle | None:
        """Refuse runs that did not all measure the same thing, or not what is stored."""
        newest = window.newest.observation
        for taken in window.runs:
            differs = taken.observation.setting.first_difference(newest.setting)
            if differs is not None:
                name, then, now = differs
                why = f"the configuration changed within these runs: {name} {then!r} → {now!r}"
                return Obstacle(why, self._after(window, taken.number))
        stored = self.store.find(window.hardware, window.test)
        keys = () if stored else self.store.keys_with(window.test)
        if keys:
            why = f"these runs are of {window.hardware.key}, its baselines of {', '.join(keys)}"
            return Obstacle(why, f"to begin with them: {self._accept(window)}")
        if stored is not None:
            differs = newest.setting.first_difference(stored.configuration)
            if differs is not None:
                name, now, then = differs
                why = f"another configuration: {name} is {now!r}, in the baseline {then!r}"
                return Obstacle(why, f"accept it with: {self._accept(window)}")
        return None

    def _after(self, window: Window, last_before: int) -> str:
        """Return what to do where something changed within the runs."""
        count = sum(taken.number > last_before for taken in window.runs)
        fewer = ""
        if count >= MIN_REFRESHED:
            fewer = f"take the {count} runs since then with --last {count}, or "
        return f"{fewer}wait until there are {self.last} runs after it"

    def _failing(self, window: Window, judged: Sequence[JudgedTest]) -> Iterator[Obstacle]:
        """Yield what fails a test apart from its times and throughputs."""
        for taken, one in zip(window.runs, judged, strict=True):
            for finding in violations(one, self.settings.checklist):
                why = f"{taken.name}: {finding.code} {finding.name}: {finding.reason or 'found'}"
                yield Obstacle(why, f"see: ttnn-perf rules {finding.code}")
            for verdict in one.verdicts:
                if _forbids(verdict):
                    why = f"{taken.name}: {sentence(verdict)}"
                    yield Obstacle(why, f"accept it with: {self._accept(window)}")
        newest = judged[-1]
        replaced = set(_replaced(window, newest))
        for verdict in newest.verdicts:
            metric, seen = verdict.metric, newest.observation.metrics
            is_part = any(total in seen for total in metric.totals)
            if metric.compared_by_ratio and metric.name not in replaced and not is_part:
                other = next(t.name for t in window.runs if not _has(t, metric))
                yield Obstacle(f"{metric.name} is not in {other}, or is defined otherwise there",
                               "wait for more runs that have it")  # fmt: skip
        yield from self._noisy(window, newest)

    def _noisy(self, window: Window, judged: JudgedTest) -> Iterator[Obstacle]:
        """Yield metrics that vary so much from run to run that no gate could be made of them."""
        policy = self._policies.of(window.hardware, judged.observation.metrics.values())
        for name in _replaced(window, judged):
            observed = judged.observation.metrics[name]
            alone = MetricBaseline(observed.metric, _sessions(window, name))
            noise = band_of(alone, observed.limits, policy=policy).noise
            if noise > log1p(max(policy.too_noisy, observed.limits.tolerance or 0.0)):
                why = f"{name} varies too much from run to run: by up to {percent(expm1(noise))}"
                yield Obstacle(why, "raise iterations= or quiet the machine")

    def _changed(self, window: Window) -> Iterator[Obstacle]:
        """Yield changes that came within the runs: their numbers are of two levels."""
        for name, trend in self._trends_of(window):
            after = trend.rivals[0].runs
            sides = {taken.number in after for taken in window.runs}
            if len(sides) == 2:
                good, bad = (self.history.runs[n] for n in (trend.good, trend.bad))
                size = f"{'+' if trend.size > 0 else '−'}{percent(abs(trend.change))}"
                why = (
                    f"{name} changed within these runs, {size} (plus is worse), between "
                    f"{good.short_commit} of {good.day} and {bad.short_commit} of {bad.day}"
                )
                before = max(t.number for t in window.runs if t.number not in after)
                remedy = self._after(window, before)
                yield Obstacle(why, f"see: ttnn-perf trends; {remedy}")

    def _trends_of(self, window: Window) -> Iterator[tuple[str, Trend]]:
        """Yield the changes of a test, and of most tests of its hardware."""
        key = window.hardware.key
        for trend in self._trends:
            if trend.track is None:
                if trend.group[0] == key:
                    yield "most tests", trend
            else:
                series = self._long[trend.track]
                if (series.key, series.test) == (key, window.test):
                    yield series.metric.name, trend

    @cached_property
    def _long(self) -> list[Series]:
        every = series_of(self.history.runs)
        return [s for s in every if s.by_ratio and s.gated and len(s.points) >= LEAST_SERIES]

    @cached_property
    def _trends(self) -> list[Trend]:
        return find_trends(tracks_of(self._long), circumstances(self.history.runs))

    def _crept(self, window: Window, judged: JudgedTest) -> Iterator[Obstacle]:
        """Yield metrics that are further from what was accepted than the gate lets pass."""
        stored = self.store.find(window.hardware, window.test)
        if stored is None:
            return
        for name in _replaced(window, judged):
            if name in stored.metrics:
                worse, limit = self._since_accept(window, name, stored.metrics[name])
                if worse > limit:
                    metric = stored.metrics[name]
                    accepted = format_value(metric.metric, _accepted_value(metric))
                    why = (
                        f"{name} is {percent(expm1(worse))} worse than what was last accepted, "
                        f"{accepted} (limit {percent(expm1(limit))}): however slowly that came, "
                        "nobody has accepted it"
                    )
                    remedy = (
                        f"find out why: ttnn-perf trends; accept it with: {self._accept(window)}"
                    )
                    yield Obstacle(why, remedy)

    def _since_accept(
        self, window: Window, name: str, stored: MetricBaseline
    ) -> tuple[float, float]:
        """Return how much worse a metric is than what was accepted, and its limit; logarithms.

        The worse of all runs and the latest of them: a slow change is at its end in these.
        """
        newest = window.newest.observation
        policy = self._policies.of(window.hardware, newest.metrics.values())
        observed = newest.metrics[name]
        band = band_of(stored, observed.limits, policy=policy, samples=len(observed.samples))
        sign = -1.0 if stored.metric.better is Better.HIGHER else 1.0
        logs = [log(session.median) for session in _sessions(window, name)]
        levels = (median(logs), median(logs[-LATEST:]))
        accepted = log(_accepted_value(stored))
        return max(sign * (level - accepted) for level in levels), band.limit

    def change(self, window: Window, reason: str) -> Refreshed:
        """Return what runs without an obstacle make of a baseline."""
        newest = window.newest
        judged = self._judged(newest, window)
        stored = self.store.find(window.hardware, window.test)
        names = _replaced(window, judged)
        actions = {v.metric.name: _OTHERS.get(v.outcome, Action.KEEP) for v in judged.verdicts}
        actions |= dict.fromkeys(names, Action.REPLACE)
        measured = dict(sessions_of([(newest.name, judged)]))
        measured |= {name: _sessions(window, name) for name in names}
        accepted = acceptance_now(newest.run.environment, reason)
        gained = [
            name
            for name in names
            if stored and name in stored.metrics
            if self._is_gain(window, name, stored.metrics[name])
        ]
        change = Change(newest.observation, actions, accepted, measured, {})
        return Refreshed(change, frozenset(gained))

    def _is_gain(self, window: Window, name: str, stored: MetricBaseline) -> bool:
        """Tell whether a metric got better by more than noise: what it was is not of interest."""
        worse, limit = self._since_accept(window, name, stored)
        return worse < -limit


#: Outcomes of what is compared exactly, or by a difference, with which times may be refreshed.
_FINE: Final = frozenset({Outcome.WITHIN, Outcome.IMPROVED, Outcome.NO_BASELINE, Outcome.SHIFTED})
#: What becomes of metrics that are no times or throughputs.
_OTHERS: Final = {Outcome.NO_BASELINE: Action.ADD}


def _forbids(verdict: Verdict) -> bool:
    """Tell whether a verdict keeps a run out of a baseline; how slow it was is looked at later."""
    if not verdict.metric.compared_by_ratio:
        return verdict.outcome not in _FINE
    never = verdict.outcome is Outcome.REGRESSED and verdict.reason is not None
    return never or verdict.outcome in {Outcome.NO_DATA, Outcome.NOT_COMPARABLE}


def _replaced(window: Window, judged: JudgedTest) -> list[str]:
    """Return the times and throughputs that a refresh is about: those that all runs have."""
    named = (verdict.metric for verdict in judged.verdicts if verdict.metric.compared_by_ratio)
    return [
        metric.name
        for metric in named
        if metric.name in judged.observation.metrics
        if all(_has(taken, metric) for taken in window.runs)
    ]


def _has(taken: Taken, metric: Metric) -> bool:
    observed = taken.observation.metrics.get(metric.name)
    if observed is None or observed.metric != metric or not observed.samples:
        return False
    return all(isfinite(sample) and sample > 0 for sample in observed.samples)


def _sessions(window: Window, name: str) -> tuple[Session, ...]:
    """Return a session for each run: its first measurement, as what was measured again is noise."""
    found: dict[str, Session] = {}
    for taken in window.runs:
        observed = taken.observation.metrics[name]
        run = observed.capture or taken.name  # a capture is the same in all runs
        found.setdefault(run, session_of(observed, observed.samples, run))
    return tuple(found.values())
