"""The words of commands that read recorded runs, and of ``doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.words import add_format, add_gate, add_window

if TYPE_CHECKING:
    import argparse


def gate(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf gate``."""
    parser.description = "Judge a run record against baselines, with no pytest and no hardware."
    parser.add_argument(
        "record",
        metavar="RUN.json",
        type=Path,
        help="a run record, or the journal of a run that was cut short",
    )
    add_gate(parser)
    parser.set_defaults(run="gate:run")


def merge(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf merge``."""
    parser.description = (
        "Join the run records of several shards and hardware keys into one report and "
        "one verdict, with no pytest and no hardware."
    )
    parser.add_argument("records", metavar="RUN.json", type=Path, nargs="+", help="run records")
    parser.add_argument(
        "--expect",
        metavar="N",
        type=int,
        help="how many records there should be: a shard that is missing fails",
    )
    add_gate(parser)
    parser.set_defaults(run="merge:run")


def show(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf show``."""
    parser.description = (
        "Show what a file holds. Of a run record: metrics, spread, verdicts, "
        "environment. Of an ops_perf_results CSV: the op table, by op and category, per device, "
        "with traces, signposts, and the rows that were dropped; with --ops, every op by itself."
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the format is detected")
    parser.add_argument(
        "--ops", action="store_true", help="each op in order: time, cores, part of the peaks, bound"
    )
    add_window(parser)
    add_format(parser)
    parser.set_defaults(run="show:run")


def compare(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf compare``."""
    parser.description = (
        "Of two run records, put every metric side by side, without judging it. Of "
        "two ops_perf_results CSVs, align the ops and say which ones changed, by how much, and "
        "why; the parts add up to the change of the kernel time."
    )
    parser.add_argument("before", metavar="BEFORE", type=Path, help="the format is detected")
    parser.add_argument("after", metavar="AFTER", type=Path, help="of the same kind")
    add_window(parser)
    add_format(parser)
    parser.set_defaults(run="compare:run")


def doctor(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf doctor``."""
    parser.description = (
        "Look at ttnn, devices, host, variables and folders, and say what stands in "
        "the way of a gate, and what to do about it. No device is opened that another process "
        "might be using."
    )
    add_format(parser)
    parser.set_defaults(run="doctor:run")
