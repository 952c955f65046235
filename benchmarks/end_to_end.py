"""The real gate on work of a known amount: more work must fail by name, the same must pass.

    python benchmarks/end_to_end.py [--work neighbour|device|compute] [--changed 20]
        [--unchanged 30] [--models 8] [--runs 10] [--sessions 3] [--seed N]
        [--out PAGE.md] [--note TEXT] [--keep DIR]

Drives ``ttnn-perf calibrate`` and ``pytest --ttnn-perf`` in a temporary project, one real process
after another. A line per run on stderr, then the report. ``--out`` writes it into a page, where the
section of the other kind of work stays as it is; ``--note`` goes with it, such as that runs before
this one ended otherwise. ``--keep`` keeps the project with its run records.
Interrupted, it prints what it has and writes nothing. Exit code 1 if a bar is not met.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Final

from benchmarks.e2e import project as projects
from benchmarks.e2e.page import page, section
from benchmarks.e2e.results import Findings, run_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.e2e.project import Project

#: How much more work is done, by kind of work; and the usual numbers of changed and unchanged runs
#: and of tests.
MORE: Final = {"device": 0.15, "compute": 0.15, "neighbour": 0.10}
USUAL: Final = {"device": (20, 50, 3), "compute": (20, 50, 3), "neighbour": (20, 30, 8)}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    # Ended from outside it stops its children too, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command = (
        f"python benchmarks/end_to_end.py --work {options.work} --changed {options.changed} "
        f"--unchanged {options.unchanged} --sessions {options.sessions} --runs {options.runs} "
        f"--models {options.models} --seed {options.seed}"
    )
    found = Findings(command, options.work, MORE[options.work], options.note)
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = options.keep or Path(name)
            _measure(projects.make(folder, options.work, models=options.models), found, options)
    except KeyboardInterrupt:
        print("\ninterrupted: this is what there is so far\n", flush=True)
        print(section(found))
        return 130
    print(section(found))
    if options.out:
        existing = options.out.read_text(encoding="utf-8") if options.out.exists() else ""
        options.out.write_text(page(found, existing), encoding="utf-8")
    return 0 if all(met for _, met in found.bars()) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The real gate on work of a known amount")
    parser.add_argument("--changed", type=int, help="runs with one test slowed")
    parser.add_argument("--unchanged", type=int, help="runs with the same work")
    parser.add_argument("--sessions", type=int, default=3, help="sessions of the first run")
    parser.add_argument("--runs", type=int, default=10, help="runs in the baseline")
    parser.add_argument("--work", choices=projects.KINDS, default="neighbour")
    parser.add_argument("--models", type=int, help="tests in the project")
    parser.add_argument("--seed", type=int, default=20261116, help="of the order of runs")
    parser.add_argument("--out", type=Path, help="the page to write")
    parser.add_argument("--note", default="", help="what readers of the page must know of this run")
    parser.add_argument("--keep", type=Path, help="a new folder for the project")
    options = parser.parse_args(arguments)
    for name, usual in zip(("changed", "unchanged", "models"), USUAL[options.work], strict=True):
        if getattr(options, name) is None:
            setattr(options, name, usual)
    if not 2 <= options.models <= projects.MOST_MODELS:
        parser.error(f"--models: expected 2 to {projects.MOST_MODELS}, found {options.models}")
    if min(options.changed, options.unchanged) < 1:
        parser.error("--changed and --unchanged: expected at least 1 run each")
    if options.keep and options.keep.exists():
        parser.error(f"--keep: {options.keep} exists already")
    if options.keep:
        options.keep = options.keep.absolute()
    return options


def _measure(project: Project, found: Findings, options: argparse.Namespace) -> None:
    chance = random.Random(options.seed)
    plan: list[str | None] = [chance.choice(project.tests) for _ in range(options.changed)]
    plan += [None] * options.unchanged
    chance.shuffle(plan)
    _say(f"baseline of {options.runs} runs, the first of {options.sessions} sessions")
    start_s = time.monotonic()
    found.calibration = project.calibrate(options.sessions)
    quiet_s = project.update(options.runs - 1)
    found.calibration_s = time.monotonic() - start_s
    records = project.folder / "records"
    records.mkdir()
    for number, slowed in enumerate(plan, start=1):
        record = records / f"{number:04}.json"
        after_s = None
        if options.work == "neighbour":
            after_s = quiet_s * chance.uniform(*projects.BEGINS)
        attempt = run_once(
            project, slowed, more=found.more, record=record, neighbour_after_s=after_s
        )
        found.attempts.append(attempt)
        name = slowed.rpartition("::")[2] if slowed else "no test"
        _say(
            f"run {number} of {len(plan)}, more work in {name}: {attempt.words}; "
            f"{attempt.ran.seconds:.1f} s; {_left(found, plan[number:])}"
        )


def _left(found: Findings, plan: Sequence[str | None]) -> str:
    """Estimate the time left: changed runs take longer, for they are measured again."""
    everything = mean(each.ran.seconds for each in found.attempts)
    seconds = 0.0
    for changed in (True, False):
        seen = [each.ran.seconds for each in found.runs(changed=changed)]
        count = sum(bool(slowed) is changed for slowed in plan)
        seconds += count * (mean(seen) if seen else everything)
    return f"about {seconds / 60:.1f} min left" if seconds >= 60 else f"about {seconds:.0f} s left"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
