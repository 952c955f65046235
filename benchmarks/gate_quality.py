"""How often the gate is wrong: unchanged tests that fail, and slowed ones that pass.

    python benchmarks/gate_quality.py [--tests 100] [--nights 60] [--seeds N,N,...] [--out PAGE.md]

Two studies on kinds of simulated runners, in which the package itself judges every run, measures
again and updates its baselines: only the times are drawn. Prints a line for each as it is done,
then the report; ``--out`` also writes it. Exit code 1 if a bar is not met.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from math import expm1, log1p, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import MetricBaseline, Session
from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.metric import Metric, Source
from pytest_ttnn_perf.core.observation import NO_LIMITS, MetricObservation, Observation
from pytest_ttnn_perf.core.settings import Checklist, Settings, Update
from pytest_ttnn_perf.gate.gated_run import GateRun
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.gate.judging import is_failed
from pytest_ttnn_perf.gate.ratios import band_of
from pytest_ttnn_perf.gate.record import CiJob, RunContext

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Times of tests and samples, or of tests.
Array = np.ndarray[Any, Any]

#: Regressions that are tried, each in one test, on one night in so many.
EFFECTS: Final = (0.03, 0.05, 0.07, 0.10, 0.15)
TRIED_EVERY: Final = 2
#: On one night in so many something happens, where a runner is one on which it does.
HAPPENS_EVERY: Final = 3
#: Hosts of a pool, as logarithms.
POOL: Final = (-0.03, -0.01, 0.01, 0.03)
#: What false reds are counted by: a month of 200 tests.
TEST_NIGHTS: Final = 6_000
#: The first pass, two confirm passes, and one more where a shift was refuted.
MEASUREMENTS: Final = 4
METRIC: Final = Metric("wall_time", unit="ns")
MOST_REDS, LEAST_FOUND_5, LEAST_FOUND_10 = 1.5, 0.65, 0.98


@dataclass(frozen=True)
class Runner:
    """A kind of runner, and how a suite is gated on it. Fractions; what is not given is off."""

    name: str
    advice: str
    #: New in every process, and new in every sample.
    session_sd: float = 0.01
    sample_sd: float = 0.01
    #: Share of processes that are slower, and by how much.
    slow_share: float = 0.0
    slow: float = 0.0
    #: Deviations of a test that last the whole night, and how much of them the next one keeps.
    test_sd: float = 0.0
    test_stays: float = 0.0
    #: The same for the machine as a whole.
    machine_sd: float = 0.0
    machine_stays: float = 0.0
    #: One night in three all tests are slower by this, from some test on.
    throttle: float = 0.0
    pool: bool = False
    tests: int | None = None
    recorded: int = 10
    updates: bool = True
    #: Which bars it is held to.
    reds_bar: bool = True
    power_bar: bool = False


RUNNERS: Final = (
    Runner("processes differ by 0.5 %", "nothing to do", session_sd=0.005, power_bar=True),
    Runner("processes differ by 1 %", "nothing to do", power_bar=True),
    Runner("the same, 5 tests", "nothing to do", tests=5, power_bar=True),
    Runner("processes differ by 2 %", "fix clocks, use more iterations: small regressions pass",
           session_sd=0.02),
    Runner("5 % of processes are 6 % slower", "nothing to do: measuring again clears them",
           slow_share=0.05, slow=0.06),
    Runner("tests 1 % off for a night, nothing stays", "record on ten nights, not in one hour",
           test_sd=0.01, session_sd=0.005),
    Runner("tests 1 % off for a night, 0.7 of it stays",
           "record a run a week; decide doubtful ones with `ttnn-perf ab`",
           test_sd=0.01, test_stays=0.7, session_sd=0.005, reds_bar=False),
    Runner("tests 2 % off for a night, 0.7 of it stays",
           "do not gate wall times here: device times, or `ttnn-perf ab`",
           test_sd=0.02, test_stays=0.7, session_sd=0.005, reds_bar=False),
    Runner("the machine 2 % off for a night, 0.7 of it stays",
           "exit 6 is the machine: run again; a machine of its own sees more",
           machine_sd=0.02, machine_stays=0.7),
    Runner("one night in three 7 % slower from some test on",
           "exit 6 is the machine: run again without neighbours", throttle=0.07),
    Runner("a pool of four hosts, ± 3 %", "gate on one of them: what hosts differ by passes",
           pool=True),
    Runner("1 run, no updates", "record more nights: one run says nothing about the next",
           recorded=1, updates=False),
)  # fmt: skip


class Weather:
    """What a runner does to the tests of one suite, night after night.

    ln time = machine that night + test that night + process + sample + what happens in the run. A
    confirm pass draws the parts of the process and of samples anew; the rest stays for the night.
    """

    def __init__(self, runner: Runner, tests: int, chance: np.random.Generator) -> None:
        self.runner, self.tests, self.chance = runner, tests, chance
        self.test = runner.test_sd * chance.standard_normal(tests)
        self.machine = runner.machine_sd * chance.standard_normal()
        self.night = 0
        #: Ten samples of a test take some 0.3 s, which decides who is a control.
        self.base_ns = 30e6 * np.exp(0.8 * chance.standard_normal(tests))

    def next_night(self) -> None:
        """Go on to the next night."""
        runner, chance = self.runner, self.chance
        self.night += 1
        fresh = sqrt(1 - runner.test_stays**2) * runner.test_sd
        self.test = runner.test_stays * self.test + fresh * chance.standard_normal(self.tests)
        fresh = sqrt(1 - runner.machine_stays**2) * runner.machine_sd
        self.machine = runner.machine_stays * self.machine + fresh * chance.standard_normal()

    def measure(self, *, calm: bool = False) -> list[Array]:
        """Return the times of each pass that tonight's run may take; ``calm``: nothing happens."""
        runner, chance = self.runner, self.chance
        level = self.test + self.machine + (chance.choice(POOL) if runner.pool else 0.0)
        happens = runner.throttle and not calm and self.night % HAPPENS_EVERY == 0
        begins = chance.random() * self.tests if happens else self.tests
        passes = []
        for number in range(MEASUREMENTS):
            late = np.arange(self.tests) >= (0 if number and happens else begins)
            logs = level + np.where(late, log1p(runner.throttle), 0.0)
            logs += runner.session_sd * chance.standard_normal(self.tests)
            slow = chance.random(self.tests) < runner.slow_share
            logs += np.where(slow, log1p(runner.slow), 0.0)
            samples = runner.sample_sd * chance.standard_normal((self.tests, 10))
            passes.append(self.base_ns[:, None] * np.exp(logs[:, None] + samples))
        return passes


