"""The end of a run that has a history database: the run is sent there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf._base.files import read_text
from pytest_ttnn_perf.report.layout import Line
from pytest_ttnn_perf.report.sentences import command_line, place_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.database_url import DatabaseUrl
    from pytest_ttnn_perf.run.record import RunResult


def send_run(result: RunResult, url: DatabaseUrl, *, url_given: bool) -> Line:
    """Send a run, and say in one line what came of it; no verdict depends on that.

    ``url_given``: by the command line, so that the command which sends it later needs it too.
    """
    from pytest_ttnn_perf.history.database import Database
    from pytest_ttnn_perf.history.database_writing import send
    from pytest_ttnn_perf.history.runs import RecordFile

    record = result.records[0] if result.records else None
    try:
        source = RecordFile(record or result.context.settings.artifacts)
        text = None if record is None else read_text(record).rstrip()
        send(Database(url), result.run, source, text=text)
    except TtnnPerfError as error:
        if record is None:
            return Line(f"history: not sent: {error}", bad=True)
        words = [place_of(os.path.relpath(record, result.context.cwd))]
        if url_given:
            words += ["--history", str(url) if url.password is None else "URL"]
        command = command_line("ttnn-perf", "history", "import", *words)
        return Line(f"history: not sent: {error}; send it later: {command}", bad=True)
    return Line(f"history: sent to {url}")
