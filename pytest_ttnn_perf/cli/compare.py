"""``ttnn-perf compare BEFORE AFTER``: which ops make up a change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.arguments import add_format
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.workflow.compare import compare_captures

if TYPE_CHECKING:
    import argparse


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "compare",
        help="say which ops make up the change between two captures",
        description="Align the ops of two ops_perf_results CSVs and say which ones changed, by "
        "how much, and why. The parts add up to the change of the kernel time.",
    )
    parser.add_argument("before", metavar="BEFORE.csv", type=Path)
    parser.add_argument("after", metavar="AFTER.csv", type=Path)
    parser.add_argument("--start", metavar="SIGNPOST", help="compare what follows this signpost")
    parser.add_argument("--end", metavar="SIGNPOST", help="up to this one (default: its _END)")
    add_format(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> Result:
    """Return the comparison."""
    text = compare_captures(
        options.before, options.after, start=options.start, end=options.end, shape=options.format
    )
    return Result(text)
