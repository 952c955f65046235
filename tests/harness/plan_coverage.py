"""How often intervals of plans hold on chips whose costs are known, measured as a user would.

A plan is made of a noisy capture, its steps are taken one after the other, and each is measured
again, before and after. ``python -m tests.harness.plan_coverage`` prints the table of
docs/explanation/plan.md, with seeds that no test has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from random import Random
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.analysis.checklist.plan import Chance, Plan, plan_of, reach_of
from pytest_ttnn_perf.analysis.checklist.plan_start import start_of
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_rules
from pytest_ttnn_perf.records.finding import Subject
from tests.harness.cost_model import capture, chip, measured_ns, mended, model, step_ns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.analysis.checklist.plan import Span


class Way(NamedTuple):
    """How noisy ops are, how many steps the capture has, and in how many processes is measured."""

    name: str
    noise: tuple[float, float]
    steps: int
    rounds: int


WAYS = (
    Way("`try`: 3 steps in each of 3 processes, 0.3 to 2 % of noise", (0.003, 0.02), 3, 3),
    Way("`try`, 1 to 5 %", (0.01, 0.05), 3, 3),
    Way("`try`, 8 %", (0.08, 0.08), 3, 3),
    Way("one more capture of 3 steps, 1 to 5 %", (0.01, 0.05), 3, 1),
    Way("one more capture of 1 step, 1 to 5 %", (0.01, 0.05), 1, 1),
    Way("one more capture of 1 step, 8 %", (0.08, 0.08), 1, 1),
)
#: Targets, as parts of what a step takes.
TARGETS = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5)


class Outcome(NamedTuple):
    """What was promised, what is truly saved, and what is measured."""

    promised: Span
    true_ns: float
    measured_ns: float

    @property
    def holds(self) -> bool:
        return self.promised.low_ns <= self.measured_ns <= self.promised.high_ns

    @property
    def is_true(self) -> bool:
        return self.promised.low_ns <= self.true_ns <= self.promised.high_ns

    @property
    def width(self) -> float:
        """How wide the interval is, in parts of the estimate."""
        return (self.promised.high_ns - self.promised.low_ns) / (self.promised.estimate_ns or 1.0)


@dataclass
class Coverage:
    """The outcomes of all steps by rule, of all plans, and how many targets were reached."""

    steps: dict[str, list[Outcome]] = field(default_factory=lambda: defaultdict(list))
    sums: list[Outcome] = field(default_factory=list)
    asked: Counter[Chance] = field(default_factory=Counter)
    reached: Counter[Chance] = field(default_factory=Counter)

    @property
    def all_steps(self) -> list[Outcome]:
        return [one for each in self.steps.values() for one in each]


def coverage(seeds: Iterable[int], way: Way) -> Coverage:
    """Return what plans of chips and models that are drawn are worth."""
    rules, found = all_rules(), Coverage()
    for seed in seeds:
        rng = Random(seed)
        on, parts = chip(rng), model(rng)
        on = replace(on, noise=rng.uniform(*way.noise))
        subject = Subject(ops=capture(parts, on, rng, steps=way.steps))
        start = start_of(subject, {})
        assert start is not None
        plan = plan_of(run_rules(rules, subject), start)
        true = first_true = step_ns(parts, on)
        told = first = measured_ns(parts, on, rng, steps=way.steps, rounds=way.rounds)
        for step in plan.steps:
            parts = mended(parts, step.finding.code)
            then, before = true, told
            true = step_ns(parts, on)
            told = measured_ns(parts, on, rng, steps=way.steps, rounds=way.rounds)
            outcome = Outcome(step.saves, then - true, before - told)
            found.steps[step.finding.code].append(outcome)
        if plan.steps:
            found.sums.append(Outcome(plan.saves, first_true - true, first - told))
        _ask(plan, told, found)
    return found


def _ask(plan: Plan, told_ns: float, found: Coverage) -> None:
    for part in TARGETS:
        target = plan.start.now_ns * part
        chance = reach_of(plan, target).chance
        found.asked[chance] += 1
        found.reached[chance] += told_ns <= target


def _table(seeds: range) -> None:
    print("| measured by | steps | of what they truly save | width | sums |")  # noqa: T201
    print("|---|---:|---:|---:|---:|")  # noqa: T201
    for way in WAYS:
        found = coverage(seeds, way)
        steps, sums = found.all_steps, found.sums
        print(  # noqa: T201
            f"| {way.name} | {_part(one.holds for one in steps)} "
            f"| {_part(one.is_true for one in steps)} | {median(s.width for s in steps):.2f} "
            f"| {_part(one.holds for one in sums)} |"
        )
        by_rule = sorted(found.steps.items())
        rules = ", ".join(f"{code} {_part(one.holds for one in each)}" for code, each in by_rule)
        chances = ", ".join(
            f"{chance.value} {found.reached[chance]} of {count}"
            for chance, count in found.asked.items()
        )
        print(f"  {rules}\n  reached: {chances}")  # noqa: T201


def _part(held: Iterable[bool]) -> str:
    each = list(held)
    return f"{sum(each)} of {len(each)}"


if __name__ == "__main__":
    _table(range(90_000, 90_300))
