"""``ttnn-perf journal``: what did all these steps amount to?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.records.observation import lies_in
from pytest_ttnn_perf.report.numbers import Result
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> Result:
    """Print the steps of this history, and what they sum to."""
    from pytest_ttnn_perf.experiments.journal import ways_of
    from pytest_ttnn_perf.experiments.journal_report import journal_listing, journal_markdown
    from pytest_ttnn_perf.experiments.kept_state import read_steps, steps_of_branch

    steps = steps_of_branch(Path.cwd(), read_steps(project_settings().artifacts))
    if not steps:
        message = "no step is recorded for this branch: ttnn-perf try -m MESSAGE TESTS records one"
        raise UsageError(message)
    ways = [way for way in ways_of(steps) if lies_in(way.test, options.test or "")]
    if options.test and not ways:
        known = ", ".join(way.test for way in ways_of(steps)) or "none"
        message = f"no step has measured {options.test}; steps have measured: {known}"
        raise UsageError(message)
    if options.format == "markdown":
        return Result(journal_markdown(steps, ways))
    return Result(journal_listing(steps, ways).text(options.format))
