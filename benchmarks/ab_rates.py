"""How often `ttnn-perf ab` is wrong, what it finds, and how many rounds that takes.

    python benchmarks/ab_rates.py [--tests 1000] [--seeds 5]

Prints the table of "How the gate decides". Simulates commands of 1, 5 and 20 tests on machines with
different noise, looks at the rounds as the command does, and ends with exit code 1 where a bar is
missed: the same code must get a verdict in at most 0.5 % of commands, and a test that is 5 % slower
be called WITHIN as rarely; at 2 % noise 99 % of these must be found, with 10 rounds on average.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import NO_LIMITS, Outcome
from pytest_ttnn_perf.core.settings import USUAL_ROUNDS
from pytest_ttnn_perf.experiments.paired import Plan, Round, judge_rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.experiments.paired import Comparison

TIME: Final = Metric("wall_time", "ns")
MORE: Final = 0.05
#: What ten samples that differ by 1 % leave in their median: processes are simulated by these.
OF_SAMPLES: Final = 0.004
#: The most commands that may be wrong, and what must be found, with how many rounds on average.
WRONG: Final = 0.005
FOUND: Final = 0.99
FOUND_IN: Final = 10
_VERDICTS: Final = frozenset({Outcome.REGRESSED, Outcome.IMPROVED})


@dataclass(frozen=True, slots=True)
class Machine:
    """How processes differ: a standard deviation, of one of three shapes, and what else moves.

    ``second`` is what the second process of a round has to bear, ``drift`` what every process is
    slower by than the one before, ``walk`` how far the machine moves from process to process, and
    ``fourth`` what every fourth process is slower by.
    """

    name: str
    noise: float
    shape: str = "normal"
    second: float = 0.0
    drift: float = 0.0
    walk: float = 0.0
    fourth: float = 0.0

    def rounds(self, chance: random.Random, plan: Plan) -> list[Round]:
        """Return what a command could measure of the same code."""
        found, level, number = [], 0.0, chance.randrange(4)
        for before_first in plan.orders():
            pair = []
            for place in (0, 1):
                level += self.drift + chance.gauss(0, self.walk)
                number += 1
                noise = self.noise * self._shaped(chance) + chance.gauss(0, OF_SAMPLES)
                extra = place * self.second + self.fourth * (number % 4 == 0)
                pair.append((1e7 * math.exp(level + extra + noise),))
            before, after = pair if before_first else pair[::-1]
            found.append(Round(before, after, before_first))
        return found

    def _shaped(self, chance: random.Random) -> float:
        """Return a number whose standard deviation is 1."""
        if self.shape == "t":  # Student's, with three degrees of freedom
            squares = sum(chance.gauss(0, 1) ** 2 for _ in range(3))
            return chance.gauss(0, 1) / math.sqrt(squares)
        if self.shape == "stalls":  # one process in twelve is slow, by anything
            stall = abs(chance.gauss(0, 2.5)) if chance.random() < 1 / 12 else 0.0
            return 0.7 * chance.gauss(0, 1) + stall
        return chance.gauss(0, 1)


ROWS: Final = (
    (Machine("0.5 %", 0.005), 1),
    (Machine("1 %", 0.01), 1),
    (Machine("1 %", 0.01), 5),
    (Machine("1 %", 0.01), 20),
    (Machine("2 %", 0.02), 1),
    (Machine("2 %", 0.02), 5),
    (Machine("2 %", 0.02), 20),
    (Machine("2 %, heavy tails", 0.02, "t"), 1),
    (Machine("2 %, heavy tails", 0.02, "t"), 20),
    (Machine("2 %, some processes stall", 0.02, "stalls"), 1),
    (Machine("2 %, the second of a round is 2 % slower", 0.02, second=0.02), 1),
    (Machine("2 %, slower by 0.4 % with every process", 0.02, drift=0.004), 1),
    (Machine("1 %, moves by 1 % from process to process", 0.01, walk=0.01), 1),
    (Machine("1 %, every fourth process is 3 % slower", 0.01, fourth=0.03), 1),
    (Machine("5 %", 0.05), 1),
    (Machine("5 %", 0.05), 20),
)


@dataclass(frozen=True, slots=True)
class Rates:
    """What became of commands: shares, and mean rounds of a test."""

    commands: int
    wrong: float
    known: float
    rounds: float
    early: float
    found: float
    missed: float
    found_rounds: float


def simulate(machine: Machine, tests: int, *, count: int, seeds: range) -> Rates:
    """Return the rates of commands with ``count`` tests altogether of each seed."""
    commands: list[list[Comparison]] = []
    slower: list[Comparison] = []
    for seed in seeds:
        chance = random.Random(f"{seed} {machine.name} {tests}")
        for _ in range(count // tests):
            plan = Plan(USUAL_ROUNDS, chance.randrange(10**6), tests)
            drawn = [machine.rounds(chance, plan) for _ in range(tests)]
            commands.append([judge_rounds(TIME, one, NO_LIMITS, plan=plan) for one in drawn])
            for one in drawn:
                changed = [each._replace(after=(each.after[0] * (1 + MORE),)) for each in one]
                slower.append(judge_rounds(TIME, changed, NO_LIMITS, plan=plan))
    same = [paired for command in commands for paired in command]
    return Rates(
        len(commands),
        wrong=fmean(any(p.verdict.outcome in _VERDICTS for p in each) for each in commands),
        known=fmean(not paired.is_undecided for paired in same),
        rounds=fmean(paired.rounds for paired in same),
        early=fmean(paired.rounds <= 6 for paired in [*same, *slower]),
        found=fmean(paired.verdict.outcome is Outcome.REGRESSED for paired in slower),
        missed=fmean(paired.verdict.outcome is Outcome.WITHIN for paired in slower),
        found_rounds=fmean(paired.rounds for paired in slower),
    )


def misses(machine: Machine, tests: int, rates: Rates) -> list[str]:
    """Return the bars that were missed, by more than chance can explain."""
    chance = 3 * math.sqrt(WRONG / rates.commands)
    found = []
    if rates.wrong > WRONG + chance or rates.missed > WRONG + chance:
        found.append("wrong too often")
    if machine.name == "2 %" and tests == 1 and rates.found < FOUND:
        found.append("too few are found")
    if machine.name == "2 %" and tests == 1 and rates.found_rounds > FOUND_IN:
        found.append("found too late")
    if machine.name == "1 %" and tests == 1 and rates.early < 0.5:
        found.append("most take more than 6 rounds")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="How often ttnn-perf ab is wrong")
    parser.add_argument("--tests", type=int, default=1000, help="of each row and seed")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    print("| processes differ by | tests | same code: a verdict | known | rounds "
          "| 5 % slower: found | `WITHIN` | rounds | known by 6 |")  # fmt: skip
    print("|---" * 9 + "|")
    missed = []
    for machine, tests in ROWS:
        rates = simulate(machine, tests, count=options.tests, seeds=range(1, options.seeds + 1))
        print(
            f"| {machine.name} | {tests} | {100 * rates.wrong:.2f} % | {100 * rates.known:.0f} % "
            f"| {rates.rounds:.1f} | {100 * rates.found:.1f} % | {100 * rates.missed:.2f} % "
            f"| {rates.found_rounds:.1f} | {100 * rates.early:.0f} % |",
            flush=True,
        )
        missed += [f"{machine.name}, {tests}: {why}" for why in misses(machine, tests, rates)]
    print("\n".join(["missed a bar:", *missed]) if missed else "all bars hold", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
