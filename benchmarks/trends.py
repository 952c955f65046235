"""How often `ttnn-perf trends` is wrong: simulated series and fleets, with changes planted in them.

    python benchmarks/trends.py [--scale 1.0] [--seeds 31,32,33] [--out docs/explanation/trends.md]

The limits were chosen on seeds below 30, and on the noise models that are marked so; the page is
of other seeds. Exit code 1 where a bar is missed. ``--scale 0.1`` takes a tenth of the series.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Final

from pytest_ttnn_perf.history.causes import Circumstances, Kind
from pytest_ttnn_perf.history.steps import find_steps, winsorised
from pytest_ttnn_perf.history.trends import Track, Trend, find_trends

DAYS: Final = 365
STEP: Final = math.log(1.05)
Noise = Callable[[random.Random, int, float], list[float]]


def independent(rng: random.Random, n: int, sd: float) -> list[float]:
    return [rng.gauss(0, sd) for _ in range(n)]


def outliers(rng: random.Random, n: int, sd: float) -> list[float]:
    return [rng.gauss(0, sd) + (rng.expovariate(5) if rng.random() < 0.05 else 0) for _ in range(n)]


def two_modes(rng: random.Random, n: int, sd: float) -> list[float]:
    return [rng.gauss(0, sd / 2) + (3 * sd if rng.random() < 0.3 else 0) for _ in range(n)]


def heavy_tails(rng: random.Random, n: int, sd: float) -> list[float]:
    return [sd * rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 2) / 3) for _ in range(n)]


def skewed(rng: random.Random, n: int, sd: float) -> list[float]:
    return [sd * (rng.expovariate(1) - 1) for _ in range(n)]


def weekly(rng: random.Random, n: int, sd: float) -> list[float]:
    return [rng.gauss(0, sd) + (sd if place % 7 > 4 else 0) for place in range(n)]


def follows(rng: random.Random, n: int, sd: float, likeness: float) -> list[float]:
    found, last = [], rng.gauss(0, sd)
    for _ in range(n):
        last = likeness * last + rng.gauss(0, sd * math.sqrt(1 - likeness**2))
        found.append(last)
    return found


def alike_03(rng: random.Random, n: int, sd: float) -> list[float]:
    return follows(rng, n, sd, 0.3)


def alike_05(rng: random.Random, n: int, sd: float) -> list[float]:
    return follows(rng, n, sd, 0.5)


@dataclass(frozen=True)
class Model:
    """Noise, whether the limits were chosen on it, and the bars: false in a year, and found."""

    name: str
    noise: Noise
    chosen_on: bool
    most_false: float = 0.01
    least_found: float | None = 0.9


#: With 1 % noise.
MODELS: Final = (
    Model("independent", independent, chosen_on=True),
    Model("5 % outliers, 20 % slower on average", outliers, chosen_on=True),
    Model("two modes, three sd apart", two_modes, chosen_on=True),
    Model("heavy tails (t, 3 degrees)", heavy_tails, chosen_on=True),
    Model("skewed (exponential)", skewed, chosen_on=False),
    Model("slower on two days of the week", weekly, chosen_on=False),
    Model("neighbours alike, AR 0.3", alike_03, chosen_on=False),
    Model("neighbours alike, AR 0.5", alike_05, chosen_on=True, most_false=0.05),
)


@dataclass
class Score:
    """How many of how many."""

    right: int = 0
    all: int = 0

    def add(self, *, right: bool) -> None:
        """Count one more."""
        self.right, self.all = self.right + right, self.all + 1

    @property
    def share(self) -> float:
        """The part that is."""
        return self.right / self.all if self.all else 0.0

    def __str__(self) -> str:
        return f"{100 * self.share:.1f} % of {self.all}"


def series_rows(seeds: Sequence[int], count: int) -> Iterator[tuple[Model, float, Score, Score]]:
    """Yield how often a year of one run a day has a change, without one and with one of 5 %."""
    for model in MODELS:
        for sd in (0.01, 0.02):
            false, found = Score(), Score()
            for seed in seeds:
                rng = random.Random(f"{model.name} {sd} {seed}")
                for _ in range(count):
                    steps = find_steps(winsorised(model.noise(rng, DAYS, sd)))
                    false.add(right=bool(steps))
                for _ in range(max(count // 4, 1)):
                    place = rng.randrange(20, DAYS - 20)
                    values = model.noise(rng, DAYS, sd)
                    values[place:] = [value + STEP for value in values[place:]]
                    steps = find_steps(winsorised(values))
                    found.add(right=any(abs(step.position - place) <= 2 for step in steps))
            yield model, sd, false, found


#: Runs before a change of 5 %, and runs after it.
BEFORE: Final = (12, 20, 100)
AFTER: Final = (3, 5, 8, 12)


def early_rows(seeds: Sequence[int], count: int) -> Iterator[tuple[float, int, list[Score]]]:
    """Yield how often a change of 5 % is found so soon, in independent noise."""
    for sd in (0.005, 0.01, 0.02):
        for before in BEFORE:
            scores = [Score() for _ in AFTER]
            for seed, (after, score) in product(seeds, zip(AFTER, scores, strict=True)):
                rng = random.Random(f"early {sd} {before} {after} {seed}")
                for _ in range(count):
                    values = independent(rng, before + after, sd)
                    values[before:] = [value + STEP for value in values[before:]]
                    steps = find_steps(winsorised(values))
                    score.add(right=any(abs(step.position - before) <= 2 for step in steps))
            yield sd, before, scores


@dataclass
class Fleet:
    """Runs of many tests on many hosts: what the circumstances are, and what is planted."""

    seed: int
    hosts: int = 20
    tests: int = 200
    days: int = 180
    runs_a_day: int = 3
    sd: float = 0.01
    runs: list[Circumstances] = field(default_factory=list)
    effects: list[Callable[[int, int], float]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"fleet {self.seed}")
        self.names = [f"runner-{number}" for number in range(self.hosts)]

    def measure(
        self, host_on: Callable[[int], Sequence[str]], firmware: Callable[[str, int], str]
    ) -> None:
        """Make the runs: each night those of some hosts, on the commit of that night."""
        for day in range(self.days):
            if self.rng.random() < 0.03:  # a night on which nothing ran
                continue
            there = host_on(day)
            for host in self.rng.sample(there, min(self.runs_a_day, len(there))):
                at = f"2026-{1 + day // 28:02}-{1 + day % 28:02}T{len(self.runs) % 24:02}:00:00Z"
                software = {"firmware": firmware(host, day), "kernel": "6.8"}
                self.runs.append(Circumstances(f"{day:040x}", host, at, software))
                self.day_of.append(day)

    day_of: list[int] = field(default_factory=list)

    def tracks(self) -> list[Track]:
        """Return what was measured; a run lacks one test in twenty."""
        of_host = {name: self.rng.gauss(0, 0.015) for name in {run.host for run in self.runs}}
        of_run = [self.rng.gauss(0, 0.003) for _ in self.runs]
        found = []
        for test in range(self.tests):
            own = {name: self.rng.gauss(0, 0.005) for name in of_host}
            noise = independent if test % 4 else heavy_tails
            values = noise(self.rng, len(self.runs), self.sd)
            kept = [number for number in range(len(self.runs)) if self.rng.random() > 0.05]
            logs = [
                values[n] + of_run[n] + of_host[self.runs[n].host] + own[self.runs[n].host]
                + sum(effect(test, n) for effect in self.effects)
                for n in kept
            ]  # fmt: skip
            found.append(Track(("wormhole_b0-n150-1x1", "wall"), tuple(kept), tuple(logs)))
        return found


@dataclass(frozen=True)
class Outcome:
    """What is right of a fleet, of what was planted, and how many series have a change else."""

    right: int
    planted: int
    false: int
    series: int


def _others(trends: Sequence[Trend], told: set[int]) -> int:
    return len({id(t) if t.track is None else t.track for t in trends} - told)


def quiet(fleet: Fleet) -> Outcome:
    """Nothing is planted: hosts differ, always."""
    fleet.measure(lambda _: fleet.names, lambda *_: "18.3")
    trends = find_trends(fleet.tracks(), fleet.runs)
    return Outcome(0, 0, _others(trends, set()), fleet.tests)


def code(fleet: Fleet) -> Outcome:
    """A fifth of the tests change by 5 %, up or down, each with a commit of its own."""
    rng = fleet.rng
    planted = {
        test: (rng.randrange(20, fleet.days - 15), rng.choice((STEP, -STEP)))
        for test in range(0, fleet.tests, 5)
    }
    fleet.measure(lambda _: fleet.names, lambda *_: "18.3")
    fleet.effects.append(
        lambda test, n: planted[test][1] * (fleet.day_of[n] >= planted[test][0])
        if test in planted else 0.0
    )  # fmt: skip
    trends = find_trends(fleet.tracks(), fleet.runs)
    right = set()
    for trend in trends:
        if trend.track in planted and trend.kind is Kind.CODE:
            day, size = planted[trend.track]
            inside = fleet.day_of[trend.good] < day <= fleet.day_of[trend.bad]
            if inside and trend.size * size > 0:
                right.add(trend.track)
    wrong = _others([t for t in trends if t.track not in planted], set())
    return Outcome(len(right), len(planted), wrong, fleet.tests)


def host(fleet: Fleet) -> Outcome:
    """One host is 4 % slower from a day on, in all tests."""
    slow, day = "runner-7", fleet.rng.randrange(50, fleet.days - 50)
    fleet.measure(lambda _: fleet.names, lambda *_: "18.3")
    size = math.log(1.04)
    fleet.effects.append(
        lambda _, n: size * (fleet.runs[n].host == slow and fleet.day_of[n] >= day)
    )
    trends = find_trends(fleet.tracks(), fleet.runs)
    named = [t for t in trends if t.track is None and t.kind is Kind.HOST]
    right = any(t.rivals[0].what == slow and t.size > 0 for t in named)
    others = [t for t in trends if t.track is not None or t not in named]
    return Outcome(int(right), 1, _others(others, set()) + max(len(named) - 1, 0), fleet.tests)


def firmware_by_host(fleet: Fleet) -> Outcome:
    """New firmware makes all tests 4 % slower; hosts get it one after another, in a month."""
    begin = fleet.rng.randrange(50, fleet.days - 90)
    since = {name: begin + fleet.rng.randrange(30) for name in fleet.names}
    return _firmware(fleet, since, range(fleet.tests), {Kind.ENVIRONMENT})


def firmware_of_some(fleet: Fleet) -> Outcome:
    """The same, and a third of the tests alone are slower, by 5 %."""
    begin = fleet.rng.randrange(50, fleet.days - 90)
    since = {name: begin + fleet.rng.randrange(30) for name in fleet.names}
    return _firmware(fleet, since, range(0, fleet.tests, 3), {Kind.ENVIRONMENT})


def firmware_at_once(fleet: Fleet) -> Outcome:
    """All hosts get it on one day, with a new commit: nobody can tell, and both are named."""
    day = fleet.rng.randrange(50, fleet.days - 50)
    some = range(0, fleet.tests, 3)
    return _firmware(fleet, dict.fromkeys(fleet.names, day), some, {Kind.CANNOT_TELL})


def _firmware(fleet: Fleet, since: dict[str, int], tests: range, expected: set[Kind]) -> Outcome:
    def version(name: str, day: int) -> str:
        return "18.6" if day >= since[name] else "18.3"

    fleet.measure(lambda _: fleet.names, version)
    size = math.log(1.04 if len(tests) == fleet.tests else 1.05)
    fleet.effects.append(
        lambda test, n: size * (fleet.runs[n].software["firmware"] == "18.6" and test in tests)
    )
    trends = find_trends(fleet.tracks(), fleet.runs)
    told = [
        t for t in trends
        if t.kind in expected and t.size > 0 and any(r.what == "firmware" for r in t.rivals)
    ]  # fmt: skip
    if len(tests) == fleet.tests:  # said once
        right = any(t.track is None for t in told)
        return Outcome(int(right), 1, _others([t for t in trends if t not in told], set()),
                       fleet.tests)  # fmt: skip
    right_ones = {t.track for t in told if t.track in tests}
    wrong = _others([t for t in trends if t.track not in tests], set())
    return Outcome(len(right_ones), len(tests), wrong, fleet.tests)


def swap(fleet: Fleet) -> Outcome:
    """All hosts are replaced at once by others that are 5 % slower: nobody can tell."""
    day = fleet.rng.randrange(50, fleet.days - 50)
    new = [f"new-{number}" for number in range(fleet.hosts)]
    fleet.measure(lambda d: new if d >= day else fleet.names, lambda *_: "18.3")
    fleet.effects.append(lambda _, n: STEP * (fleet.day_of[n] >= day))
    trends = find_trends(fleet.tracks(), fleet.runs)
    right = {
        t.track for t in trends
        if t.kind is Kind.CANNOT_TELL and any(r.kind is Kind.HOST for r in t.rivals)
    }  # fmt: skip
    blamed = sum(t.kind is not Kind.CANNOT_TELL for t in trends)
    return Outcome(len(right - {None}), fleet.tests, blamed, fleet.tests)


#: What is planted, what must be said, and how many fleets per seed.
FLEETS: Final = (
    ("nothing; hosts differ", "nothing", quiet, 1),
    ("5 % by a commit, each test its own", "code, and a range that has the commit", code, 1),
    ("a host 4 % slower, all tests", "the host, once", host, 4),
    ("firmware, host by host, all tests 4 %", "the firmware, once", firmware_by_host, 4),
    ("firmware, host by host, some tests 5 %", "the firmware", firmware_of_some, 1),
    ("firmware and a commit at once, some tests 5 %", "cannot tell: both", firmware_at_once, 1),
    ("all hosts replaced, 5 % slower", "cannot tell: the hosts, or a commit", swap, 1),
)
RIGHT: Final = 0.95
FALSE: Final = 0.01


def fleet_rows(seeds: Sequence[int], tests: int) -> Iterator[tuple[str, str, Score, Score, float]]:
    for name, said, scene, repeats in FLEETS:
        right, false, took_s = Score(), Score(), 0.0
        for seed in seeds:
            for again in range(repeats):
                begun = time.process_time()
                outcome = scene(Fleet(seed * 100 + again, tests=tests))
                took_s = max(took_s, time.process_time() - begun)
                right.right, right.all = right.right + outcome.right, right.all + outcome.planted
                false.right, false.all = false.right + outcome.false, false.all + outcome.series
        yield name, said, right, false, took_s


def tables(seeds: Sequence[int], scale: float) -> tuple[list[str], list[str]]:
    """Return the lines of both tables, and the bars that were missed."""
    lines, missed = [], []
    lines += [
        "| noise | chosen on it | sd | false in a year | 5 % found within two runs |",
        "|---|---|---|---|---|",
    ]
    for model, sd, false, found in series_rows(seeds, max(int(200 * scale), 4)):
        lines.append(
            f"| {model.name} | {'yes' if model.chosen_on else 'no'} | {100 * sd:.0f} % "
            f"| {false} | {found} |"
        )
        print(lines[-1], flush=True)
        if false.share > model.most_false:
            missed.append(f"{model.name}, {sd}: false in {false}")
        if sd == 0.01 and model.least_found and found.share < model.least_found:
            missed.append(f"{model.name}, {sd}: found in {found}")
    runs = " | ".join(f"{after} after" for after in AFTER)
    lines += ["", f"| sd | runs before | {runs} |", "|---|---|" + "---|" * len(AFTER)]
    for sd, before, scores in early_rows(seeds, max(int(100 * scale), 4)):
        shares = " | ".join(f"{100 * score.share:.0f} %" for score in scores)
        lines.append(f"| {100 * sd:g} % | {before} | {shares} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        "| planted | must be said | said | other series with a change | CPU of one fleet |",
        "|---|---|---|---|---|",
    ]
    for name, said, right, false, took_s in fleet_rows(seeds, max(int(200 * scale), 20)):
        shown = str(right) if right.all else "-"
        lines.append(f"| {name} | {said} | {shown} | {false} | {took_s:.0f} s |")
        print(lines[-1], flush=True)
        if right.all and right.share < RIGHT:
            missed.append(f"{name}: right in {right}")
        if false.share > FALSE:
            missed.append(f"{name}: other changes in {false}")
    return lines, missed


_BEGIN, _END = "<!-- table: benchmarks/trends.py -->", "<!-- end of table -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seeds", default="31,32,33")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines, missed = tables([int(seed) for seed in options.seeds.split(",")], options.scale)
    if options.out is not None:
        before, _, rest = options.out.read_text(encoding="utf-8").partition(_BEGIN)
        _, _, after = rest.partition(_END)
        text = "\n".join([before + _BEGIN, "", *lines, "", _END + after])
        options.out.write_text(text, encoding="utf-8")
    for miss in missed:
        print(f"missed: {miss}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
