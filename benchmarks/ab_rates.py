"""How often `ttnn-perf ab` is wrong, and what it finds: the table of "How the gate decides".

    python benchmarks/ab_rates.py [--trials 10000] [--seed N]

Simulates rounds whose samples differ by 1 % and whose processes differ by more, judges them as the
command does, and prints the table.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.gate.paired import Round, judge_rounds
from pytest_ttnn_perf.records.metric import Metric
from pytest_ttnn_perf.records.observation import NO_LIMITS
from pytest_ttnn_perf.records.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

TIME: Final = Metric("wall_time", "ns")
SAMPLES: Final = 10
WITHIN: Final = 0.01
#: How much processes differ, and how many rounds are run.
SETTINGS: Final = ((0.005, 5), (0.01, 3), (0.01, 5), (0.01, 10), (0.02, 5), (0.02, 10))
CHANGES: Final = (0.03, 0.05, 0.10)
_VERDICTS: Final = frozenset({Outcome.REGRESSED, Outcome.IMPROVED})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="How often ttnn-perf ab is wrong")
    parser.add_argument("--trials", type=int, default=10_000, help="of each row")
    parser.add_argument("--seed", type=int, default=20261116)
    options = parser.parse_args(arguments)
    found = "".join(f" | {change:.0%} slower".replace("%", " %") for change in CHANGES)
    print(f"| processes differ by | rounds | unchanged: a verdict{found} |")
    print("|---" * (3 + len(CHANGES)) + "|")
    for between, rounds in SETTINGS:
        chance = random.Random(f"{options.seed} {between} {rounds}")
        wrong, right = _rates(chance, between, rounds, options.trials)
        shares = "".join(f" | {100 * each:.0f} %" for each in right)
        row = f"| {100 * between:g} % | {rounds} | {100 * wrong:.2f} %{shares} |"
        print(row, flush=True)
    return 0


def _rates(
    chance: random.Random, between: float, rounds: int, trials: int
) -> tuple[float, list[float]]:
    """Return the share of verdicts on the same code, and of each change that is found."""
    wrong, right = 0, [0] * len(CHANGES)
    for _ in range(trials):
        drawn = [
            Round(_process(chance, between), _process(chance, between), bool(number % 2))
            for number in range(rounds)
        ]
        wrong += judge_rounds(TIME, drawn, NO_LIMITS).verdict.outcome in _VERDICTS
        for index, change in enumerate(CHANGES):
            slower = [
                each._replace(after=tuple(s * (1 + change) for s in each.after)) for each in drawn
            ]
            outcome = judge_rounds(TIME, slower, NO_LIMITS).verdict.outcome
            right[index] += outcome is Outcome.REGRESSED
    return wrong / trials, [each / trials for each in right]


def _process(chance: random.Random, between: float) -> tuple[float, ...]:
    level = chance.gauss(0, between)
    return tuple(1e7 * math.exp(level + chance.gauss(0, WITHIN)) for _ in range(SAMPLES))


if __name__ == "__main__":
    sys.exit(main())
