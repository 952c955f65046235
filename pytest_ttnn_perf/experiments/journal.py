"""The journal: from the first measurement, by the steps that were kept, to what there is now.

For each test the parts of the way sum to the whole: what no kept step explains, such as drift of
the machine or commits that nobody tried, has a line of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.experiments.try_verdict import main_time
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Better, Kind, split_metric

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pytest_ttnn_perf.records.metric import Metric
    from pytest_ttnn_perf.records.step import Effect, Situation, Step


#: Sums of floats are off by less.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a test. ``effect`` is that on its main metric; None where it has none.

    ``counts`` is what it adds to the whole, in the unit of the metric: nothing where it does not
    ``lead`` to what there is now.
    """

    number: int
    step: Step
    leads: bool
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
        rest = self.now - self.first - sum(part.counts for part in self.parts)
        return 0.0 if abs(rest) < _ROUNDING * self.first else rest

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


def ways_of(steps: Sequence[Step], gone: Collection[str] = ()) -> list[Way]:
    """Return the way of each test that steps have measured, in the order of the first.

    ``gone`` are the ids of kept steps that were discarded since.
    """
    tests = dict.fromkeys(effect.test for step in steps for effect in step.effects)
    leading = leading_steps([step for step in steps if step.id not in gone])
    return [way for test in tests if (way := _way(test, steps, leading)) is not None]


def leading_steps(steps: Sequence[Step]) -> frozenset[str]:
    """Return the ids of the kept steps that lead to the last kept state, each from the one before.

    One that begins where another began is tried in its place, or for the second time: the other,
    and all that followed it, lead nowhere. After commits that nobody tried, a step goes on from
    the last one.
    """
    now: tuple[Step, ...] = ()
    leading_to: dict[str, tuple[Step, ...]] = {}
    for step in steps:
        if step.is_kept:
            before = leading_to.setdefault(step.base_tree, now)
            now = leading_to[step.state_tree] = (*before, step)
    return frozenset(step.id for step in now)


def _way(test: str, steps: Sequence[Step], leading: frozenset[str]) -> Way | None:
    name = next((e.metric for step in steps if (e := _main(test, step.effects))), None)
    parts = [
        _part(number, step, test, name, leads=step.id in leading)
        for number, step in enumerate(steps, start=1)
    ]
    measured = [
        (part, part.effect)
        for part in parts
        if part.effect and part.effect.before and part.effect.after is not None
    ]
    if not measured:
        return None
    first = measured[0][1]
    # A step that was not kept has measured once more what there is without it, unless it began
    # where a kept one did: then it is from before that.
    left = {part.step.base_tree for part, _ in measured if part.leads}
    reached = {part.step.state_tree for part, _ in measured if part.leads}
    ends = [
        (effect.after if part.leads else effect.before, effect.target)
        for part, effect in measured
        if part.leads or _is_now(part.step, left, reached)
    ]
    now, target = ends[-1] if ends else (first.before, first.target)
    assert first.before is not None
    assert now is not None
    kept = (part.step for part, _ in measured if part.leads)
    situations = [step.situations[test] for step in kept if test in step.situations]
    return Way(
        test,
        first.defined,
        first.before,
        now,
        tuple(parts),
        target,
        situations[-1] if situations else None,
    )


def _is_now(step: Step, left: Collection[str], reached: Collection[str]) -> bool:
    """Tell whether what a step was compared with is what there was then, and not an old commit."""
    then = step.base_tree in reached or step.base == step.head
    return not step.is_kept and step.base_tree not in left and then


def _main(test: str, effects: Sequence[Effect]) -> Effect | None:
    """Return the effect on a test that the journal follows: of its time, else of its throughput."""
    rates = [e for e in effects if e.test == test and e.kind is Kind.THROUGHPUT]
    return main_time(test, effects) or next(iter(rates), None)


def _device_time(effects: Mapping[str, Effect]) -> Effect | None:
    """Return what a step did to the time of kernels; None where several regions have one each."""
    kernels = [each for name, each in effects.items() if split_metric(name)[0] == KERNEL_TIME]
    return effects.get(KERNEL_TIME) or (kernels[0] if len(kernels) == 1 else None)


def _part(number: int, step: Step, test: str, name: str | None, *, leads: bool) -> Part:
    own = {effect.metric: effect for effect in step.effects if effect.test == test}
    effect = own.get(name or "")
    accuracies = [each for each in own.values() if each.kind is Kind.ACCURACY]
    device = _device_time(own)
    counts = effect.delta if effect is not None and leads else None
    return Part(number, step, leads, effect, device, next(iter(accuracies), None), counts or 0.0)
