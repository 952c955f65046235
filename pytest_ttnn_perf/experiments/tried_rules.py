"""What rules promised of changes that steps made here, beside what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf.experiments.kept_state import read_steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.records.step import Prediction, Step


@dataclass(frozen=True, slots=True)
class Tried:
    """What a rule promised of a change that a step made, and what that brought, in µs.

    Of several tests or regions, it is the sum. ``before_us`` is what was measured before the
    change, in so many ``rounds``. ``at_most``: no more was promised than a bound.
    """

    code: str
    change: str
    metric: str
    estimate_us: float
    measured_us: float
    before_us: float = 0.0
    rounds: int = 1
    at_most: bool = False

    @property
    def ratio(self) -> float:
        """What was gained, in parts of the estimate."""
        return self.measured_us / self.estimate_us


def tried_rules(artifacts: Path) -> tuple[Tried, ...]:
    """Return what the recorded steps made of rules, oldest first.

    Steps that cannot be read are passed over: ``ttnn-perf journal`` says what is wrong with them.
    """
    try:
        return tried_in(read_steps(artifacts))
    except InputError:
        return ()


def tried_in(steps: Sequence[Step]) -> tuple[Tried, ...]:
    """Return what steps made of rules: one for each change and rule.

    Where a change did as several rules say, nobody can tell which gained how much; nor where it
    also opened a finding about kernels, and so changed something else, or closed one that promises
    nothing. A change that was tried again counts once, as it was measured last.
    """
    told = [step for step in steps if step.predictions]
    changes = {(step.base_tree, step.state_tree): step for step in told}
    found = []
    for step in sorted(changes.values(), key=lambda step: step.id):
        by_code: dict[str, list[Prediction]] = {}
        spoilt = {each.test for each in step.opened if not each.at_most and each.kernels_ns > 0}
        # One that says nothing of what it saves has its part in what was gained.
        spoilt |= {each.test for each in step.closed if not each.saving_ns}
        for each in step.predictions:
            if len(set(each.codes)) == 1 and each.predicted_ns > 0 and each.test not in spoilt:
                by_code.setdefault(each.codes[0], []).append(each)
        found += [_tried(code, step, each) for code, each in by_code.items()]
    return tuple(found)


def _tried(code: str, step: Step, predictions: Sequence[Prediction]) -> Tried:
    places = {(each.test, each.metric) for each in predictions}
    effects = [each for each in step.effects if (each.test, each.metric) in places]
    return Tried(
        code,
        step.message,
        ", ".join(dict.fromkeys(each.metric for each in predictions)),
        sum(each.predicted_ns for each in predictions) / 1e3,
        sum(each.measured_ns for each in predictions) / 1e3,
        sum(each.before or 0.0 for each in effects) / 1e3,
        max(1, step.rounds),
        any(each.at_most for each in predictions),
    )


def ratios_by_rule(tried: Sequence[Tried]) -> dict[str, tuple[float, ...]]:
    """Return what was gained, in parts of the estimates, of each rule that was tried.

    A bound is no estimate.
    """
    found: dict[str, tuple[float, ...]] = {}
    for one in tried:
        if not one.at_most:
            found[one.code] = (*found.get(one.code, ()), one.ratio)
    return found
