"""``ttnn-perf show RUN.json``: what a run record holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.arguments import add_format
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.workflow.listings import show_run

if TYPE_CHECKING:
    import argparse


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "show",
        help="show what a run record holds",
        description="Show what a run record holds: metrics, spread, verdicts, environment.",
    )
    parser.add_argument("record", metavar="RUN.json", type=Path, help="a run record or journal")
    add_format(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> Result:
    """Return the record's content."""
    return Result(show_run(options.record, shape=options.format))
