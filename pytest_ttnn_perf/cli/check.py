"""``ttnn-perf check``: the optimization checklist on artifacts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.cli.arguments import add_format, project_settings

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.model.result import Result
    from pytest_ttnn_perf.workflow.check import Artifacts


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "check",
        help="check artifacts against the optimization checklist; exit 1 on errors",
        description="Ask every rule of the optimization checklist about what a profiler and ttnn "
        "recorded: what was found, what is clean, and what could not be told.",
    )
    add_artifacts(parser)
    parser.add_argument("--select", metavar="CODES", help="only these rules, or prefixes: TTP6")
    parser.add_argument("--ignore", metavar="CODES", help="not these rules, or prefixes")
    add_format(parser)
    parser.set_defaults(run=run)


def add_artifacts(parser: argparse.ArgumentParser) -> None:
    """Declare what is looked at."""
    parser.add_argument("--csv", metavar="FILE", type=Path, help="an ops_perf_results CSV")
    parser.add_argument("--db", metavar="FILE", type=Path, help="a report database, db.sqlite")
    parser.add_argument("--log", metavar="FILE", type=Path, help="output of tt-lang")
    parser.add_argument("--start", metavar="SIGNPOST", help="of the CSV, what follows this one")
    parser.add_argument("--end", metavar="SIGNPOST", help="up to this one (default: its _END)")


def artifacts_of(options: argparse.Namespace) -> Artifacts:
    """Return what the options name."""
    from pytest_ttnn_perf.workflow.check import Artifacts

    return Artifacts(options.csv, options.db, options.log, options.start, options.end)


def run(options: argparse.Namespace) -> Result:
    """Ask the rules."""
    from pytest_ttnn_perf.workflow.check import check_artifacts  # all rules: not for other commands

    settings = project_settings()
    return check_artifacts(
        artifacts_of(options),
        select=codes(options.select) or settings.select,
        ignore=codes(options.ignore) or settings.ignore,
        rules=settings.rules,
        shape=options.format,
    )


def codes(text: str | None) -> tuple[str, ...]:
    """Return the codes in a list with commas.

    Raises:
        UsageError: the list is empty.
    """
    found = tuple(code.strip().upper() for code in (text or "").split(",") if code.strip())
    if text is not None and not found:
        message = f"expected codes of rules, such as TTP6,TTP203, found {text!r}"
        raise UsageError(message)
    return found
