"""What `ttnn-perf try` answers by the true effect of a change, and after how many rounds.

    python benchmarks/optimization_loop.py [--runs 200] [--seed N]

Runs are simulated, for each effect and noise: no clock is read; processes come in the order of the
command, and its own judgement decides. Exit code 1 if a change that is no gain is kept in more than
1 % of runs.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from statistics import fmean
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import MetricObservation, Observation
from pytest_ttnn_perf.core.settings import USUAL_ROUNDS
from pytest_ttnn_perf.experiments.ab import AbResult
from pytest_ttnn_perf.experiments.paired import Plan
from pytest_ttnn_perf.experiments.repository import Commit, WorkingTree
from pytest_ttnn_perf.experiments.rounds import Sessions, compare_tests
from pytest_ttnn_perf.experiments.try_change import decide

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLES: Final = 10
TEST: Final = "test_model.py::test_model"
TIME: Final = Metric("wall_time", "ns")
#: Standard deviations of processes; that of samples in a process is twice as large.
NOISES: Final = (0.002, 0.005, 0.015)
#: What the machine gets slower by from one process to the next.
DRIFT: Final = 0.002
EFFECTS: Final = (-0.30, -0.10, -0.05, -0.03, -0.01, 0.0, 0.05)
MOST_WRONG: Final = 0.01


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="what ttnn-perf try answers")
    parser.add_argument("--runs", type=int, default=200, help="simulated, of each effect and noise")
    parser.add_argument("--seed", type=int, default=20261117)
    options = parser.parse_args(arguments)
    good = True
    print("noise   effect    KEEP  REVERT  CANNOT_TELL  rounds")
    for noise in NOISES:
        for effect in EFFECTS:
            chance = random.Random(f"{options.seed} {noise} {effect}")
            runs = [_simulated(effect, noise, chance) for _ in range(options.runs)]
            said = Counter(decision for decision, _ in runs)
            shares = {word: said[word] / len(runs) for word in ("KEEP", "REVERT", "CANNOT_TELL")}
            cells = "  ".join(f"{share:>7.1%}" for share in shares.values())
            print(f"{noise:5.1%}  {effect:+7.0%}  {cells}      {fmean(n for _, n in runs):5.1f}")
            good &= effect < 0 or shares["KEEP"] <= MOST_WRONG
    print("as it should be" if good else "NOT as it should be")
    return 0 if good else 1


def _simulated(effect: float, noise: float, chance: random.Random) -> tuple[str, int]:
    """Return the answer to a change, and the rounds it took."""
    sides: dict[bool, list[Observation]] = {False: [], True: []}
    plan, level = Plan(USUAL_ROUNDS, chance.randrange(10**6)), 0.0
    for number, before_first in enumerate(plan.orders(), start=1):
        for changed in (not before_first, before_first):
            centre = level + (math.log1p(effect) if changed else 0.0) + chance.gauss(0, noise)
            level += DRIFT
            samples = [1e7 * math.exp(centre + chance.gauss(0, 2 * noise)) for _ in range(SAMPLES)]
            observed = MetricObservation(TIME, tuple(samples))
            sides[changed].append(Observation(TEST, {TIME.name: observed}))
        if number not in plan.looks():
            continue
        compared = compare_tests({TEST: sides[False]}, {TEST: sides[True]}, plan)
        if not any(each.is_undecided for each in compared):
            break
    commit = Commit("0" * 40, "0000000", "Start")
    before, after = (Sessions(USUAL_ROUNDS, number, {TEST: sides[side]}) for side in (False, True))
    result = AbResult(
        "HEAD", commit, WorkingTree(commit), USUAL_ROUNDS, number, tuple(compared),
        sides=(before, after),
    )  # fmt: skip
    decision, _ = decide(result, (), edited=False)
    return decision.value, number


if __name__ == "__main__":
    sys.exit(main())
