"""The checklist over an ops CSV, beside reading it.

    python benchmarks/checklist.py [--rounds 9] [--all] [--profile]

Bar: ``ttnn-perf check`` of ``falcon3_full``, a real capture, from reading it to the
text that is printed, in less than 3 × the time of reading it. Without it nothing is
measured, which is said, and is no failure. ``--all`` shows the other files beside it, ``--profile``
the rules that take longest.

CPU time, both sides in turn, round after round; only ratios mean anything.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_rules
from pytest_ttnn_perf.analysis.ops.names import setting
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from pytest_ttnn_perf.cli.captures import run_check as run
from pytest_ttnn_perf.cli.main import parse
from pytest_ttnn_perf.core.finding import Subject
from tests.harness.corpus import corpus_folder, op_tables

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BAR: Final = 3.0
#: The capture that the bar is for.
NAMED: Final = "falcon3_full"
#: How many rules a profile names.
MOST: Final = 12


def main() -> int:
    parser = argparse.ArgumentParser(description="The checklist, beside reading what it checks")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--all", action="store_true", help="Show all files of the corpus")
    parser.add_argument("--profile", action="store_true", help="Name the rules that take longest")
    options = parser.parse_args()
    files = sorted(op_tables(), key=lambda file: file.stem != NAMED)
    if not files or files[0].stem != NAMED:
        print(f"SKIPPED, NOTHING WAS MEASURED: no {NAMED} in {corpus_folder()}; ", end="")
        print("set TTNN_PERF_CORPUS to the folder of the corpus")
        return 0
    print(f"check / read_ops_csv (bar {BAR:.2f}, of {NAMED})")
    shown = files if options.all else files[:1]
    ratios = [beside_reading(file, rounds=options.rounds) for file in shown]
    if options.profile:
        profile(files[0], rounds=options.rounds)
    met = ratios[0] < BAR
    print("all bars met" if met else "A BAR WAS MISSED")
    return 0 if met else 1


def beside_reading(file: Path, *, rounds: int) -> float:
    """Compare the whole command with the reading that is part of it."""
    checking, reading = in_turn(
        partial(check_afresh, file), partial(read_ops_csv, file), rounds=rounds
    )
    ratio = statistics.median(a / b for a, b in zip(checking, reading, strict=True))
    print(f"  {file.stem:40}{1e3 * statistics.median(checking):9.1f} ms", end="")
    print(f"{1e3 * statistics.median(reading):9.1f} ms{ratio:8.2f}")
    return ratio


def check_afresh(file: Path) -> None:
    setting.cache_clear()  # what an earlier round has found must not help
    run(parse(["check", "--csv", str(file)]))


def in_turn(*sides: Callable[[], object], rounds: int) -> list[list[float]]:
    """Return the CPU seconds of each side, round by round; the first round warms up."""
    seconds: list[list[float]] = [[] for _ in sides]
    for number in range(rounds + 1):
        for own, side in zip(seconds, sides, strict=True):
            start = time.process_time()
            side()
            if number:
                own.append(time.process_time() - start)
    return seconds


def profile(file: Path, *, rounds: int) -> None:
    """Print what single rules take, each asked alone about a table that is read already.

    What rules share is derived in the first round, which does not count: it belongs to none.
    """
    table = read_ops_csv(file)
    rules = all_rules()
    sides = [partial(run_rules, [rule], Subject(ops=table)) for rule in rules]
    taken = [statistics.median(own) for own in in_turn(*sides, rounds=rounds)]
    print(f"\n{len(rules)} rules, {len(table):,} ops: {1e3 * sum(taken):.1f} ms")
    longest = sorted(zip(taken, rules, strict=True), key=lambda pair: -pair[0])
    for seconds, rule in longest[:MOST]:
        print(f"  {rule.code} {rule.name:33}{1e3 * seconds:9.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
