"""Runs over time: their order, their series, their changes and their page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import TtnnPerfError
from pytest_ttnn_perf.core.files import read_text
from pytest_ttnn_perf.report.sentences import command_line, place_of
from pytest_ttnn_perf.report.tables import Line

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.settings import DatabaseUrl
    from pytest_ttnn_perf.report.run import RunResult


def run_finished(result: RunResult) -> RunResult:
    """Write the page of a run, and send the run, as wanted."""
    settings = result.context.settings
    if settings.html is not None:
        from pytest_ttnn_perf.history.page import write_page_of_run

        try:
            result = replace(result, page=write_page_of_run(result))
        except TtnnPerfError as error:
            result.errors.append(str(error))
    if settings.history is not None and result.run.tests:
        result = replace(result, sent=_send(result, settings.history))
    return result


def _send(result: RunResult, url: DatabaseUrl) -> Line:
    from pytest_ttnn_perf.history.database import send_run

    record = result.records[0] if result.records else None
    try:
        text = None if record is None else read_text(record).rstrip()
        send_run(url, result.run, record or result.context.settings.artifacts, text)
    except TtnnPerfError as error:
        later = ""
        if record is not None:
            place = place_of(os.path.relpath(record, result.context.cwd))
            words = (place, "--history", str(url) if url.password is None else "URL")
            later = f"; send it later: {command_line('ttnn-perf', 'history', 'import', *words)}"
        return Line(f"history: not sent: {error}{later}", bad=True)
    return Line(f"history: sent to {url}")
