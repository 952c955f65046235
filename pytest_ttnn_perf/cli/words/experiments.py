"""The words of commands that measure without a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.words import add_baselines, add_format, number_within

if TYPE_CHECKING:
    import argparse


def ab(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf ab``."""
    from pytest_ttnn_perf.records.settings import USUAL_ROUNDS

    parser.usage = (
        "ttnn-perf ab REF [TESTS] [--rounds N] [--same DIR] [options of this or of pytest]"
    )
    parser.description = (
        "Check REF out beside the working tree, and measure both in turns, each time "
        "in a fresh process, until it is known what changed. Rounds are judged pair by pair, so "
        "that a machine that drifts does not matter. No baseline is needed, and none is written. "
        "What is not an option of this command is passed on to pytest. Exit code 7: not all "
        "could be told."
    )
    parser.allow_abbrev = False
    parser.add_argument("ref", metavar="REF", help="a branch, a tag or a commit")
    _add_rounds(parser, "processes of each side at most", USUAL_ROUNDS)
    _add_same(parser, "code that both sides take from the working tree, such as a build in it")
    add_format(parser)
    # No argument is declared for the tests: pytest's options and their values stay in order.
    parser.set_defaults(run="ab:run", passes_on=True)


def bisect(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf bisect``."""
    from pytest_ttnn_perf.records.settings import MAX_ROUNDS

    parser.usage = (
        "ttnn-perf bisect GOOD [BAD] [TESTS] [--metric NAME] [--rounds N] [--same DIR] "
        "[options of this or of pytest]"
    )
    parser.description = (
        "Find the commit that made a test slower. Commits after GOOD up to BAD (default: HEAD), by "
        "first parents, are measured in turns with GOOD, in folders of their own. The same command "
        "goes on after Ctrl-C. What is not an option of this command is passed on to pytest. Exit "
        "code 1: BAD is not slower. 7: it could not be told, or was interrupted."
    )
    parser.allow_abbrev = False
    parser.add_argument("good", metavar="GOOD", help="a branch, a tag or a commit that is fast")
    parser.add_argument(
        "--metric", metavar="NAME", help="the metric to follow (default: the clearest)"
    )
    _add_rounds(parser, "processes of each commit at most", MAX_ROUNDS)
    _add_same(parser, "code that all commits take from the working tree, such as a build in it")
    add_format(parser)
    # BAD and the tests are not declared: pytest's options and their values stay in order.
    parser.set_defaults(run="bisect:run", passes_on=True)


def calibrate(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf calibrate``."""
    from pytest_ttnn_perf.records.baseline import MAX_SESSIONS

    parser.usage = (
        "ttnn-perf calibrate TESTS [--sessions N] [--write] [options of this or of pytest]"
    )
    parser.description = (
        "Run the same tests in one fresh process after another. Prints per metric the "
        "noise within and between sessions, the limit that follows, the estimated rate of false "
        "alarms, and the smallest regression that is caught in 80 % of runs. What is not an "
        "option of this command is passed on to pytest."
    )
    parser.allow_abbrev = False
    parser.add_argument(
        "--sessions",
        metavar="N",
        type=number_within(2, MAX_SESSIONS),
        default=10,
        help=f"processes, 2 to {MAX_SESSIONS} (default: 10)",
    )
    parser.add_argument("--write", action="store_true", help="store the sessions as the baseline")
    parser.add_argument(
        "--reason", metavar="TEXT", help="why results worse than the stored ones are accepted"
    )
    add_baselines(parser)
    add_format(parser)
    # No argument is declared for the tests: pytest's options and their values stay in order.
    parser.set_defaults(run="calibrate:run", passes_on=True)


def _add_rounds(parser: argparse.ArgumentParser, text: str, usual: int) -> None:
    """Declare ``--rounds``."""
    from pytest_ttnn_perf.records.settings import MAX_ROUNDS, MIN_ROUNDS

    parser.add_argument(
        "--rounds",
        metavar="N",
        type=number_within(MIN_ROUNDS, MAX_ROUNDS),
        default=usual,
        help=f"{text}, {MIN_ROUNDS} to {MAX_ROUNDS} (default: {usual})",
    )


def _add_same(parser: argparse.ArgumentParser, text: str) -> None:
    """Declare ``--same``."""
    parser.add_argument("--same", metavar="DIR", action="append", default=[], help=text)
