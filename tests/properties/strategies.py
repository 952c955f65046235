"""What the property tests draw from: baselines of a chosen noise, and runs against them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import Limits, MetricObservation, Observation
from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.gate.ratios import judge_ratio

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from pytest_ttnn_perf.core.observation import Verdict

#: As many examples as usual, half as many, and twice as many.
SOME = settings()
FEW = settings(max_examples=SOME.max_examples // 2)
MANY = settings(max_examples=SOME.max_examples * 2)

DIRECTIONS = st.sampled_from([Better.LOWER, Better.HIGHER])
#: What the gate compares by ratio, in every unit that has a rule of its own and in one that has
#: none.
TIMINGS = st.builds(
    Metric,
    name=st.just("m"),
    unit=st.sampled_from(["ns", "us", "ms", "s", "tok/s"]),
    better=DIRECTIONS,
    kind=st.sampled_from([Kind.TIME, Kind.THROUGHPUT]),
    source=st.sampled_from(Source),
)
METRICS = st.builds(
    Metric,
    name=st.just("m"),
    unit=st.sampled_from(["ns", "s", "B", ""]),
    better=st.sampled_from(Better),
    kind=st.sampled_from(Kind),
    source=st.sampled_from(Source),
)
#: A limit far below the last digits of a measurement would only test rounding.
FRACTIONS = st.none() | st.just(0.0) | st.floats(1e-6, 0.5)
LIMITS = st.builds(Limits, tolerance=FRACTIONS, max_regression=FRACTIONS)
NON_FINITE = st.sampled_from([math.nan, math.inf, -math.inf])


def between(low: float, high: float) -> SearchStrategy[float]:
    """Draw a number from ``low`` to ``high``."""
    return st.floats(low, high, allow_nan=False)


class Case(Struct, frozen=True):
    """A baseline, and a run to hold against it."""

    baseline: MetricBaseline
    run: MetricObservation

    def judged(self) -> Verdict:
        """Judge the run."""
        return judge_ratio(self.run, self.baseline)

    def with_samples(self, *samples: float) -> Case:
        """Return the case with other samples."""
        return replace(self, run=replace(self.run, samples=samples))

    def with_confirmations(
        self, *confirmations: tuple[float, ...], machine: tuple[float | None, ...] = ()
    ) -> Case:
        """Return the case with other confirm passes, and what the machine did in each pass."""
        run = replace(self.run, confirmations=confirmations, machine=machine)
        return replace(self, run=run)


def judged(run: MetricObservation, baseline: MetricBaseline | None) -> Verdict:
    """Judge one metric through the same door as a whole test."""
    stored = TestBaseline(Acceptance("now"), {run.metric.name: baseline}) if baseline else None
    (verdict,) = judge_test(Observation("test_a.py::test", {run.metric.name: run}), stored)
    return verdict


@st.composite
def baselines(draw: DrawFn, metric: Metric, *, spread: float) -> MetricBaseline:
    """Draw a baseline whose sessions differ by at most a factor of exp(2 · ``spread``).

    Sessions of one run stand side by side, and no run is on both sides of the last accept.
    """
    base = 10 ** draw(between(1, 9))
    medians = [
        base * math.exp(noise)
        for noise in draw(st.lists(between(-spread, spread), min_size=1, max_size=25))
    ]
    since = draw(st.integers(0, len(medians) - 1))
    number, sessions = 0, []
    for place, median in enumerate(medians):
        number += place == since or draw(st.sampled_from([0, 1, 1]))
        within, count = draw(between(0, spread)), draw(st.integers(1, 50))
        sessions.append(Session(median, median * within, count, f"run-{number}"))
    return MetricBaseline(metric, tuple(sessions), since)


@st.composite
def cases(draw: DrawFn, *, spread: float = 0.1, shift: float = 1.0) -> Case:
    """Draw a timing's baseline and a run that is up to exp(``shift``) times off."""
    metric = draw(TIMINGS)
    baseline = draw(baselines(metric, spread=spread))
    base = baseline.sessions[-1].median
    off = draw(between(-shift, shift))
    noise = draw(st.lists(between(-spread, spread), min_size=1, max_size=12))
    samples = tuple(base * math.exp(off + each) for each in noise)
    return Case(baseline, MetricObservation(metric, samples, limits=draw(LIMITS)))
