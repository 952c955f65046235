"""How often the gate is wrong, beside the rules of other tools: a simulation.

    python benchmarks/gate_quality.py [--trials 20000] [--seed N] [--out PAGE.md] [--formulas]

Prints a line per noise model, then the report; ``--out`` also writes it, with a plot beside it.
Interrupted, it prints what it has and writes nothing. ``--formulas`` compares other forms of the
gate's limit instead. Exit code 1 if a bar is not met.
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

from benchmarks.quality import machine, ours, ratchet, report, tables, trials
from benchmarks.quality.noise import MODELS, WILD
from benchmarks.quality.plot import power_curves
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
#: By how much a whole machine is slower, and the noise of the tests on it.
SLOWER = (0.03, 0.07, 0.15)
SHIFTED_MODELS = frozenset({"session 1 %", "session 2 %", "bimodal sessions", "mixture"})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="How often the gate is wrong: a simulation")
    parser.add_argument("--trials", type=int, default=20_000, help="per model and setting")
    parser.add_argument("--walks", type=int, default=2_000, help="tests per model in the ratchet")
    parser.add_argument("--seed", type=int, default=20261116)
    parser.add_argument("--out", type=Path, help="the page to write; the plot goes beside it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--formulas", action="store_true", help="compare other limits instead")
    options = parser.parse_args(arguments)
    command = f"python benchmarks/gate_quality.py --trials {options.trials} --seed {options.seed}"
    found = report.Findings(command, walks=options.walks)
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
    for formula in (ours.SHIPPED, ours.PLAIN, ours.ONE_COUNTS):
        result = trials.run(
            WILD, FULL, report.WILD_EFFECTS, trials=options.trials, seed=(options.seed, 98),
            formula=formula,
        )  # fmt: skip
        found.wild.append((formula.name, result))
    print(f"{_clock(start)} {WILD.name}", flush=True)
    work = partial(ratchet.run, walks=options.walks, drift=0.001, seed=(options.seed, 99))
    for each in workers.map(work, [noise for noise in MODELS if not noise.walk]):
        found.ratchets.append(each)
        print(f"{_clock(start)} ratchet {each.noise.name}", flush=True)
    jobs = [
        workers.submit(machine.run, noise, slower=by, runs=200, seed=(options.seed, 97, number))
        for noise in MODELS
        if noise.name in SHIFTED_MODELS
        for number, by in enumerate(SLOWER)
    ]
    for job in jobs:
        shifted = job.result()
        found.machines.append(shifted)
        print(f"{_clock(start)} slower machine, {shifted.noise.name}", flush=True)


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
