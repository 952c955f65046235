"""``ttnn-perf trends``: when tests became slower or faster, and what changed then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.history import wanted_history
from pytest_ttnn_perf.history.trends_report import trends_listing
from pytest_ttnn_perf.report.numbers import Result

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> Result:
    """Return the changes of all series.

    Raises:
        InputError: none of the records can be read.
        UsageError: there are no records, or no such branch.
    """
    history = wanted_history(options)
    return Result(trends_listing(history, metric=options.metric).text(options.format))
