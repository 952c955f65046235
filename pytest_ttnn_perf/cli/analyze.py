"""``ttnn-perf analyze WHAT``: distributions and top offenders, from artifacts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.arguments import add_format
from pytest_ttnn_perf.cli.check import add_artifacts, artifacts_of
from pytest_ttnn_perf.model.analysis import NAMES

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.model.result import Result


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "analyze",
        help="show the numbers behind the checklist: distributions and top offenders",
        description="Show the numbers behind the optimization checklist, from what a profiler and "
        "ttnn recorded: how things are distributed, and what weighs most.",
    )
    parser.add_argument("what", metavar="WHAT", choices=NAMES, help=", ".join(NAMES))
    add_artifacts(parser)
    add_format(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> Result:
    """Return the analysis."""
    from pytest_ttnn_perf.workflow.analyze import analyze_artifacts  # not for other commands

    return analyze_artifacts(options.what, artifacts_of(options), shape=options.format)
