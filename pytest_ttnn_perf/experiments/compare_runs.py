"""Two runs joined, test by test and metric by metric."""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pytest_ttnn_perf.core.hardware import Environment
from pytest_ttnn_perf.core.observation import Observation
from pytest_ttnn_perf.gate.judge import settled_value
from pytest_ttnn_perf.gate.judging import observed_change_by_op

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import MetricObservation, Run


class Difference(Struct, frozen=True):
    """A field that is not the same in both runs; None where a run does not have it."""

    field: str
    before: Scalar
    after: Scalar


class Reading(Struct, frozen=True):
    """What one run says of a metric; ``value`` is None without a finite number."""

    metric: Metric
    value: float | None


class Pair(Struct, frozen=True):
    """One metric of one test in both runs; None in a run that does not have it.

    ``obstacle`` is what forbids to compare the two.
    """

    test: str
    metric: str
    before: Reading | None
    after: Reading | None
    obstacle: Difference | None = None

    @property
    def unit(self) -> str | None:
        """The unit of the values; None where each has its own."""
        units = {reading.metric.unit for reading in (self.before, self.after) if reading}
        return units.pop() if len(units) == 1 else None

    @property
    def values(self) -> tuple[float, float] | None:
        """Both values, if they may be compared."""
        if self.obstacle or self.before is None or self.after is None:
            return None
        before, after = self.before.value, self.after.value
        return None if before is None or after is None else (before, after)

    @property
    def change(self) -> float | None:
        """How much more there is than before, as a fraction (0.05 = 5 % more).

        None where nothing was compared, and for a change from nothing, which has no size.
        """
        if self.values is None:
            return None
        before, after = self.values
        if before == after:
            return 0.0
        change = (after - before) / abs(before) if before else inf
        return change if isfinite(change) else None


class Trouble(Struct, frozen=True):
    """Why one run (``before`` or ``after``) may lack metrics of a test."""

    run: str
    test: str
    what: str


class ByOp(Struct, frozen=True):
    """Which ops make up the change of a test's times, in a sentence."""

    test: str
    sentence: str


class RunComparison(Struct, frozen=True):
    """Every metric of either run, what differs around them, and what went wrong in them.

    ``by_op`` is of the tests that have an op table in both runs.
    """

    before: Run
    after: Run
    pairs: tuple[Pair, ...]
    environment: tuple[Difference, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    by_op: tuple[ByOp, ...] = ()


#: What differs between any two runs, or any two commits, and says nothing.
_FLEETING: Final = frozenset(
    {"started_at", "load_1m", "committed_at", "parents", "attempt", "shard"}
)


def compare_runs(before: Run, after: Run) -> RunComparison:
    """Join two runs; what only one of them has comes after what the first has."""
    return RunComparison(
        before,
        after,
        pairs=tuple(_pairs(before, after)),
        environment=tuple(_changed_environment(before.environment, after.environment)),
        troubles=(*_troubles("before", before), *_troubles("after", after)),
        by_op=tuple(_by_op(before, after)),
    )


def _pairs(before: Run, after: Run) -> Iterator[Pair]:
    for test in _either(before.tests, after.tests):
        first, second = (_observation(run, test) for run in (before, after))
        differs = first.setting.first_difference(second.setting)
        setting = Difference(*differs) if differs else None
        obstacle = _other_hardware(before, after, test) or setting
        for name in _either(first.metrics, second.metrics):
            then, now = (_reading(observation.metrics.get(name)) for observation in (first, second))
            in_the_way = None
            if then and now:
                in_the_way = obstacle or _other_metric(then.metric, now.metric)
            yield Pair(test, name, then, now, in_the_way)


def _by_op(before: Run, after: Run) -> Iterator[ByOp]:
    for test in before.tests:
        ours, theirs = _observation(before, test), _observation(after, test)
        if _other_hardware(before, after, test) is None:
            sentence = observed_change_by_op(ours, theirs)
            if sentence is not None:
                yield ByOp(test, sentence)


def _either(first: Iterable[str], second: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys([*first, *second])


def _observation(run: Run, test: str) -> Observation:
    """Return what a run says of a test; of one that it does not have, nothing."""
    return run.tests[test].observation if test in run.tests else Observation(test)


def _other_hardware(before: Run, after: Run, test: str) -> Difference | None:
    first, second = (_observation(run, test).hardware or run.hardware for run in (before, after))
    if first is None or second is None or first.key == second.key:
        return None  # a run without hardware does not have this test
    return Difference("hardware", first.key, second.key)


def _other_metric(before: Metric, after: Metric) -> Difference | None:
    part = before.differs_from(after)
    if part:
        return Difference(part, before.part(part), after.part(part))
    if before.source is not after.source:
        return Difference("source", before.source.value, after.source.value)
    return None


def _reading(observed: MetricObservation | None) -> Reading | None:
    return None if observed is None else Reading(observed.metric, settled_value(observed))


def _changed_environment(before: Environment, after: Environment) -> Iterator[Difference]:
    for name in Environment.__struct_fields__:
        then, now = getattr(before, name), getattr(after, name)
        if then != now and name not in _FLEETING:
            yield Difference(name, then, now)


def _troubles(name: str, run: Run) -> Iterator[Trouble]:
    for test, judged in run.tests.items():
        observation = judged.observation
        if observation.lost is not None:
            yield Trouble(name, test, f"its worker {observation.lost}")
        elif observation.raised is not None:
            yield Trouble(name, test, f"the test raised {observation.error}")
        elif observation.out_of_memory is not None:
            yield Trouble(name, test, f"out of memory: {observation.out_of_memory}")
        elif observation.unconfirmed is not None:
            yield Trouble(name, test, f"could not be confirmed: {observation.unconfirmed}")
        elif not observation.metrics:
            yield Trouble(name, test, "the test recorded no metric")
