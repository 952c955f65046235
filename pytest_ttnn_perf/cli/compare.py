"""``ttnn-perf compare BEFORE AFTER``: what changed between two runs or two captures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.arguments import add_format, add_window
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.workflow.compare import compare_files

if TYPE_CHECKING:
    import argparse


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "compare",
        help="say what changed between two run records, or two captures",
        description="Of two run records, put every metric side by side, without judging it. Of "
        "two ops_perf_results CSVs, align the ops and say which ones changed, by how much, and "
        "why; the parts add up to the change of the kernel time.",
    )
    parser.add_argument("before", metavar="BEFORE", type=Path, help="told by its content")
    parser.add_argument("after", metavar="AFTER", type=Path, help="of the same kind")
    add_window(parser)
    add_format(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> Result:
    """Return the comparison."""
    text = compare_files(
        options.before, options.after, start=options.start, end=options.end, shape=options.format
    )
    return Result(text)
