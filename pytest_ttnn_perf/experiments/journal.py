"""The journal: from the first measurement, by the steps that were kept, to what there is now.

For each test the parts of the way sum to the whole: what no kept step explains, such as drift of
the machine or commits that nobody tried, has a line of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.experiments.try_verdict import main_time
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Better, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.records.metric import Metric
    from pytest_ttnn_perf.records.step import Effect, Situation, Step


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a test. ``effect`` is that on its main metric; None where it has none.

    ``counts`` is what it adds to the whole, in the unit of the metric: nothing where it was not
    kept.
    """

    number: int
    step: Step
    effect: Effect | None
    device: Effect | None
    accuracy: Effect | None
    counts: float


@dataclass(frozen=True, slots=True)
class Way:
    """The way of one test: ``first`` and all parts and the ``unexplained`` sum to ``now``."""

    test: str
    metric: Metric
    first: float
    now: float
    parts: tuple[Part, ...]
    target: float | None
    situation: Situation | None

    @property
    def unexplained(self) -> float:
        """What lies between the first and the last measurement beside the kept steps."""
        return self.now - self.first - sum(part.counts for part in self.parts)

    @property
    def change(self) -> float:
        """How much more there is now than in the beginning, as a fraction."""
        return self.now / self.first - 1

    @property
    def to_target(self) -> float | None:
        """What is missing to the target, in the unit of the metric; not above 0 once reached."""
        if self.target is None:
            return None
        missing = self.now - self.target
        return -missing if self.metric.better is Better.HIGHER else missing


def ways_of(steps: Sequence[Step]) -> list[Way]:
    """Return the way of each test that steps have measured, in the order of the first."""
    tests = dict.fromkeys(effect.test for step in steps for effect in step.effects)
    return [way for test in tests if (way := _way(test, steps)) is not None]


def _way(test: str, steps: Sequence[Step]) -> Way | None:
    name = next((e.metric for step in steps if (e := _main(test, step.effects))), None)
    parts = [_part(number, step, test, name) for number, step in enumerate(steps, start=1)]
    measured = [
        (part.step, part.effect)
        for part in parts
        if part.effect and part.effect.before and part.effect.after is not None
    ]
    if not measured:
        return None
    step, last = measured[-1]
    first = measured[0][1]
    # A step that was not kept has measured once more what there is without it.
    now = last.after if step.is_kept else last.before
    assert first.before is not None
    assert now is not None
    situations = [s.situations[test] for s, _ in measured if s.is_kept and test in s.situations]
    return Way(
        test,
        first.defined,
        first.before,
        now,
        tuple(parts),
        last.target,
        situations[-1] if situations else None,
    )


def _main(test: str, effects: Sequence[Effect]) -> Effect | None:
    """Return the effect on a test that the journal follows: of its time, else of its throughput."""
    rates = [e for e in effects if e.test == test and e.kind is Kind.THROUGHPUT]
    return main_time(test, effects) or next(iter(rates), None)


def _part(number: int, step: Step, test: str, name: str | None) -> Part:
    own = {effect.metric: effect for effect in step.effects if effect.test == test}
    effect = own.get(name or "")
    accuracies = [each for each in own.values() if each.kind is Kind.ACCURACY]
    device = own.get(KERNEL_TIME)
    counts = effect.delta if effect is not None and step.is_kept else None
    return Part(number, step, effect, device, next(iter(accuracies), None), counts or 0.0)
