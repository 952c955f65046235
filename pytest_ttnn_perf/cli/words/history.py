"""The words of commands that read many recorded runs."""

from __future__ import annotations

import argparse
from datetime import timedelta
from pathlib import Path

from pytest_ttnn_perf.cli.words import add_baselines, add_format, number_within

#: More runs than anybody has.
_MOST_RUNS = 1_000_000


def history(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf history``."""
    parser.description = (
        "Show what recorded runs measured, in the order of their commits. With a test, one row "
        "per run; without one, one row per test, metric and hardware key. A test that is called as "
        "a command is, such as prune, stands behind two dashes."
    )
    parser.add_argument(
        "test", metavar="TEST", nargs="?", help="a test id, file or folder, or a pattern"
    )
    _add_runs(parser)
    _add_listing(parser)
    parser.set_defaults(run="history:run")


def history_import(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf history import``."""
    parser.description = (
        "Send run records to a database. What is there already is left as it is, so that a command "
        "that was interrupted can be given again."
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        type=Path,
        nargs="*",
        help="run records, or folders of them (default: .ttnn_perf/runs)",
    )
    _add_database(parser)
    parser.set_defaults(run="history:send_records")


def history_export(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf history export``."""
    parser.description = "Write the run records of a database to files. Files stay as they are."
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        type=Path,
        help="where to write them (default: .ttnn_perf/runs)",
    )
    _add_database(parser)
    parser.set_defaults(run="history:export_records")


def prune(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf history prune``."""
    parser.description = (
        "Remove old run records from .ttnn_perf/runs. Records that baselines cite are kept, and so "
        "are journals of runs that may be under way, and files that are no run records. With "
        "--history, remove old runs from a database instead, or their samples and op tables alone, "
        "which take most of its room."
    )
    parser.add_argument(
        "--keep",
        metavar="AGE|N",
        type=_kept,
        help="what to keep: an age in days such as 90d, or the number of newest runs",
    )
    parser.add_argument(
        "--keep-samples",
        metavar="AGE|N",
        type=_kept,
        help="of a database: the runs whose samples and op tables stay",
    )
    parser.add_argument(
        "--history",
        metavar="URL",
        nargs="?",
        const="",
        help="the database to prune; without a URL, that of TTNN_PERF_HISTORY or the setting",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be removed without removing it"
    )
    add_baselines(parser)
    add_format(parser)
    parser.set_defaults(run="history:prune")


def _kept(text: str) -> timedelta | int:
    """Read what is kept."""
    number = text.removesuffix("d")
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= _MOST_RUNS):
        message = f"expected days such as 90d, or a number of runs such as 200, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return timedelta(days=int(number)) if text.endswith("d") else int(number)


def _add_database(parser: argparse._ActionsContainer) -> None:
    """Declare which database is meant."""
    parser.add_argument(
        "--history",
        metavar="URL",
        help="a database of runs: sqlite:///FILE or postgresql+psycopg://... "
        "(default: TTNN_PERF_HISTORY, or the setting history)",
    )


def trends(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf trends``."""
    parser.description = (
        "Find when times and throughputs of recorded runs changed for good, for better or worse: "
        "between which commits, on which hosts, what else changed, and which ops. A host that is "
        "slow as a whole is named once. Nothing is judged: the exit code is 0."
    )
    _add_runs(parser)
    _add_listing(parser)
    parser.set_defaults(run="history:trends")


def report(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf report``."""
    parser.description = (
        "Write one page for a browser, which needs nothing else to open: verdicts, findings, time "
        "by op, timelines, and the history of each metric in the last 50 runs or --last. Nothing "
        "is judged: the exit code is 0."
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="run records of one run, and captures (default: the newest run record)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        type=Path,
        default=Path("report.html"),
        help="where to write it (default: report.html)",
    )
    parser.add_argument(
        "--trace",
        metavar="FOLDER",
        type=Path,
        help="write a Chrome trace of each capture into FOLDER too, for Perfetto",
    )
    add_baselines(parser)
    _add_runs(parser)
    # What files are is found out; of a capture, all regions are shown.
    parser.set_defaults(csv=None, db=None, log=None, region=None, start=None, end=None)
    parser.set_defaults(run="report:run")


def add_source(parser: argparse.ArgumentParser) -> None:
    """Declare where runs are read from."""
    sources = parser.add_mutually_exclusive_group()
    sources.add_argument(
        "--runs",
        metavar="PATH",
        type=Path,
        nargs="+",
        help="run records, or folders of them (default: .ttnn_perf/runs)",
    )
    _add_database(sources)


def add_branch(parser: argparse._ActionsContainer) -> None:
    """Declare the branch that runs are of."""
    parser.add_argument(
        "--branch", metavar="NAME", help="only runs of this branch (default: main, or master)"
    )


def _add_runs(parser: argparse.ArgumentParser) -> None:
    """Declare which runs are read."""
    add_source(parser)
    branches = parser.add_mutually_exclusive_group()
    add_branch(branches)
    branches.add_argument(
        "--all-branches", action="store_true", help="also runs of other branches and pull requests"
    )
    parser.add_argument("--dirty", action="store_true", help="also runs with uncommitted changes")
    parser.add_argument(
        "--last", metavar="N", type=number_within(1, _MOST_RUNS), help="only the last N runs"
    )


def _add_listing(parser: argparse.ArgumentParser) -> None:
    """Declare what of the runs is listed, and how."""
    parser.add_argument("--metric", metavar="NAME", help="only this metric")
    add_format(parser)
