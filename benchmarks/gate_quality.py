"""How often the gate is wrong: night after night, and beside the rules of other tools.

    python benchmarks/gate_quality.py [--suites 4] [--nights 90] [--seeds N,N,...]
        [--trials 20000] [--walks 2000] [--seed N] [--out PAGE.md] [--formulas]

Simulates kinds of runners over many nights, then single tests of several noise models, then the
ratchet of nightly updates. Prints a line for each as it is done, then the report; ``--out`` also
writes it, with a plot beside it. Interrupted, it prints what it has and writes nothing.
``--formulas`` compares other forms of the gate's limit instead. Exit code 1 if a bar is not met.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.quality import nights, ours, package_night, ratchet, report, tables, trials
from benchmarks.quality.noise import MODELS, WILD
from benchmarks.quality.plot import power_curves
from benchmarks.quality.runners import RUNNERS, Runner
from benchmarks.quality.study import Study

if TYPE_CHECKING:
    from collections.abc import Sequence

MAIN = trials.Setting(10, 10)
#: As many sessions as a baseline keeps.
FULL = trials.Setting(10, 20)
OTHERS = tuple(trials.Setting(*each) for each in ((10, 3), (10, 1), (5, 5), (30, 20)))
#: The plot needs more points than the tables show.
MAIN_EFFECTS = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.10)
EFFECTS = (0.0, 0.02, 0.03, 0.05, 0.10)
#: The models of the ratchet: those whose sessions differ, and the plain ones.
RATCHETED = {noise.name for noise in MODELS if noise.basic} | {
    "AR(0.9) + session", "bad host", "bimodal sessions", "mixture",
}  # fmt: skip
#: Suites as small as these are judged by the package's own run as well.
CHECKED = (
    Runner("noisy", "", tests=12, session_sd=0.02),
    Runner("several timings", "", tests=6, timings=3, session_sd=0.02),
    Runner("throttled", "", tests=12, throttle=0.05),
    Runner("throttled within the run", "", tests=20, throttle=0.07, begins="within"),
    Runner("few", "", tests=4, throttle=0.06),
    Runner("machine", "", tests=9, timings=2, machine_sd=0.03),
    Runner("two kinds", "", tests=10, slow_share=0.3, slow=0.05),
)
#: Suites that are judged by the package, of each of these; and the most that live side by side.
CHECKED_SUITES, MOST_SUITES = 6, 120


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="How often the gate is wrong: a simulation")
    parser.add_argument("--suites", type=int, default=4, help="of 200 tests, per runner and seed")
    parser.add_argument("--nights", type=int, default=nights.NIGHTS, help="per suite")
    parser.add_argument("--seeds", type=_seeds, default=(11, 12, 13), help="of the nights")
    parser.add_argument("--trials", type=int, default=20_000, help="per model and setting")
    parser.add_argument("--walks", type=int, default=2_000, help="tests per model in the ratchet")
    parser.add_argument("--seed", type=int, default=20261116, help="of all but the nights")
    parser.add_argument("--out", type=Path, help="the page to write; the plot goes beside it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--formulas", action="store_true", help="compare other limits instead")
    options = parser.parse_args(arguments)
    words = {
        "suites": options.suites, "nights": options.nights,
        "seeds": ",".join(map(str, options.seeds)), "trials": options.trials,
        "walks": options.walks, "seed": options.seed,
    }  # fmt: skip
    command = " ".join(
        ["python benchmarks/gate_quality.py", *(f"--{name} {word}" for name, word in words.items())]
    )
    found = report.Findings(
        command, walks=options.walks, nights=options.nights, seeds=options.seeds
    )
    # Interrupts are for this process alone: it stops its workers and keeps what they gave.
    with ProcessPoolExecutor(options.jobs, initializer=_ignore_interrupts) as workers:
        try:
            if options.formulas:
                _formulas(workers, options)
                return 0
            _simulate(workers, found, options)
        except KeyboardInterrupt:
            workers.shutdown(wait=False, cancel_futures=True)
            print("\ninterrupted: this is what there is so far\n", flush=True)
            print(report.page(found))
            return 130
    return _finish(found, options.out)


def _finish(found: report.Findings, out: Path | None) -> int:
    text = report.page(found)
    print(f"\n{text}")
    if out:
        out.write_text(text, encoding="utf-8")
        out.with_suffix(".svg").write_text(power_curves(found.studies[0]), encoding="utf-8")
    return 0 if found.met else 1


def _simulate(
    workers: ProcessPoolExecutor, found: report.Findings, options: argparse.Namespace
) -> None:
    start = time.monotonic()
    _live(workers, found, options, start=start)
    for number, setting in enumerate((MAIN, *OTHERS)):
        effects = EFFECTS if number else MAIN_EFFECTS
        study = Study(setting, effects, options.trials)
        found.studies.append(study)
        _fill(workers, study, (options.seed, number), start=start)
    found.limits = {
        count: {
            spread: ours.usual_limit(count, spread, trials=20_001, seed=(options.seed, 96, count))
            for spread in (0.0, 0.005, 0.01, 0.02, 0.05)
        }
        for count in (1, 2, 3, 5, 10, 20)
    }
    for formula in (ours.SHIPPED, ours.PLAIN, ours.UNCLIPPED):
        result = trials.run(
            WILD, FULL, report.WILD_EFFECTS, trials=options.trials, seed=(options.seed, 98),
            formula=formula,
        )  # fmt: skip
        found.wild.append((formula.name, result))
    print(f"{_clock(start)} {WILD.name}", flush=True)
    work = partial(ratchet.run, walks=options.walks, drift=0.001, seed=(options.seed, 99))
    for each in workers.map(work, [noise for noise in MODELS if noise.name in RATCHETED]):
        found.ratchets.append(each)
        print(f"{_clock(start)} ratchet {each.noise.name}", flush=True)


def _live(
    workers: ProcessPoolExecutor,
    found: report.Findings,
    options: argparse.Namespace,
    *,
    start: float,
) -> None:
    """Let suites live on every kind of runner; seeds of one runner are parts of one row."""
    jobs = [
        [
            workers.submit(
                nights.run, runner, suites=_suites(runner, options.suites), nights=options.nights,
                seed=(seed, number),
            )
            for seed in options.seeds
        ]
        for number, runner in enumerate(RUNNERS)
    ]  # fmt: skip
    checks = [
        workers.submit(package_night.check, runner, suites=CHECKED_SUITES, seed=(seed, number))
        for seed in options.seeds
        for number, runner in enumerate(CHECKED)
    ]
    for parts in jobs:
        row = nights.joined([part.result() for part in parts])
        found.rows.append(row)
        reds, low, high = row.reds_a_month()
        print(
            f"{_clock(start)} {row.runner.name}: {reds:.2f} ({low:.2f}-{high:.2f}) false reds a "
            f"month, found at 5 %: {row.power(0.05):.1%}",
            flush=True,
        )
    found.checked = sum(check.result() for check in checks)


def _suites(runner: Runner, wanted: int) -> int:
    """Return how many suites live side by side, for about as many test-nights of each runner."""
    many = wanted * 200 // runner.tests // max(1, runner.timings // 2)
    return max(2, min(many, MOST_SUITES))


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _fill(
    workers: ProcessPoolExecutor,
    study: Study,
    seed: tuple[int, ...],
    *,
    start: float,
    formula: ours.Formula = ours.SHIPPED,
) -> None:
    work = partial(
        trials.run, setting=study.setting, effects=study.effects, trials=study.trials,
        formula=formula,
    )  # fmt: skip
    jobs = [workers.submit(work, noise, seed=(*seed, i)) for i, noise in enumerate(MODELS)]
    for job in jobs:
        result = job.result()
        study.results.append(result)
        alarms = result.rate("ours, fresh", 1.0, 0)
        power = result.rate("ours, fresh", 1.0, study.effects.index(0.05))
        print(
            f"{_clock(start)} n={study.setting.n} H={study.setting.sessions} "
            f"{result.noise.name:20} {formula.name}, fresh confirms: "
            f"false alarms {alarms:.3%}, found at 5 %: {power:.1%}",
            flush=True,
        )


def _formulas(workers: ProcessPoolExecutor, options: argparse.Namespace) -> None:
    """Compare forms of the limit, on the draws of the report itself."""
    rows, start = [], time.monotonic()
    for number, setting in enumerate((MAIN, *OTHERS)):
        for formula in (ours.SHIPPED, *ours.EXPERIMENTS):
            study = Study(setting, EFFECTS, options.trials)
            _fill(workers, study, (options.seed, number), start=start, formula=formula)
            worst, name = study.worst("ours, fresh", 1.0)
            rows.append(
                [
                    f"{setting.n}, {setting.sessions}",
                    formula.name,
                    f"{study.mean('ours, fresh', 1.0, 0.0):.3%}",
                    f"{worst:.3%}: {name}",
                    *(f"{study.mean('ours, fresh', 1.0, each):.1%}" for each in tables.SHOWN),
                    f"{min(study.rates('ours, fresh', 1.0, 0.05)):.1%}",
                    f"{study.mean('ours, in-job', 1.0, 0.0):.2%}",
                    f"{max(each.unchanged['gain'] for each in study.results):.3%}",
                ]
            )
    head = [
        "n, H",
        "formula",
        "false alarms",
        "worst",
        *tables.POWER_HEAD,
        "lowest at 5 %",
        "in-job",
        "gains, worst",
    ]
    print("\n" + tables.table(head, rows))


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _clock(start: float) -> str:
    return f"{time.monotonic() - start:6.1f} s"


if __name__ == "__main__":
    sys.exit(main())
