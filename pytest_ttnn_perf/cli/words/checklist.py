"""The words of commands that ask about the optimization checklist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.words import add_artifacts, add_format

if TYPE_CHECKING:
    import argparse


def check(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf check``."""
    parser.description = (
        "Ask every rule of the optimization checklist about what a profiler and ttnn "
        "recorded: what was found, what is clean, and what could not be told."
    )
    add_artifacts(parser)
    parser.add_argument("--select", metavar="CODES", help="only these rules, or prefixes: TTP6")
    parser.add_argument("--ignore", metavar="CODES", help="not these rules, or prefixes")
    parser.add_argument(
        "--all",
        action="store_true",
        help="also what would save less than 1 %% of a step, and what rules lack",
    )
    add_format(parser)
    parser.set_defaults(run="check:run")


def analyze(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf analyze``."""
    from pytest_ttnn_perf.records.finding import NAMES

    parser.description = (
        "Show the numbers behind the optimization checklist, from what a profiler and "
        "ttnn recorded: how things are distributed, and what weighs most."
    )
    parser.add_argument("what", metavar="WHAT", choices=NAMES, help=", ".join(NAMES))
    add_artifacts(parser)
    add_format(parser)
    parser.set_defaults(run="analyze:run")


def rules(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf rules``."""
    parser.description = (
        "List the rules of the optimization checklist; with a code or a name, explain "
        "what one finds, why it matters, what to do, and its limits."
    )
    parser.add_argument("code", metavar="CODE", nargs="?", help="such as TTP203")
    add_format(parser)
    parser.set_defaults(run="rules:run")
