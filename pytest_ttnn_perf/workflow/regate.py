"""Judging runs that were recorded elsewhere: no pytest, no hardware."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

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
from pytest_ttnn_perf.workflow.judge import judge_run, manner_of
from pytest_ttnn_perf.workflow.lapses import lapses_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.model.ci import CiJob
    from pytest_ttnn_perf.model.observation import Run
    from pytest_ttnn_perf.model.rerun import Rerun
    from pytest_ttnn_perf.model.settings import Settings
    from pytest_ttnn_perf.report.terminal import Manner
    from pytest_ttnn_perf.workflow.ci_reports import CiReports

#: The shapes of a result that CI systems understand.
CI_SHAPES: Final = ("markdown", "gitlab")


@dataclass(frozen=True, slots=True)
class Gate:
    """How recorded runs are judged, and for whom."""

    settings: Settings
    rerun: Rerun
    job: CiJob

    def store(self) -> BaselineStore:
        """Return the baselines.

        Raises:
            InputError: there are none.
        """
        baselines = self.settings.baselines
        if not baselines.is_dir():
            raise InputError(baselines, "expected a folder of baselines, found none")
        return BaselineStore(baselines)

    def judged(self, run: Run, store: BaselineStore, *, records: Sequence[Path]) -> Gated:
        """Judge a run; ``records`` are where it was read.

        Raises:
            InputError: it has no tests, or defines a metric other than its baseline does.
        """
        if not run.tests:
            raise InputError(records[0], "the run has no tests: nothing was judged")
        run = judge_run(run, store, self.settings)
        _refuse_other_definitions(records[0], run)
        rerun = replace(self.rerun, records=tuple(map(str, records)))
        manner = manner_of(list(run.tests.values()), self.settings, rerun=rerun, shift=run.shift)
        lapses = lapses_of(run, store, self.settings)
        return Gated(run, replace(manner, lapses=lapses))

    def reports(self, gated: Gated, store: BaselineStore) -> CiReports:
        """Return what a judged run says to CI systems."""
        from pytest_ttnn_perf.workflow.ci_reports import ci_reports

        manner = gated.manner
        record = ", ".join(manner.rerun.records)
        return ci_reports(
            gated.run, self.settings, store, manner=manner, job=self.job, record=record
        )


@dataclass(frozen=True, slots=True)
class Gated:
    """A run that was judged anew, as the settings say."""

    run: Run
    manner: Manner

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it is gated."""
        return not any(judged.verdicts for judged in self.run.tests.values())

    @property
    def passed(self) -> bool:
        """Whether it is whole, and no test of it failed or was lost."""
        wrong = self.is_empty or self.manner.failed or self.manner.lapses.lost
        return self.run.complete and not wrong

    @property
    def is_slower(self) -> bool:
        """Whether its machine is slower as a whole."""
        return self.run.shift is not None and self.run.shift.worse

    def listing(self) -> Listing:
        """Lay it out."""
        tests = list(self.run.tests.values())
        document = gate_document(
            tests,
            failed=not self.passed,
            complete=self.run.complete,
            shift=self.run.shift,
            lost=self.manner.lapses.lost,
        )
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
        lines = [line.text for line in summary_lines(tests, manner=self.manner)]
        if not self.run.complete:
            lines.append(f"failed: the run was cut short after {counted(len(tests), 'test')}")
        if self.is_empty:
            lines.append("failed: nothing was gated: the run has only metrics that are not")
        return Listing(tuple(lines), document, headings, rows)


def gate_record(record: Path, gate: Gate, *, shape: str) -> Result:
    """Judge the run in ``record`` against the baselines.

    Raises:
        InputError: the record or a baseline is unreadable, or both define a metric differently.
    """
    store = gate.store()
    gated = gate.judged(read_run(record), store, records=[record])
    if shape in CI_SHAPES:
        reports = gate.reports(gated, store)
        text = reports.markdown() if shape == "markdown" else reports.gitlab()
    else:
        text = gated.listing().text(shape)
    return Result(text, failed=not gated.passed, shifted=gated.is_slower)


def _refuse_other_definitions(record: Path, run: Run) -> None:
    """Another unit is not a result but an input that belongs to other baselines."""
    for name, judged in run.tests.items():
        for verdict in judged.verdicts:
            if verdict.reason is Reason.OTHER_DEFINITION:
                raise InputError(record, f"{name}: {sentence(verdict)}")
