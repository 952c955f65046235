"""``ttnn-perf merge RUN.json...``: the records of several shards and systems, judged as one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.gate import add_gate, gate_of
from pytest_ttnn_perf.workflow.merge import merge_records

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.model.result import Result


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "merge",
        help="judge the records of several shards and systems as one",
        description="Join the run records of several shards and hardware keys into one report and "
        "one verdict, with no pytest and no hardware.",
    )
    parser.add_argument("records", metavar="RUN.json", type=Path, nargs="+", help="run records")
    parser.add_argument(
        "--expect",
        metavar="N",
        type=int,
        help="how many records there should be: a shard that is missing fails",
    )
    add_gate(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> Result:
    """Return the verdicts, and whether any run fails."""
    return merge_records(
        options.records, gate_of(options), expected=options.expect, shape=options.format
    )
