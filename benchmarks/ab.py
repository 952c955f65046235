"""Is it the change or the machine: `ttnn-perf ab` beside a stored baseline, on a drifting machine.

    python benchmarks/ab.py [--runs 20] [--seed N]

No clock is read: durations are scripted, with noise of samples and of processes, on a machine that
has drifted since the baseline was stored and still drifts. Runs are simulated, through the same
order of processes and the same judgement as the command's. Exit code 1 if the same code gets a
verdict, if a change of 5 % goes unnoticed, or if the baseline is not fooled: then there was nothing
to show.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, TestBaseline
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import MetricObservation, Observation
from pytest_ttnn_perf.core.settings import USUAL_ROUNDS
from pytest_ttnn_perf.experiments.paired import Plan
from pytest_ttnn_perf.experiments.rounds import compare_tests
from pytest_ttnn_perf.gate.judge import judge_test, session_of

if TYPE_CHECKING:
    from collections.abc import Sequence

SESSIONS: Final = 10
SAMPLES: Final = 10
MORE: Final = 0.05
#: Standard deviations of samples in a process, and of processes.
WITHIN: Final = 0.01
BETWEEN: Final = 0.005
#: What the machine gets slower by from one process to the next, and has before the first.
DRIFT: Final = 0.004
DRIFTED: Final = 0.05
TEST: Final = "test_model.py::test_model"
TIME: Final = Metric("wall_time", "ns")


@dataclass(slots=True)
class Machine:
    """Runs one process after another; ``level`` is how slow it is by now, a logarithm."""

    chance: random.Random
    drift: float = 0.0
    level: float = 0.0

    def samples(self, change: float) -> tuple[float, ...]:
        """Return what one process measures of code that is slower by ``change``."""
        centre = self.level + math.log1p(change) + self.chance.gauss(0, BETWEEN)
        self.level += self.drift
        return tuple(1e7 * math.exp(centre + self.chance.gauss(0, WITHIN)) for _ in range(SAMPLES))


@dataclass(frozen=True, slots=True)
class Scene:
    """What happens to the code and to the machine, and what each way must say of it."""

    name: str
    change: float
    drift: float
    right: str


SCENES: Final = (
    Scene("the same code, while the machine gets slower", 0.0, DRIFT, "WITHIN"),
    Scene("5 % slower code, while the machine gets faster", MORE, -DRIFT, "REGRESSED"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="ttnn-perf ab beside a stored baseline")
    parser.add_argument("--runs", type=int, default=20, help="simulated, of each scene")
    parser.add_argument("--seed", type=int, default=20261116)
    options = parser.parse_args(arguments)
    good = True
    for scene in SCENES:
        chance = random.Random(f"{options.seed} {scene.name}")
        pairs = [_both(scene, chance) for _ in range(options.runs)]
        taken, stored = ([pair[way] for pair in pairs] for way in (0, 1))
        print(f"{scene.name}: right is {scene.right}")
        print(f"  ttnn-perf ab:      {_counts(taken)}")
        print(f"  a stored baseline: {_counts(stored)}")
        good &= all(each == scene.right for each in taken)
        good &= all(each != scene.right for each in stored)
    print("as it should be" if good else "NOT as it should be")
    return 0 if good else 1


def _both(scene: Scene, chance: random.Random) -> tuple[str, str]:
    """Return what either way says of one run."""
    quiet = Machine(chance)
    sessions = tuple(
        session_of(MetricObservation(TIME, ()), quiet.samples(0.0), f"night {number}")
        for number in range(SESSIONS)
    )
    drifted = math.copysign(DRIFTED, scene.drift)
    turns = _in_turns(Machine(chance, scene.drift, drifted), scene.change)
    return turns, _against(sessions, Machine(chance, scene.drift, drifted), scene.change)


def _in_turns(machine: Machine, change: float) -> str:
    """Measure and look as the command does, until all is known."""
    sides: dict[bool, list[Observation]] = {False: [], True: []}
    plan = Plan(USUAL_ROUNDS, machine.chance.randrange(10**6))
    for number, before_first in enumerate(plan.orders(), start=1):
        for changed in (not before_first, before_first):
            samples = machine.samples(change if changed else 0.0)
            seen = Observation(TEST, {TIME.name: MetricObservation(TIME, samples)})
            sides[changed].append(seen)
        if number in plan.looks():
            (only,) = compare_tests({TEST: sides[False]}, {TEST: sides[True]}, plan)
            if not only.is_undecided:
                break
    return only.word


def _against(sessions: tuple[object, ...], machine: Machine, change: float) -> str:
    """Judge a run with two confirm passes, as pytest makes it."""
    samples, *again = (machine.samples(change) for _ in range(3))
    observed = MetricObservation(TIME, samples, confirmations=tuple(again))
    stored = MetricBaseline(TIME, sessions)  # type: ignore[arg-type]
    baseline = TestBaseline(Acceptance(""), {TIME.name: stored})
    (verdict,) = judge_test(Observation(TEST, {TIME.name: observed}), baseline)
    return verdict.outcome.value


def _counts(outcomes: Sequence[str]) -> str:
    found = dict.fromkeys(outcomes)
    return ", ".join(f"{outcomes.count(each)} of {len(outcomes)} {each}" for each in found)


if __name__ == "__main__":
    sys.exit(main())
