"""``ttnn-perf doctor``: what this machine can measure, and why not."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.arguments import add_format, project_settings
from pytest_ttnn_perf.workflow.doctor import Surroundings, doctor, locks_of

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.model.result import Result


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "doctor",
        help="say what this machine can measure; exit 1 when a gate would fail",
        description="Look at ttnn, devices, host, variables and folders, and say what stands in "
        "the way of a gate, and what to do about it. No device is opened that another process "
        "might be using.",
    )
    add_format(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> Result:
    """Return what was found, and whether a gate would fail."""
    settings = project_settings()
    around = Surroundings(dict(os.environ), locks_of(settings))
    return doctor(settings, around, shape=options.format, say=_say)


def _say(line: str) -> None:
    sys.stderr.write(f"ttnn-perf: {line}\n")
    sys.stderr.flush()
