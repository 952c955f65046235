"""The words of commands that measure without a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.words import add_baselines, add_format, number_within

if TYPE_CHECKING:
    import argparse


def ab(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf ab``."""
    from pytest_ttnn_perf.records.settings import USUAL_ROUNDS

    parser.usage = "ttnn-perf ab REF [TESTS] [--rounds N] [--same DIR] [options]"
    parser.description = (
        "Check out REF next to the working tree, and measure both alternately, each time in a "
        "fresh process, until it is clear what changed. Each round is judged as a pair, so drift "
        "of the machine does not matter. No baseline is needed or written. All other arguments are "
        "passed to pytest. Exit code 7: some results are inconclusive."
    )
    parser.allow_abbrev = False
    parser.add_argument("ref", metavar="REF", help="a branch, tag or commit")
    _add_rounds(parser, "maximum number of processes per side", USUAL_ROUNDS)
    _add_same(parser, "folder that both sides take from the working tree, such as a build")
    add_format(parser)
    # No argument is declared for the tests: pytest's options and their values stay in order.
    parser.set_defaults(run="ab:run", passes_on=True)


def try_change(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf try``."""
    from pytest_ttnn_perf.records.settings import USUAL_ROUNDS

    parser.usage = (
        "ttnn-perf try -m MESSAGE [TESTS] [--base REF] [--rounds N] [--same DIR]\n"
        "                     [options]"
    )
    parser.description = (
        "Measure the working tree against the last kept state, alternately and each time in a "
        "fresh process, and answer KEEP, REVERT, CANNOT_TELL or NOT_COMPARABLE. What is committed, "
        "or was answered with KEEP since, is kept. Nothing is committed or reverted: the commands "
        "are printed. All other arguments are passed to pytest. Exit code 1: revert, or not "
        "comparable; 7: cannot tell."
    )
    parser.allow_abbrev = False
    parser.add_argument(
        "-m", dest="message", metavar="MESSAGE", required=True, help="what the change is, in short"
    )
    parser.add_argument(
        "--base", metavar="REF", help="a branch, tag or commit to compare with instead"
    )
    _add_rounds(parser, "maximum number of processes per side", USUAL_ROUNDS)
    _add_same(parser, "folder that both sides take from the working tree, such as a build")
    parser.add_argument(
        "--format",
        choices=("table", "json"),
        default="table",
        help="output format (default: table)",
    )
    # No argument is declared for the tests: pytest's options and their values stay in order.
    parser.set_defaults(run="try_change:run", passes_on=True)


def journal(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf journal``."""
    parser.description = (
        "Show the steps that ttnn-perf try has recorded for this branch: what each did, which were "
        "kept, and how the kept ones sum to the change from the first measurement until now."
    )
    parser.add_argument(
        "test", metavar="TEST", nargs="?", help="only this test, file or folder (default: all)"
    )
    add_format(parser, "markdown")
    parser.set_defaults(run="journal:run")


def bisect(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf bisect``."""
    from pytest_ttnn_perf.records.settings import MAX_ROUNDS

    parser.usage = (
        "ttnn-perf bisect GOOD [BAD] [TESTS] [--metric NAME] [--rounds N]\n"
        "                        [--same DIR] [options]"
    )
    parser.description = (
        "Find the commit that made a test slower. Commits after GOOD up to BAD (default: HEAD), "
        "following first parents, are measured alternately with GOOD, each in its own folder. "
        "After Ctrl-C, the same command continues. All other arguments are passed to pytest. Exit "
        "code 1: BAD is not slower; 7: inconclusive or interrupted."
    )
    parser.allow_abbrev = False
    parser.add_argument("good", metavar="GOOD", help="a branch, tag or commit that is fast")
    parser.add_argument(
        "--metric",
        metavar="NAME",
        help="the metric to follow (default: the one with the clearest change)",
    )
    _add_rounds(parser, "maximum number of processes per commit", MAX_ROUNDS)
    _add_same(parser, "folder that all commits take from the working tree, such as a build")
    add_format(parser)
    # BAD and the tests are not declared: pytest's options and their values stay in order.
    parser.set_defaults(run="bisect:run", passes_on=True)


def calibrate(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf calibrate``."""
    from pytest_ttnn_perf.records.baseline import MAX_SESSIONS

    parser.usage = "ttnn-perf calibrate TESTS [--sessions N] [--write] [options]"
    parser.description = (
        "Run the same tests several times, each time in a fresh process. For each metric, print "
        "the noise within and between sessions, the limit that follows, the estimated rate of "
        "false alarms, and the smallest regression that is caught in 80 % of runs. All other "
        "arguments are passed to pytest."
    )
    parser.allow_abbrev = False
    parser.add_argument(
        "--sessions",
        metavar="N",
        type=number_within(2, MAX_SESSIONS),
        default=10,
        help=f"number of processes, 2 to {MAX_SESSIONS} (default: 10)",
    )
    parser.add_argument("--write", action="store_true", help="store the sessions as the baseline")
    parser.add_argument(
        "--reason", metavar="TEXT", help="why to accept results that are worse than the stored ones"
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
