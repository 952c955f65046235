"""Does `ttnn-perf bisect` find the commit: 5 % slower, on noisy machines.

Among 40 in one repository; and among 200 in three, each a submodule of the one before, where a
fifth of all builds is broken.

    python benchmarks/bisect_rates.py [--searches 20] [--seed N]

The commits of several repositories are real, what would be built and measured is simulated, round
by round. A search is right if it
ends with the commit that was planted, or, where commits beside it are broken, with no others than
these. Exit code 1 if one names another commit, or, on machines with normal noise of up to 2 %, if
more than one in a hundred has no answer.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from benchmarks.ab_rates import Machine
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import MetricObservation, Observation
from pytest_ttnn_perf.core.settings import MAX_ROUNDS, Settings
from pytest_ttnn_perf.experiments.bisect import Descent, End, Hunt
from pytest_ttnn_perf.experiments.paired import Plan
from pytest_ttnn_perf.experiments.repository import Commit, Repository
from pytest_ttnn_perf.experiments.rounds import Experiment, Sessions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.experiments.paired import Round

TEST: Final = "test_model.py::test_model"
TIME: Final = Metric("wall_time", "ns")
COMMITS: Final = 40
MORE: Final = 0.05
FOUND: Final = 0.99
#: Of all searches in several repositories.
NAMED: Final = 0.95
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


#: Commits of the outer repository, of its submodule, and of that one's; and how often each moves
#: the one inside.
SIZES: Final = (40, 60, 100)
UPLIFTS: Final = (10, 12)
PATHS: Final = ("", "a", "a/b")
BROKEN: Final = 0.2
#: Builds of one search that are fine, on average.
MOST_BUILDS: Final = 12.0


def make_history(root: Path, pins: Sequence[Sequence[int]]) -> list[list[str]]:
    """Make the repositories, the innermost first; return all commits of each."""
    commits: list[list[str]] = []
    for level in reversed(range(len(PATHS))):
        folder = root / PATHS[level]
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
        text = []
        for number in range(SIZES[level] + 1):
            inner = commits[0][pins[level][number]] if level < len(pins) else None
            moved = inner and (not number or pins[level][number] != pins[level][number - 1])
            who = f"committer A <a@example.org> {1_700_000_000 + number} +0000"
            # A commit either moves the submodule or changes a file of its own.
            own = f"M 100644 inline n\ndata <<E\n{number}\nE\n" if not moved or not number else ""
            link = f"M 160000 {inner} {'ab'[level]}\n" if moved else ""
            text.append(f"commit refs/heads/main\n{who}\ndata 1\nx\n{own}{link}\n")
        git = ("git", "-C", str(folder))
        subprocess.run([*git, "fast-import", "--quiet"], input="".join(text).encode(), check=True)
        listed = subprocess.run(
            [*git, "rev-list", "--reverse", "main"], capture_output=True, check=True
        )
        commits.insert(0, listed.stdout.decode().split())
    return commits


@dataclass(slots=True)
class Nest:
    """Three repositories, of which one has a slower commit."""

    machine: Machine
    chance: random.Random
    root: Path
    plan: Plan
    #: Whether the commits next to the slow one may be broken, too.
    anywhere: bool
    level: int = 0
    planted: int = 0
    commits: list[list[str]] = field(default_factory=list)
    pins: list[list[int]] = field(default_factory=list)
    broken: dict[str, bool] = field(default_factory=dict)
    places: dict[str, tuple[int, ...]] = field(default_factory=dict)
    processes: int = 0

    def __post_init__(self) -> None:
        for size, inner, count in zip(SIZES, SIZES[1:], UPLIFTS, strict=False):
            at = [*sorted(self.chance.sample(range(1, size + 1), count)), size + 1]
            to = [0, *sorted(self.chance.sample(range(1, inner), count - 1)), inner]
            self.pins.append([to[sum(n >= place for place in at)] for n in range(size + 1)])
        self.commits = make_history(self.root, self.pins)
        self.level = self.chance.randrange(len(PATHS))
        uplifts = self.pins[self.level] if self.level < len(self.pins) else [0] * (SIZES[-1] + 1)
        own = [n for n in range(1, SIZES[self.level] + 1) if uplifts[n] == uplifts[n - 1]]
        self.planted = self.chance.choice(own)

    def places_of(self, commit: str) -> tuple[int, ...]:
        """Return how far each repository is in a commit of the outer one."""
        if commit not in self.places:
            found, here = [], commit
            for level, path in enumerate(PATHS):
                known = here
                while known not in self.commits[level]:  # made of it, with another submodule
                    known = Repository(self.root / path).commit(known).parents[0]
                found.append(self.commits[level].index(known))
                if level < len(PATHS) - 1:
                    ask = Repository(self.root / path).ask
                    here = ask("rev-parse", f"{here}:{PATHS[level + 1].rpartition('/')[2]}") or ""
            self.places[commit] = tuple(found)
        return self.places[commit]

    def slow(self, commit: str) -> bool:
        return self.places_of(commit)[self.level] >= self.planted

    @property
    def carriers(self) -> list[int]:
        """Return the commit of each repository that brings in the slow one."""
        found = [self.planted]
        for level in reversed(range(self.level)):
            place = next(n for n, pin in enumerate(self.pins[level]) if pin >= found[0])
            found.insert(0, place)
        return found

    def is_broken(self, commit: str) -> bool:
        """Return whether a build fails: a fifth of all, each always."""
        tree = Repository(self.root).of(commit).tree
        if tree not in self.broken:
            self.broken[tree] = self.chance.random() < BROKEN
            places = self.places_of(commit)
            # The innermost repository that is not where the one around it has it.
            pinned = [self.pins[n][places[n]] == places[n + 1] for n in range(len(self.pins))]
            level = max((n + 1 for n, is_pinned in enumerate(pinned) if not is_pinned), default=0)
            near = level <= self.level and 0 <= self.carriers[level] - places[level] <= 1
            if places[0] in {0, SIZES[0]} or (near and not self.anywhere):
                self.broken[tree] = False
        return self.broken[tree]

    @contextmanager
    def turns(
        self, before: Commit, after: Commit, tests: Sequence[str] | None
    ) -> Iterator[Simulated]:
        """Let two commits be built, and measured in turns."""
        del tests
        for commit in (before, after):
            if self.is_broken(commit.id):
                message = f"{commit.short}: its build failed"
                raise UsageError(message)
        slower = (self.slow(before.id), self.slow(after.id))
        turns = Simulated(self.machine.rounds(self.chance, self.plan), slower)
        yield turns
        self.processes += turns.before.completed + turns.after.completed

    def outcome(self, descent: Descent) -> str:
        """Return whether a search has found what there is to find, or something else."""
        found = descent.answer
        if found.end not in {End.FOUND, End.RANGE} or found.level is None:
            return "open"
        level = PATHS.index(found.path)
        suspects = [self.commits[level].index(each.id) for each in found.suspects]
        if level > self.level or self.carriers[level] not in suspects:
            return "wrong"
        if level == self.level and len(suspects) == 1:
            return "right"
        # No search can say more of commits that no build is there of.
        unbuilt = all(self.is_broken(found.level.whole(each.id)) for each in found.suspects[:-1])
        return "right" if self.anywhere and unbuilt else "open"


def search_nest(machine: Machine, seed: str, *, anywhere: bool) -> tuple[str, Nest]:
    """Plant a slower commit in one of three repositories, and look for it."""
    chance = random.Random(seed)
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        plan = Plan(MAX_ROUNDS, chance.randrange(10**6))
        nest = Nest(machine, chance, root, plan, anywhere)
        asked = Experiment(
            ("bisect",), [], MAX_ROUNDS, root, Settings(), lambda *_: None, seed=plan.seed
        )
        repository, descent = Repository.around(root), Descent(asked, nest.turns)
        descent.begin(repository, *(repository.commit(nest.commits[0][n]) for n in (0, -1)))
        descent.run()
        return nest.outcome(descent), nest


def search_nests(options: argparse.Namespace) -> bool:
    """Print the rows of three repositories; return whether all is as it should be."""
    good = True
    print("\n| three repositories, a fifth of builds broken | found | wrong | builds | processes |")
    print("|---" * 5 + "|")
    for anywhere in (False, True):
        seeds = (f"{options.seed} nest {anywhere} {n}" for n in range(options.nests))
        done = [search_nest(Machine("2 %", 0.02), seed, anywhere=anywhere) for seed in seeds]
        outcomes = [outcome for outcome, _ in done]
        right, wrong = (outcomes.count(each) for each in ("right", "wrong"))
        builds = fmean(len(nest.broken) for _, nest in done)
        mean = fmean(nest.processes for _, nest in done)
        where = "any of them" if anywhere else "not next to the slow commit"
        row = f"{where} | {right} of {len(done)} | {wrong} | {builds:.1f} | {mean:.0f}"
        print(f"| {row} |", flush=True)
        fine = right >= NAMED * len(done) and builds <= MOST_BUILDS
        good &= not wrong and (fine or anywhere)
    return good


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Does ttnn-perf bisect find the commit")
    parser.add_argument("--searches", type=int, default=20, help="of each row")
    parser.add_argument("--seed", type=int, default=20261117)
    parser.add_argument("--nests", type=int, default=20, help="searches in three repositories")
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
    good &= search_nests(options)
    print("as it should be" if good else "NOT as it should be", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
