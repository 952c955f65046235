"""``ttnn-perf baseline``: what is stored, and living with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli import baseline_merge
from pytest_ttnn_perf.cli.arguments import (
    add_baselines,
    add_format,
    project_settings,
)
from pytest_ttnn_perf.cli.baseline_changes import declare as declare_changes
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.workflow.listings import list_baselines

if TYPE_CHECKING:
    import argparse


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its actions."""
    parser = commands.add_parser("baseline", help="look at stored baselines, and change them")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list",
        help="list every stored metric, or who accepted it",
        description="List every stored metric: its centre, its sessions, when and why accepted.",
    )
    listing.add_argument(
        "--log", action="store_true", help="who accepted what and why, from the files and from git"
    )
    listing.add_argument(
        "tests", metavar="TEST", nargs="*", help="with --log: only these, by id, file, or * and ?"
    )
    add_baselines(listing)
    add_format(listing)
    listing.set_defaults(run=run_list)
    declare_changes(actions)
    baseline_merge.declare(actions)


def run_list(options: argparse.Namespace) -> Result:
    """Return the list."""
    root = options.baselines or project_settings().baselines
    if options.log:
        from pytest_ttnn_perf.workflow.acceptance_log import list_acceptances

        return Result(list_acceptances(root, options.tests, shape=options.format))
    if options.tests:
        from pytest_ttnn_perf._support.errors import UsageError

        message = f"tests are named with --log: ttnn-perf baseline list --log {options.tests[0]}"
        raise UsageError(message)
    return Result(list_baselines(root, shape=options.format))
