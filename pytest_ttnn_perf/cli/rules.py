"""``ttnn-perf rules [CODE]``: the optimization checklist, explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.arguments import add_format
from pytest_ttnn_perf.model.result import Result

if TYPE_CHECKING:
    import argparse


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "rules",
        help="list the rules of the optimization checklist, or explain one",
        description="List the rules of the optimization checklist; with a code or a name, explain "
        "what one finds, why it matters, what to do, and its limits.",
    )
    parser.add_argument("code", metavar="CODE", nargs="?", help="such as TTP203")
    add_format(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> Result:
    """Return the rules."""
    from pytest_ttnn_perf.workflow.rules import show_rules  # not for other commands

    return Result(show_rules(options.code, shape=options.format))