def gated(folder: Path, passes: Sequence[Array], *, keeps: bool) -> tuple[set[int], bool]:
    """Let the package judge one run of a suite with ``--ttnn-perf-update``.

    Returns the tests that fail, and whether the machine is found to be slower. The baselines in
    ``folder`` change if the run ``keeps`` what it found.
    """
    settings = Settings(
        baselines=folder / "baselines",
        artifacts=folder / "artifacts",
        update=Update.IMPROVED,
        checklist=Checklist.OFF,
    )
    context = RunContext(
        settings, folder, folder, CiJob(), isolated=True, profiler="", has_devices=False
    )
    gate = GateRun(context)
    tests = [f"test_suite.py::test_{number:03}" for number in range(len(passes[0]))]
    measured = [
        {
            test: Observation(
                test, {METRIC.name: MetricObservation(METRIC, tuple(map(float, times[at])))}
            )
            for at, test in enumerate(tests)
        }
        for times in passes
    ]
    gate.begin(tests)
    for test, observation in measured[0].items():
        gate.judge(test, encode(observation))
    gate.assess_machine()
    _confirm(gate, tests, measured)
    judged = [gate.judged(test) for test in tests]
    red = {at for at, each in enumerate(judged) if each is None or is_failed(each, settings)}
    slower = gate.run.shift is not None and gate.run.shift.worse
    if keeps:
        gate.finish(complete=True)
    gate.abandon()
    assert not gate.errors, gate.errors
    return red, slower


