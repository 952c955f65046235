"""``ttnn-perf gate RUN.json``: judge a run that was recorded elsewhere."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.arguments import (
    add_baselines,
    add_format,
    project_settings,
)
from pytest_ttnn_perf.model.rerun import Rerun
from pytest_ttnn_perf.model.rule_settings import Checklist
from pytest_ttnn_perf.model.settings import Missing
from pytest_ttnn_perf.workflow.ci_job import ci_job
from pytest_ttnn_perf.workflow.config_file import find_root
from pytest_ttnn_perf.workflow.regate import CI_SHAPES, Gate, gate_record

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.model.result import Result


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "gate",
        help="judge a run record against baselines; exit 1 when it fails",
        description="Judge a run record against baselines, with no pytest and no hardware.",
    )
    parser.add_argument(
        "record",
        metavar="RUN.json",
        type=Path,
        help="a run record, or the journal of a run that was cut short",
    )
    add_gate(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> Result:
    """Return the verdicts, and whether the run fails."""
    return gate_record(options.record, gate_of(options), shape=options.format)


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Declare how recorded runs are judged."""
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
    add_format(parser, *CI_SHAPES)


def gate_of(options: argparse.Namespace) -> Gate:
    """Return how recorded runs are judged: as the project does, or as the options say."""
    settings = project_settings()
    if options.missing:
        settings = replace(settings, missing=Missing(options.missing))
    if options.checklist:
        settings = replace(settings, checklist=Checklist(options.checklist))
    rerun = Rerun()
    if options.baselines is not None:
        settings = replace(settings, baselines=options.baselines)
        rerun = Rerun(options=("--ttnn-perf-baselines", str(options.baselines)))
    return Gate(settings, rerun, ci_job(os.environ, find_root(Path.cwd())))
