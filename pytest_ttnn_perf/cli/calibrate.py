"""``ttnn-perf calibrate TESTS``: how noisy tests are, and what a gate can see in them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.options import Ticker, add_baselines, add_format, project_settings
from pytest_ttnn_perf.experiments.calibrate import Calibration, calibrate
from pytest_ttnn_perf.records.baseline import MAX_SESSIONS

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.result import Result


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "calibrate",
        usage="ttnn-perf calibrate TESTS [--sessions N] [--write] [options of this or of pytest]",
        help="measure how noisy tests are, and what a gate can see in them",
        description="Run the same tests in one fresh process after another. Prints per metric the "
        "noise within and between sessions, the limit that follows, the estimated rate of false "
        "alarms, and the smallest regression that is caught in 80 % of runs. What is not an "
        "option of this command is passed on to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--sessions",
        metavar="N",
        type=_sessions,
        default=10,
        help=f"processes, 2 to {MAX_SESSIONS} (default: 10)",
    )
    parser.add_argument("--write", action="store_true", help="store the sessions as the baseline")
    parser.add_argument(
        "--reason", metavar="TEXT", help="why results worse than the stored ones are accepted"
    )
    add_baselines(parser)
    add_format(parser)
    # No argument is declared for the tests: pytest's options and their values stay in order.
    parser.set_defaults(run=run, passes_on=True)


def run(options: argparse.Namespace) -> Result:
    """Run the sessions; Ctrl-C ends them early and loses nothing."""
    asked = Calibration(
        options.rest, options.sessions, options.write, options.baselines, Path.cwd(), options.reason
    )
    ticker = Ticker()
    try:
        return calibrate(asked, project_settings(), progress=ticker.show, shape=options.format)
    finally:
        ticker.close()


def _sessions(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= MAX_SESSIONS:
        message = f"expected a whole number from 2 to {MAX_SESSIONS}, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return int(text)
