"""Judging a run that was recorded elsewhere: no pytest, no hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.capture.run_record import read_run
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.model.verdict import Reason
from pytest_ttnn_perf.report.documents import gate_document
from pytest_ttnn_perf.report.listing import Listing
from pytest_ttnn_perf.report.sentences import sentence
from pytest_ttnn_perf.report.terminal import summary_lines
from pytest_ttnn_perf.workflow.judge import checked_against_verdicts, judge_run, manner_of

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.model.observation import Run
    from pytest_ttnn_perf.model.rerun import Rerun
    from pytest_ttnn_perf.model.settings import Settings


def gate_record(record: Path, settings: Settings, *, rerun: Rerun, shape: str) -> Result:
    """Judge the run in ``record`` against the baselines, as the settings say.

    Raises:
        InputError: the record or a baseline is unreadable, or both define a metric differently.
    """
    baselines = settings.baselines
    if not baselines.is_dir():
        raise InputError(baselines, "expected a folder of baselines, found none")
    run = judge_run(read_run(record), BaselineStore(baselines))
    _refuse_other_definitions(record, run)
    tests = [checked_against_verdicts(judged, settings) for judged in run.tests.values()]
    if not tests:
        raise InputError(record, "the run has no tests: nothing was judged")
    manner = manner_of(tests, settings, rerun=rerun, shift=run.shift)
    gated = any(judged.verdicts for judged in tests)
    passed = run.complete and gated and not manner.failed
    document = gate_document(tests, failed=not passed, complete=run.complete, shift=run.shift)
    headings = ("test", "metric", "outcome", "change", "limit", "provisional", "sentence")
    rows = tuple(
        (
            j.observation.test,
            v.metric.name,
            v.outcome.value,
            v.change,
            v.limit,
            v.provisional,
            sentence(v),
        )
        for j in tests
        for v in j.verdicts
    )
    lines = [line.text for line in summary_lines(tests, manner=manner)]
    if not run.complete:
        lines.append(f"failed: the run was cut short after {counted(len(tests), 'test')}")
    if not gated:
        lines.append("failed: nothing was gated: the run has only metrics that are not")
    text = Listing(tuple(lines), document, headings, rows).text(shape)
    shifted = run.shift is not None and run.shift.worse
    return Result(text, failed=not passed, shifted=shifted)


def _refuse_other_definitions(record: Path, run: Run) -> None:
    """Another unit is not a result but an input that belongs to other baselines."""
    for name, judged in run.tests.items():
        for verdict in judged.verdicts:
            if verdict.reason is Reason.OTHER_DEFINITION:
                raise InputError(record, f"{name}: {sentence(verdict)}")
