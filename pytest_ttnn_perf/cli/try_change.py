"""``ttnn-perf try -m MESSAGE TESTS``: is this change worth keeping?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.cli.ab import with_pytest_options
from pytest_ttnn_perf.records.step import Decision
from pytest_ttnn_perf.report.layout import printed, stdout_style
from pytest_ttnn_perf.report.live import Ticker
from pytest_ttnn_perf.report.numbers import Result, json_text
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse

#: What a shell may not go on after.
_FAILED: Final = frozenset({Decision.REVERT, Decision.NOT_COMPARABLE})


def run(options: argparse.Namespace) -> Result:
    """Measure the change, record the step, and say what to do."""
    from pytest_ttnn_perf.experiments.try_change import Try, try_change
    from pytest_ttnn_perf.experiments.try_report import try_document, try_lines

    message, cwd = options.message.strip(), Path.cwd()
    if not message:
        wrong = "-m: expected a few words on what was changed, found nothing"
        raise UsageError(wrong)
    settings = with_pytest_options(project_settings(), options.rest)
    same = tuple(options.same)
    asked = Try(message, options.rest, options.rounds, cwd, same, options.base)
    ticker = Ticker()
    try:
        tried = try_change(asked, settings, progress=ticker.show)
    finally:
        ticker.close()
    if options.format == "json":
        text = json_text(try_document(tried, cwd))
    else:
        text = "".join(f"{line}\n" for line in printed(try_lines(tried, cwd), stdout_style()))
    decision = tried.step.decision
    return Result(text, failed=decision in _FAILED, inconclusive=decision is Decision.CANNOT_TELL)
