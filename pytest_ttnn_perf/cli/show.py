"""``ttnn-perf show FILE``: what a run record or a capture holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.arguments import add_format, add_window
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.workflow.show import show_file

if TYPE_CHECKING:
    import argparse


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "show",
        help="show what a run record or a capture holds",
        description="Show what a file holds. Of a run record: metrics, spread, verdicts, "
        "environment. Of an ops_perf_results CSV: the op table, by op and category, per device, "
        "with traces, signposts, and the rows that were dropped.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="told by its content")
    add_window(parser)
    add_format(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> Result:
    """Return the file's content."""
    text = show_file(options.file, start=options.start, end=options.end, shape=options.format)
    return Result(text)
