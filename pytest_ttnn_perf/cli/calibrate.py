"""``ttnn-perf calibrate TESTS``: how noisy tests are, and what a gate can see in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.experiments.calibrate import Calibration, calibrate
from pytest_ttnn_perf.report.live import Ticker
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.report.numbers import Result


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