def _confirm(gate: GateRun, tests: list[str], measured: list[dict[str, Observation]]) -> None:
    """Do as the confirm passes of a run do, with what was measured already."""
    number, passes = 0, gate.settings.confirm
    while number < passes and (any(map(gate.in_question, tests)) or gate.doubts_shift):
        number += 1
        doubted, again = gate.doubts_shift, measured[number]
        asked = [test for test in tests if gate.in_question(test)]
        controls = {test: again[test] for test in gate.controls(asked, profiled=False)}
        moves = gate.moves_of(controls)
        if doubted and gate.check_shift(moves) is not None:
            moves = gate.moves_of(controls)
        for test in asked:
            gate.confirm(test, again[test], number=number, profiled=False, moves=moves)
        if doubted and gate.run.shift is None:
            passes = 1 + gate.settings.confirm


@dataclass
class Row:
    """What came out on one kind of runner: of unchanged nights, and of slowed tests by effect."""

    runner: Runner
    test_nights: int = 0
    nights: int = 0
    reds: int = 0
    exit_6: int = 0
    tried: Counter[float] = field(default_factory=Counter)
    found: Counter[float] = field(default_factory=Counter)

    def add(self, other: Row) -> None:
        """Add what another seed gave."""
        for name in ("test_nights", "nights", "reds", "exit_6", "tried", "found"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def reds_a_month(self) -> tuple[float, float, float]:
        """Return false reds in a month of 200 tests, and their 95 % interval.

        That of a Poisson count, in the usual approximation. Nights of one test go together where
        deviations stay: there it is too narrow.
        """
        scale = TEST_NIGHTS / self.test_nights
        reach = 1.96 * sqrt(self.reds)
        high = self.reds + 1.92 + 1.96 * sqrt(self.reds + 1)
        return self.reds * scale, max(0.0, self.reds - reach) * scale, high * scale

    def power(self, effect: float) -> float:
        """Return the share of regressions of this size that fail by name."""
        return self.found[effect] / max(1, self.tried[effect])

    def smallest_found(self, power: float) -> float | None:
        """Return the smallest regression found so often, between those tried; None for none."""
        below, least = 0.0, 0.0
        for effect in EFFECTS:
            found = self.power(effect)
            if found >= power:
                return below + (power - least) / (found - least) * (effect - below)
            below, least = effect, found
        return None


def live(runner: Runner, tests: int, nights: int, seed: tuple[int, ...]) -> Row:
    """Let a suite live on a kind of runner: recorded, then gated night after night."""
    chance = np.random.default_rng(seed)
    weather = Weather(runner, tests, chance)
    row = Row(runner)
    with tempfile.TemporaryDirectory() as name:
        for _ in range(runner.recorded):
            weather.next_night()
            gated(Path(name), weather.measure(calm=True), keeps=True)
        for number in range(nights):
            weather.next_night()
            passes = weather.measure()
            if number % TRIED_EVERY == 0:
                _try_regressions(Path(name), passes, row, chance, number // TRIED_EVERY)
            red, slower = gated(Path(name), passes, keeps=runner.updates)
            row.nights += 1
            row.test_nights += tests
            row.reds += len(red)
            row.exit_6 += slower and not red
    return row


def _try_regressions(
    folder: Path, passes: Sequence[Array], row: Row, chance: np.random.Generator, number: int
) -> None:
    """Judge the night with some tests slowed, a tenth at most: more would be the machine."""
    tests = len(passes[0])
    count = max(1, tests // 10)
    effects = [EFFECTS[(number + each) % len(EFFECTS)] for each in range(count)]
    slowed = chance.choice(tests, count, replace=False)
    factors = np.ones((tests, 1))
    factors[slowed, 0] += effects
    red, _ = gated(folder, [times * factors for times in passes], keeps=False)
    row.tried.update(effects)
    row.found.update(e for at, e in zip(slowed.tolist(), effects, strict=True) if at in red)


#: 18 runs are the most: 20 sessions are kept, and the first run has three.
RUNS: Final = (1, 2, 3, 5, 10, 18)
#: Of a quiet test: what runs differ by, and samples.
BETWEEN_RUNS, WITHIN_SESSION = 0.002, 0.001
LIMITS: Final = (
    ("wall time", Source.WALL, 10),
    ("wall time, single samples", Source.WALL, 1),
    ("device time", Source.DEVICE, 3),
)


def limit(runs: int, source: Source, samples: int) -> float:
    """Return the limit of a quiet time with so many runs of so many samples, as a fraction.

    No chance: runs differ as quantiles of normal noise do.
    """
    noise = NormalDist(0, BETWEEN_RUNS)
    sessions: list[Session] = []
    for run in range(runs):
        value = 50e6 * (1 + noise.inv_cdf((run + 0.5) / runs))
        # The median absolute deviation of normal noise; of a single sample there is none.
        mad = WITHIN_SESSION / 1.4826 * value if samples > 1 else 0.0
        sessions += [Session(value, mad, samples, f"run-{run}")] * (1 if run else 3)
    baseline = MetricBaseline(replace(METRIC, source=source), tuple(sessions))
    return expm1(band_of(baseline, NO_LIMITS, policy=DEFAULT_POLICY).limit)


_PAGE: Final = """\
# How good the gate is

How often does an unchanged test fail, and how small a regression is found? Two studies on
simulated runners: the times are drawn, and the package itself records, judges, measures again and
updates, night after night. Every figure on this page was printed by

    {command}

which also writes it, with `--out docs/explanation/gate-quality.md`. It needs nothing but the
project and numpy, and gives the same figures for the same seeds.

## In a minute

Which line is your runner? `ttnn-perf calibrate` on several days tells by how much processes and
nights differ. **False reds a month** are unchanged tests that fail, in 30 nightly runs of 200
tests; brackets hold the 95 % interval. On **nights with exit 6** the gate found the machine slower
and named no test. **Found** is the share of tests, slower by so much, that fail by name; the last
figure is how slow a test must have become to be named on 80 % of nights.

{runners}

## What must hold

{bars}

Where a test's own deviation lasts the whole night and is 1 % or more, the first may be missed, and
is not asked for where it stays. No constant of the gate would help: every process of that night
measures the same, and no control shares it, so no measurement of that night can tell it from a
regression. Only other nights can.
What helps: baselines recorded over weeks and not in one row of nights, so that they have seen how
far such a test wanders; device times instead of wall times; a `tolerance` for such a test; and
`ttnn-perf ab`, which runs both versions in the same hour.

## What these figures stand on

- Suites of {tests} tests with one wall time each, unless a row says otherwise; 10 samples of 1 %
  noise in a process; processes differ by 1 % (by 0.5 % where tests are off for a night). Ten nights
  are recorded, then {nights} nights are gated with `--ttnn-perf-update`: what is within its limit
  is appended up to 20 sessions, gains are accepted. All noise is normal. Each of the seeds {seeds}
  is one suite, or as many small ones.
- **Unchanged**: every night of every test counts. A red test stays red in the next nights if its
  deviation does.
- **Slowed**: every second night is judged once more with a tenth of its tests slowed, {effects},
  drawn at random, and forgotten afterwards.
- What is **off for a night** is off in every process of that night, confirm passes and controls
  included; "0.7 of it stays" is the correlation with the next night. What processes differ by is
  drawn anew for each. What happens from some test on is there in all confirm passes too.
- It is a simulation: your machine has noise of its own.

## How many runs

The limit of a quiet test, whose runs differ by 0.2 % and samples by 0.1 %, by the number of runs
that its baseline has seen. Sessions of one run count once: they share the state of their machine.

{limits}
"""


def page(rows: Sequence[Row], options: argparse.Namespace) -> str:
    """Return the page."""
    shown = EFFECTS[:4]
    head = (
        "runner", "false reds a month", "nights with exit 6",
        *(f"found at {_percent(each, 0)}" for each in shown), "80 % found from", "what to do",
    )  # fmt: skip
    cells = []
    for row in rows:
        reds, low, high = row.reds_a_month()
        smallest = row.smallest_found(0.8)
        cells.append((
            row.runner.name, f"{reds:.1f} ({low:.1f}–{high:.1f})",
            _percent(row.exit_6 / row.nights), *(_percent(row.power(each), 0) for each in shown),
            "more than 15 %" if smallest is None else _percent(smallest), row.runner.advice,
        ))  # fmt: skip
    return _PAGE.format(
        command=_command(options),
        runners=_table(head, cells),
        bars="\n".join(f"- {'met' if met else '**not met**'}: {text}" for text, met in bars(rows)),
        tests=options.tests,
        nights=options.nights,
        seeds=", ".join(map(str, options.seeds)),
        effects=", ".join(_percent(each, 0) for each in EFFECTS),
        limits=_table(
            ("runs", *map(str, RUNS)),
            [
                (title, *(_percent(limit(runs, source, samples)) for runs in RUNS))
                for title, source, samples in LIMITS
            ],
        ),
    )


def bars(rows: Sequence[Row]) -> Iterator[tuple[str, bool]]:
    """Yield what must hold, with the worst figure, and whether it does."""
    worst = max((row for row in rows if row.runner.reds_bar), key=Row.reds_a_month)
    reds = worst.reds_a_month()[0]
    text = (
        f"at most {MOST_REDS} false reds in a month of 200 tests, where measuring again in the "
        f"same night can tell; most of them, {worst.runner.name}: {reds:.1f}"
    )
    yield text, reds <= MOST_REDS
    for effect, least in ((0.05, LEAST_FOUND_5), (0.10, LEAST_FOUND_10)):
        lowest = min((row for row in rows if row.runner.power_bar), key=lambda r: r.power(effect))
        found = lowest.power(effect)
        text = (
            f"at least {_percent(least, 0)} of {_percent(effect, 0)} regressions are found where "
            f"noise is 1 % at most; least of them, {lowest.runner.name}: {_percent(found)}"
        )
        yield text, found >= least


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _command(options: argparse.Namespace) -> str:
    seeds = ",".join(map(str, options.seeds))
    return (
        f"python benchmarks/gate_quality.py --tests {options.tests} --nights {options.nights} "
        f"--seeds {seeds}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="How often the gate is wrong: a simulation")
    parser.add_argument("--tests", type=int, default=100, help="of a suite")
    parser.add_argument("--nights", type=int, default=60, help="per suite")
    parser.add_argument(
        "--seeds",
        type=lambda text: tuple(map(int, text.split(","))),
        default=(11, 12, 13),
        help="of a suite per runner each",
    )
    parser.add_argument("--out", type=Path, help="the page to write")
    options = parser.parse_args(arguments)
    rows, start = [], time.monotonic()
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        jobs = [
            [
                workers.submit(live, runner, tests, options.nights, (seed, number, suite))
                for seed in options.seeds
                for tests in (runner.tests or options.tests,)
                for suite in range(max(1, options.tests // tests))
            ]
            for number, runner in enumerate(RUNNERS)
        ]
        for runner, parts in zip(RUNNERS, jobs, strict=True):
            row = Row(runner)
            for part in parts:
                row.add(part.result())
            rows.append(row)
            print(
                f"{time.monotonic() - start:6.1f} s {runner.name}: {row.reds} false reds in "
                f"{row.test_nights:,} test-nights, found at 5 %: {row.power(0.05):.0%}",
                flush=True,
            )
    text = page(rows, options)
    print(f"\n{text}")
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    return 0 if all(met for _, met in bars(rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
