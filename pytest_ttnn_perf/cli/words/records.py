"""The words of commands that read recorded runs, and of ``doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.words import add_format, add_gate, add_window

if TYPE_CHECKING:
    import argparse


def gate(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf gate``."""
    parser.description = (
        "Judge a run record against baselines, without pytest and without hardware."
    )
    parser.add_argument(
        "record",
        metavar="RUN.json",
        type=Path,
        help="a run record, the journal of an interrupted run, or a benchmark's results",
    )
    add_gate(parser)
    parser.set_defaults(run="gate:run")


def merge(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf merge``."""
    parser.description = (
        "Combine the run records of several shards and hardware keys into one report and one "
        "verdict, without pytest and without hardware."
    )
    parser.add_argument("records", metavar="RUN.json", type=Path, nargs="+", help="run records")
    parser.add_argument(
        "--expect",
        metavar="N",
        type=int,
        help="number of shards to expect; fail if there are more or fewer",
    )
    add_gate(parser)
    parser.set_defaults(run="merge:run")


def show(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf show``."""
    parser.description = (
        "Show what is in a file. For a run record: metrics, spread, verdicts and environment. For "
        "an ops_perf_results CSV: time by op, category and device, traces, signposts, and dropped "
        "rows; with --ops, every op on a line of its own."
    )
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="a run record or a capture; the format is detected"
    )
    parser.add_argument(
        "--ops",
        action="store_true",
        help="list each op in order: time, cores, share of the peaks, and what binds it",
    )
    add_window(parser)
    add_format(parser)
    parser.set_defaults(run="show:run")


def compare(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf compare``."""
    parser.description = (
        "For two run records, show every metric side by side, without judging it. For two "
        "ops_perf_results CSVs, align the ops and show which ones changed, by how much, and why; "
        "the parts add up to the change of the kernel time."
    )
    parser.add_argument(
        "before",
        metavar="BEFORE",
        type=Path,
        help="a run record or a capture; the format is detected",
    )
    parser.add_argument("after", metavar="AFTER", type=Path, help="a file of the same kind")
    add_window(parser)
    add_format(parser)
    parser.set_defaults(run="compare:run")


def import_files(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf import``."""
    parser.description = (
        "Turn results of benchmarks (BenchmarkRun JSON, tt-xla, vLLM, inference servers) into a "
        "run record, and list which of their numbers are gated. What several files have of one "
        "test are its samples. Turn targets of models, such as model_targets.yaml, into a file "
        "for the setting targets, and list what was not taken, and why."
    )
    parser.add_argument(
        "files", metavar="FILE", type=Path, nargs="+", help="the format is detected"
    )
    parser.add_argument("--json", metavar="PATH", type=Path, help="where to write it")
    parser.add_argument(
        "--hardware",
        metavar="KEY",
        help="on what they were measured, such as wormhole_b0-n150-1x1 (default: what they say)",
    )
    parser.add_argument(
        "--model", metavar="NAME", help="of targets: the model, for files that do not name it"
    )
    add_format(parser)
    parser.set_defaults(run="import_files:run")


def doctor(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf doctor``."""
    parser.description = (
        "Check ttnn, devices, host, environment variables and folders, and report what would keep "
        "a gate from working and how to fix it. A device that another process might be using is "
        "not opened."
    )
    add_format(parser)
    parser.set_defaults(run="doctor:run")
