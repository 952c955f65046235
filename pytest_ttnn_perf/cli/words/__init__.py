"""Arguments and help texts of commands, by topic; here those that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def add_format(parser: argparse.ArgumentParser, *more: str) -> None:
    """Declare ``--format``, with shapes that only one command has."""
    choices = ("table", "json", "csv", *more)
    parser.add_argument("--format", choices=choices, default="table", help="default: table")


def add_window(parser: argparse.ArgumentParser) -> None:
    """Declare the part of a capture: ``--region``, or ``--start`` and ``--end``."""
    parser.add_argument("--region", metavar="NAME", help="only this region, such as decode")
    parser.add_argument("--start", metavar="SIGNPOST", help="only ops after this signpost")
    parser.add_argument("--end", metavar="SIGNPOST", help="up to this signpost (default: its _END)")


def add_baselines(parser: argparse.ArgumentParser) -> None:
    """Declare ``--baselines``."""
    parser.add_argument(
        "--baselines", metavar="DIR", type=Path, help="where baselines live (default: baselines)"
    )


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Declare how recorded runs are judged."""
    from pytest_ttnn_perf.records.settings import Checklist, Missing

    add_baselines(parser)
    parser.add_argument(
        "--missing",
        choices=[choice.value for choice in Missing],
        help="what a test without a comparable baseline does (default: fail)",
    )
    parser.add_argument(
        "--checklist",
        choices=[choice.value for choice in Checklist],
        help="what errors of the checklist do (default: enforce)",
    )
    add_format(parser, "markdown", "gitlab")


def add_artifacts(parser: argparse.ArgumentParser) -> None:
    """Declare what is looked at."""
    parser.add_argument("--csv", metavar="FILE", type=Path, help="an ops_perf_results CSV")
    parser.add_argument(
        "--db", metavar="FILE", type=Path, help="a report database, db.sqlite, or its folder"
    )
    parser.add_argument(
        "--log", metavar="FILE", type=Path, help="output of tt-lang, or of its simulator"
    )
    add_window(parser)


def add_change(parser: argparse.ArgumentParser, run: str) -> None:
    """Declare what commands share that change baselines; ``run`` names the function of one."""
    parser.add_argument("--dry-run", action="store_true", help="show it, and write nothing")
    add_baselines(parser)
    add_format(parser)
    parser.set_defaults(run=run)


def number_within(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number within limits."""

    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            message = f"expected a whole number from {least} to {most}, found {text!r}"
            raise argparse.ArgumentTypeError(message)
        return int(text)

    return read
