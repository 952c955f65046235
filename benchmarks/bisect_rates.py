"""Does `ttnn-perf bisect` find the commit: 5 % slower, among 40, on noisy machines.

    python benchmarks/bisect_rates.py [--searches 20] [--seed N]

What would be measured is simulated, round by round. A search is right if it
ends with the commit that was planted, or, where commits beside it are broken, with no others than
these. Exit code 1 if one names another commit, or, on machines with normal noise of up to 2 %, if
more than one in a hundred has no answer.
"""

from __future__ import annotations

import argparse
import random
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from benchmarks.ab_rates import Machine
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import MetricObservation, Observation
from pytest_ttnn_perf.core.settings import MAX_ROUNDS, Settings
from pytest_ttnn_perf.experiments.bisect import End, Hunt
from pytest_ttnn_perf.experiments.paired import Plan
from pytest_ttnn_perf.experiments.repository import Commit
from pytest_ttnn_perf.experiments.rounds import Experiment, Sessions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.experiments.paired import Round

TEST: Final = "test_model.py::test_model"
TIME: Final = Metric("wall_time", "ns")
COMMITS: Final = 40
MORE: Final = 0.05
FOUND: Final = 0.99
#: Machine, broken commits, and whether practically all searches must be right.
ROWS: Final = (
    (Machine("1 %", 0.01), 0, True),
    (Machine("2 %", 0.02), 0, True),
    (Machine("2 %", 0.02), 3, True),
    (Machine("2 %, heavy tails", 0.02, "t"), 3, False),
    (Machine("2 %, the second of a round is 2 % slower", 0.02, second=0.02), 3, False),
)


class Simulated:
    """Two commits that are measured in turns, by chance alone."""

    def __init__(self, rounds: Sequence[Round], slower: tuple[bool, bool]) -> None:
        self.before, self.after = Sessions(MAX_ROUNDS), Sessions(MAX_ROUNDS)
        self.rounds, self.slower = rounds, slower

    def run(self, number: int, tests: Sequence[str] | None) -> str | None:
        """Measure one round."""
        del tests
        drawn = self.rounds[number - 1]
        sides = ((self.before, drawn.before), (self.after, drawn.after))
        for (found, samples), is_slower in zip(sides, self.slower, strict=True):
            values = tuple(value * (1 + MORE * is_slower) for value in samples)
            seen = Observation(TEST, {TIME.name: MetricObservation(TIME, values)})
            found.measured.setdefault(TEST, []).append(seen)
            found.completed = number
        return None


@dataclass(slots=True)
class World:
    """A history in which one commit is slower, and others cannot be measured."""

    machine: Machine
    chance: random.Random
    ids: tuple[str, ...]
    planted: int
    broken: frozenset[int]
    plan: Plan
    processes: int = 0

    @contextmanager
    def turns(
        self, before: Commit, after: Commit, tests: Sequence[str] | None
    ) -> Iterator[Simulated]:
        """Let two commits be measured in turns."""
        del tests
        places = [self.ids.index(commit.id) for commit in (before, after)]
        if self.broken & set(places):
            message = f"{after.short}: cannot be collected"
            raise UsageError(message)
        slower = tuple(place >= self.planted for place in places)
        turns = Simulated(self.machine.rounds(self.chance, self.plan), slower)  # type: ignore[arg-type]
        yield turns
        self.processes += turns.before.completed + turns.after.completed

    def outcome(self, found: Hunt) -> str:
        """Return whether a search has found what there is to find, or something else."""
        places = {self.ids.index(commit.id) for commit in found.suspects}
        if found.end not in {End.FOUND, End.RANGE}:
            return "open"
        if self.planted not in places:
            return "wrong"
        return "right" if places - {self.planted} <= self.broken else "open"


def search(machine: Machine, broken: int, seed: str) -> tuple[str, World]:
    """Plant a slower commit, and look for it."""
    chance = random.Random(seed)
    good, *history = (Commit(f"{n:040x}", f"{n:07x}", f"Commit {n}") for n in range(COMMITS + 1))
    planted = chance.randint(1, COMMITS)
    others = [place for place in range(1, COMMITS) if place != planted]
    world = World(
        machine,
        chance,
        (good.id, *(each.id for each in history)),
        planted,
        frozenset(chance.sample(others, broken)),
        Plan(MAX_ROUNDS, chance.randrange(10**6)),
    )
    asked = Experiment(
        ("bisect",), [], MAX_ROUNDS, Path(), Settings(), lambda *_: None, seed=world.plan.seed
    )
    hunt = Hunt(good, history, asked, world.turns)
    hunt.run()
    return world.outcome(hunt), world


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Does ttnn-perf bisect find the commit")
    parser.add_argument("--searches", type=int, default=20, help="of each row")
    parser.add_argument("--seed", type=int, default=20261117)
    options = parser.parse_args(arguments)
    good = True
    print("| processes differ by | broken commits | found | wrong | processes |")
    print("|---" * 5 + "|")
    for machine, broken, must in ROWS:
        seeds = (f"{options.seed} {machine.name} {broken} {n}" for n in range(options.searches))
        done = [search(machine, broken, seed) for seed in seeds]
        outcomes = [outcome for outcome, _ in done]
        right, wrong = (outcomes.count(each) for each in ("right", "wrong"))
        mean = fmean(world.processes for _, world in done)
        row = f"{machine.name} | {broken} | {right} of {len(done)} | {wrong} | {mean:.0f}"
        print(f"| {row} |", flush=True)
        good &= not wrong and (right >= FOUND * len(done) or not must)
    print("as it should be" if good else "NOT as it should be", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
