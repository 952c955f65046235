"""The words of commands that read many recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.words import add_format, number_within

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
    parser.epilog = (
        "ttnn-perf history import, export and prune are commands of their own, for a database of "
        "runs; a test of such a name is asked for by its file."
    )
    _add_runs(parser)
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
    parser.set_defaults(run="history_database:send_records")


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
    parser.set_defaults(run="history_database:export_records")


def history_prune(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf history prune``."""
    parser.description = (
        "Remove old runs from a database, or their samples and op tables alone, which take most of "
        "its room. 90d keeps what is younger than 90 days, 200 the newest 200 runs."
    )
    parser.add_argument("--keep", metavar="90d|N", help="runs that stay")
    parser.add_argument(
        "--keep-samples", metavar="30d|N", help="runs whose samples and op tables stay"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    _add_database(parser)
    parser.set_defaults(run="history_database:prune_runs")


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
    parser.set_defaults(run="trends:run")


def _add_runs(parser: argparse.ArgumentParser) -> None:
    """Declare which runs are read."""
    sources = parser.add_mutually_exclusive_group()
    sources.add_argument(
        "--runs",
        metavar="PATH",
        type=Path,
        nargs="+",
        help="run records, or folders of them (default: .ttnn_perf/runs)",
    )
    _add_database(sources)
    branches = parser.add_mutually_exclusive_group()
    branches.add_argument(
        "--branch", metavar="NAME", help="only runs of this branch (default: main, or master)"
    )
    branches.add_argument(
        "--all-branches", action="store_true", help="also runs of other branches and pull requests"
    )
    parser.add_argument("--dirty", action="store_true", help="also runs with uncommitted changes")
    parser.add_argument("--metric", metavar="NAME", help="only this metric")
    parser.add_argument(
        "--last", metavar="N", type=number_within(1, _MOST_RUNS), help="only the last N runs"
    )
    add_format(parser)
