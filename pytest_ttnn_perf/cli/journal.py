"""``ttnn-perf journal``: what did all these steps amount to?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.records.observation import lies_in
from pytest_ttnn_perf.report.layout import shown_path
from pytest_ttnn_perf.report.numbers import Result
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> Result:
    """Print the steps of this history, and what they sum to."""
    from pytest_ttnn_perf.experiments.journal import ways_of
    from pytest_ttnn_perf.experiments.journal_report import journal_listing, journal_markdown
    from pytest_ttnn_perf.experiments.kept_state import read_steps, steps_of_branch

    artifacts = project_settings().artifacts
    steps, gone = steps_of_branch(Path.cwd(), read_steps(artifacts))
    if not steps:
        message = (
            f"no step is recorded for this branch in {shown_path(artifacts, Path.cwd())}: "
            "ttnn-perf try -m MESSAGE TESTS records one"
        )
        raise UsageError(message)
    found = ways_of(steps, gone)
    ways = [way for way in found if lies_in(way.test, options.test or "")]
    if options.test and not ways:
        known = ", ".join(way.test for way in found) or "none"
        message = f"no step has measured {options.test}; steps have measured: {known}"
        raise UsageError(message)
    if options.format == "markdown":
        return Result(journal_markdown(steps, ways))
    return Result(journal_listing(steps, ways).text(options.format))
