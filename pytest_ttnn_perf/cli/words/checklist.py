"""The words of commands that ask about the optimization checklist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.cli.words import add_artifacts, add_format

if TYPE_CHECKING:
    import argparse


_FILES: Final = (
    "an ops_perf_results CSV, a report database of ttnn, output of tt-lang, or a folder with one "
    "of them; the format is detected"
)


def check(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf check``."""
    parser.description = (
        "Apply the rules of the optimization checklist to what a profiler, ttnn or tt-lang "
        "recorded: what could be faster, what that would save, and how to fix it. Files of "
        "different kinds are checked together, several of one kind one by one."
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help=_FILES)
    add_artifacts(parser)
    parser.add_argument(
        "--select", metavar="CODES", help="only these rules, as codes or prefixes such as TTP6"
    )
    parser.add_argument("--ignore", metavar="CODES", help="all but these rules")
    parser.add_argument(
        "--all",
        action="store_true",
        help="also show what would save less than 1 %% of a step, and what other rules need",
    )
    add_format(parser)
    parser.set_defaults(run="check:run", files_anywhere=True)


def analyze(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf analyze``."""
    from pytest_ttnn_perf.records.finding import NAMES

    parser.description = (
        "Show the numbers behind the optimization checklist, from what a profiler, ttnn or tt-lang "
        "recorded: an overview, or one topic in full. Files of different kinds are analysed "
        "together, several of one kind one by one."
    )
    names = ", ".join(NAMES)
    parser.usage = "ttnn-perf analyze [WHAT] FILE [FILE ...] [options]"
    parser.add_argument("what", metavar="WHAT", nargs="?", help=f"{names} (default: an overview)")
    parser.add_argument("files", metavar="FILE", nargs="*", help=_FILES)
    add_artifacts(parser)
    add_format(parser)
    parser.set_defaults(run="analyze:run", files_anywhere=True)


def plan(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf plan``."""
    parser.description = (
        "Make a plan of the findings of captures, or of tests in a run record: what to do first, "
        "what each step saves, what is left after it, and whether a target is in reach. Without a "
        "file, the newest run record is taken."
    )
    parser.usage = "ttnn-perf plan [FILE ...] [TEST ...] [options]"
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help=f"{_FILES}; or a run record, and tests in it: ids, folders, patterns",
    )
    add_artifacts(parser)
    parser.add_argument("--target", metavar="TIME", help="what a step should take, such as '12 ms'")
    add_format(parser, "markdown")
    parser.set_defaults(run="plan:run", files_anywhere=True)


def rules(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf rules``."""
    parser.description = (
        "List the rules of the optimization checklist, or explain one of them: what it finds, why "
        "that matters, what to do, and its limits."
    )
    parser.add_argument(
        "code", metavar="CODE", nargs="?", help="the code or the name of a rule, such as TTP203"
    )
    add_format(parser)
    parser.set_defaults(run="rules:run")
