"""How often does `ttnn-perf try` refuse a gain because new inputs do not have it?

    python benchmarks/lost_gain.py [--runs 600] [--seed N]

Simulated, with the rule itself: no clock is read. The calls of a process differ by the noise, its
processes by a quarter of that. "Either" is noise that makes calls slower and faster, "slower" is
noise that only makes them slower, as other work on a host does. A kept result has none of its gain
when the input is new. Exit code 1 if more than 1 % of honest gains are refused.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from statistics import median
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.experiments.receipts import lost_gain
from pytest_ttnn_perf.records.metric import Metric
from pytest_ttnn_perf.records.observation import Conditions, MetricObservation, Observation

if TYPE_CHECKING:
    from collections.abc import Sequence

TIME: Final = Metric("wall_time", "ns")
SAMPLES: Final = 10
#: New inputs of the first round and of later ones; more until one is about as fast as a sample.
TRIES, MOST_TRIES, AS_FAST = (3, 1), 10, 1.25
#: A gain, the noise of calls, and the rounds that it then takes.
CASES: Final = (
    (0.03, 0.03, 10), (0.05, 0.05, 10), (0.1, 0.1, 10),
    (0.1, 0.03, 4), (0.3, 0.1, 6), (0.3, 0.03, 4), (0.5, 0.1, 4),
)  # fmt: skip
MOST_WRONG: Final = 0.01


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="how often a gain is refused for new inputs")
    parser.add_argument("--runs", type=int, default=600, help="of each case")
    parser.add_argument("--seed", type=int, default=20261118)
    options = parser.parse_args(arguments)
    good = True
    print("noise           gain  honest: refused  kept result: refused")
    for slower_only in (False, True):
        for gain, noise, rounds in CASES:
            chance = random.Random(f"{options.seed} {slower_only} {gain} {noise}")
            refused = [0, 0]
            for _ in range(options.runs):
                machine = _Machine(chance, noise, slower_only)
                before = machine.side(1.0, 1.0, rounds)
                for kind, new in enumerate((1 - gain, 1.0)):
                    after = machine.side(1 - gain, new, rounds)
                    refused[kind] += lost_gain("t", TIME.name, before, after) is not None
            honest, cheat = (count / options.runs for count in refused)
            word = "slower" if slower_only else "either"
            print(f"{word} {noise:6.0%}  {gain:6.0%}  {honest:15.1%}  {cheat:20.1%}")
            good &= honest <= MOST_WRONG
    print("as it should be" if good else "NOT as it should be")
    return 0 if good else 1


class _Machine:
    """Takes times that are as noisy as asked for."""

    def __init__(self, chance: random.Random, noise: float, slower_only: bool) -> None:  # noqa: FBT001
        self.chance, self.noise, self.slower_only = chance, noise, slower_only

    def side(self, scale: float, new_scale: float, rounds: int) -> list[Observation]:
        """Return rounds of a version; ``new_scale`` is how long it takes for a new input."""
        return [self._process(scale, new_scale, TRIES[number > 0]) for number in range(rounds)]

    def _process(self, scale: float, new_scale: float, tries: int) -> Observation:
        speed = 1e6 * math.exp(self.chance.gauss(0, self.noise / 4))
        samples = [self._call_ns(scale * speed) for _ in range(SAMPLES)]
        middle = median(samples)
        new = [self._call_ns(new_scale * speed) for _ in range(tries)]
        while len(new) < MOST_TRIES and min(new) > AS_FAST * middle:
            new.append(self._call_ns(new_scale * speed))
        conditions = Conditions(
            TIME.name, 3, SAMPLES, "clock", sample_ns=middle, new_input_ns=min(new)
        )
        observed = MetricObservation(TIME, tuple(samples))
        return Observation("t", {TIME.name: observed}, conditions={TIME.name: conditions})

    def _call_ns(self, ns: float) -> float:
        error = self.chance.gauss(0, self.noise)
        return ns * math.exp(abs(error) if self.slower_only else error)


if __name__ == "__main__":
    sys.exit(main())
