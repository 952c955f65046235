"""Two runs joined, test by test and metric by metric."""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import Environment, first_difference
from pytest_ttnn_perf.core.observation import JudgedTest, Observation, value_of
from pytest_ttnn_perf.gate.judging import observed_change_by_op

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import Run


class Difference(Struct, frozen=True):
    """A field that differs between two runs; None if it is missing."""

    field: str
    before: Scalar
    after: Scalar


class Reading(Struct, frozen=True):
    """One run's value of a metric; None without a finite number."""

    metric: Metric
    value: float | None


class Pair(Struct, frozen=True):
    """One metric of one test in both runs.

    A run that does not have it has None. ``obstacle`` forbids comparing the two.
    """

    test: str
    metric: str
    before: Reading | None
    after: Reading | None
    obstacle: Difference | None = None

    @property
    def unit(self) -> str | None:
        units = {reading.metric.unit for reading in (self.before, self.after) if reading}
        return units.pop() if len(units) == 1 else None

    @property
    def values(self) -> tuple[float, float] | None:
        if self.obstacle or self.before is None or self.after is None:
            return None
        before, after = self.before.value, self.after.value
        return None if before is None or after is None else (before, after)

    @property
    def change(self) -> float | None:
        """Relative change (0.05 = 5 % more); None from zero."""
        if self.values is None:
            return None
        before, after = self.values
        if before == after:
            return 0.0
        change = (after - before) / abs(before) if before else inf
        return change if isfinite(change) else None


class RunComparison(Struct, frozen=True):
    """Two runs, metric by metric, with what else differs.

    ``troubles`` are the run (``before`` or ``after``), the test, and why it may lack metrics.
    ``by_op`` has the ops behind the change of a test's times, in a sentence.
    """

    before: Run
    after: Run
    pairs: tuple[Pair, ...]
    environment: tuple[Difference, ...] = ()
    troubles: tuple[tuple[str, str, str], ...] = ()
    by_op: dict[str, str] = {}


#: What differs between any two runs, or any two commits, and says nothing.
_FLEETING: Final = frozenset(
    {"started_at", "load_1m", "committed_at", "parents", "attempt", "shard"}
)


def compare_runs(before: Run, after: Run) -> RunComparison:
    """Join two runs; what only the second has comes last."""
    pairs: list[Pair] = []
    by_op: dict[str, str] = {}
    for test in dict.fromkeys([*before.tests, *after.tests]):
        first, second = (_judged(run, test) for run in (before, after))
        pairs += pairs_of(first, second)
        sentence = by_op_of(first.observation, second.observation)
        by_op |= {test: sentence} if sentence is not None else {}
    environment = (
        Difference(name, then, now)
        for name in Environment.__struct_fields__
        if name not in _FLEETING
        for then, now in [(getattr(run.environment, name) for run in (before, after))]
        if then != now
    )
    troubles = (*_troubles("before", before), *_troubles("after", after))
    return RunComparison(before, after, tuple(pairs), tuple(environment), troubles, by_op)


def _judged(run: Run, test: str) -> JudgedTest:
    if test not in run.tests:
        return JudgedTest(Observation(test))
    judged = run.tests[test]
    seen = judged.observation
    return replace(judged, observation=replace(seen, hardware=seen.hardware or run.hardware))


def pairs_of(before: JudgedTest, after: JudgedTest) -> list[Pair]:
    """Join two observations of a test, metric by metric."""
    first, second = before.observation, after.observation
    differs = first_difference(first.setting, second.setting)
    obstacle = _other_hardware(first, second) or (Difference(*differs) if differs else None)
    pairs = []
    for name in dict.fromkeys([*first.metrics, *second.metrics]):
        then, now = (_reading(side, name) for side in (before, after))
        in_the_way = (obstacle or _other_metric(then.metric, now.metric)) if then and now else None
        pairs.append(Pair(first.test, name, then, now, in_the_way))
    return pairs


def by_op_of(first: Observation, second: Observation) -> str | None:
    return None if _other_hardware(first, second) else observed_change_by_op(first, second)


def _reading(judged: JudgedTest, name: str) -> Reading | None:
    observed = judged.observation.metrics.get(name)
    if observed is None:
        return None
    own = (verdict for verdict in judged.verdicts if verdict.metric.name == name)
    return Reading(observed.metric, value_of(observed, next(own, None)))


def _other_hardware(first: Observation, second: Observation) -> Difference | None:
    before, after = first.hardware, second.hardware
    if before is None or after is None or before.key == after.key:
        return None
    return Difference("hardware", before.key, after.key)


def _other_metric(before: Metric, after: Metric) -> Difference | None:
    part = before.differs_from(after)
    if part:
        return Difference(part, before.part(part), after.part(part))
    if before.source is not after.source:
        return Difference("source", before.source.value, after.source.value)
    return None


def _troubles(name: str, run: Run) -> Iterator[tuple[str, str, str]]:
    for test, judged in run.tests.items():
        observation = judged.observation
        if observation.ended:
            yield name, test, str(observation.ended)
        elif not observation.metrics:
            yield name, test, "the test recorded no metric"
