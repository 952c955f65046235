"""``ttnn-perf baseline list``: what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.arguments import (
    add_baselines,
    add_format,
    project_settings,
)
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.workflow.listings import list_baselines

if TYPE_CHECKING:
    import argparse


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its actions."""
    parser = commands.add_parser("baseline", help="look at stored baselines")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list",
        help="list every stored metric",
        description="List every stored metric: its centre, its sessions, when and why accepted.",
    )
    add_baselines(listing)
    add_format(listing)
    listing.set_defaults(run=run_list)


def run_list(options: argparse.Namespace) -> Result:
    """Return the list."""
    root = options.baselines or project_settings().baselines
    return Result(list_baselines(root, shape=options.format))
