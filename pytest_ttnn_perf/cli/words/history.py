"""The words of commands that read many recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.words import add_baselines, add_format, number_within

if TYPE_CHECKING:
    import argparse

#: More runs than anybody has.
_MOST_RUNS = 1_000_000


def history(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf history``."""
    parser.description = (
        "Show what recorded runs measured, in the order of their commits. With a test, one row "
        "per run; without one, one row per test, metric and hardware key."
    )
    parser.add_argument(
        "test", metavar="TEST", nargs="?", help="a test id, file or folder, or a pattern"
    )
    _add_runs(parser)
    _add_listing(parser)
    parser.set_defaults(run="history:run")


def trends(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf trends``."""
    parser.description = (
        "Find when times and throughputs of recorded runs changed for good, for better or worse: "
        "between which commits, on which hosts, what else changed, and which ops. A host that is "
        "slow as a whole is named once. Nothing is judged: the exit code is 0."
    )
    _add_runs(parser)
    _add_listing(parser)
    parser.set_defaults(run="trends:run")


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


def _add_runs(parser: argparse.ArgumentParser) -> None:
    """Declare which runs are read."""
    parser.add_argument(
        "--runs",
        metavar="PATH",
        type=Path,
        nargs="+",
        help="run records, or folders of them (default: .ttnn_perf/runs)",
    )
    branches = parser.add_mutually_exclusive_group()
    branches.add_argument(
        "--branch", metavar="NAME", help="only runs of this branch (default: main, or master)"
    )
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
