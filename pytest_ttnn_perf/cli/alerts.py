"""Commands from a failed test to its owner: repro, alert."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.cli.common import add_argument, add_format, plain, select_tests
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.observation import RUN_FORMAT
from pytest_ttnn_perf.core.settings import project_settings
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.gate.judging import failing_verdicts
from pytest_ttnn_perf.machine.processes import last_words, run_bounded
from pytest_ttnn_perf.report.sentences import reproduction, sentence
from pytest_ttnn_perf.report.tables import Listing, Result, json_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pytest_ttnn_perf.core.observation import Run
    from pytest_ttnn_perf.core.settings import Settings


def add_repro(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "record RUN.json", "a run record", type=Path)
    add_argument(parser, "test TEST", "a test id, file or folder, or a pattern")
    add_format(parser)


def run_repro(options: argparse.Namespace) -> Result:
    """Print how to measure a test of a run record again.

    It names the commit, the board, the build, the configuration and the variables, and ends with
    the commands.
    """
    run, build = read_run(options.record), project_settings().build
    named = select_tests([*run.tests], [options.test], where=str(options.record))
    found = [(test, reproduction(run, run.tests[test], build)) for test in named]
    lines = [line for test, parts in found for line in ("", f"test: {test}", *_shown(parts))]
    rows = tuple((test, *part) for test, parts in found for part in parts)
    document = {"tests": [{"test": test, "steps": parts} for test, parts in found]}
    headings = ("test", "what", "text")
    return Result(Listing(tuple(lines[1:]), document, headings, rows).text(options.format))


def _shown(parts: list[tuple[str, str]]) -> Iterator[str]:
    yield from (text if what == "run" else f"{what}: {text}" for what, text in parts)


def add_alert(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "record RUN.json", "a run record", type=Path)
    add_argument(parser, "--run CMD", "shell command that reads the alert as JSON", required=True,
        dest="command")  # fmt: skip


def run_alert(options: argparse.Namespace) -> Result:
    """Give the failures of a run to a command, as JSON.

    It is on the command's stdin. What the run was judged to be is believed. Without a failure the
    command is not run. Exit code 1: the command failed.
    """
    run, settings = read_run(options.record), project_settings()
    if not any(judged.verdicts for judged in run.tests.values()):
        message = f"{options.record} has no verdicts: make some with ttnn-perf gate"
        raise UsageError(message)
    document = alert_document(run, settings)
    if not document["tests"]:
        return plain(["nothing failed: no alert"])
    with tempfile.TemporaryDirectory() as folder:
        given, log = Path(folder, "alert.json"), Path(folder, "log")
        given.write_text(json_text(document), encoding="utf-8")
        with given.open("rb") as stdin, log.open("wb") as output:
            ending = run_bounded(
                options.command,
                timeout_s=settings.timeout,
                stdout=output,
                stderr=output,
                stdin=stdin,
            )
        if ending.code != 0 or ending.hung:
            why = f"the command of the alert {ending}"
            said = last_words(log).splitlines()
            return plain([f"failed: {why}: {options.command}", *said], failed=True)
    return plain([f"alert: {document['title']}"])


def alert_document(run: Run, settings: Settings) -> dict[str, object]:
    """Return all that failed, worst first, with what its owner needs."""
    failed = [
        (judged, verdict)
        for judged in run.tests.values()
        for verdict in failing_verdicts(judged, settings)
    ]
    failed.sort(key=lambda one: -(one[1].change or 0.0))
    count = len({judged.observation.test for judged, _ in failed})
    more = f" and {counted(count - 1, 'other test')}" if count > 1 else ""
    first = f"{failed[0][0].observation.test}: {sentence(failed[0][1])}" if failed else ""
    return {
        "format": RUN_FORMAT,
        "run": run.id,
        "title": f"{first}{more}",
        "commit": run.environment.commit,
        "branch": run.environment.branch,
        "tests": [
            {
                "test": judged.observation.test,
                "file": judged.observation.location and judged.observation.location[0],
                "metric": verdict.metric.name,
                "unit": verdict.metric.unit,
                "outcome": verdict.outcome.value,
                "before": verdict.centre,
                "after": verdict.observed,
                "change": verdict.change,
                "sentence": sentence(verdict),
                "cause": judged.by_op,
                "reproduce": dict(reproduction(run, judged, settings.build)),
            }
            for judged, verdict in failed
        ],
    }
