"""``ttnn-perf gate RUN.json``: judge a run that was recorded elsewhere."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.detect import read_run
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.records.finding import RuleOutcome
from pytest_ttnn_perf.records.settings import Checklist, Missing
from pytest_ttnn_perf.records.verdict import Reason
from pytest_ttnn_perf.report.checklist import finding_document
from pytest_ttnn_perf.report.numbers import Column, Columns, Listing, Result
from pytest_ttnn_perf.report.sentences import Rerun, sentence
from pytest_ttnn_perf.report.terminal import summary_lines
from pytest_ttnn_perf.run.health import health_of
from pytest_ttnn_perf.run.judge import judge_run, summary_options_of
from pytest_ttnn_perf.run.record import ci_job
from pytest_ttnn_perf.run.settings import find_root, project_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pytest_ttnn_perf.records.hardware import CiJob
    from pytest_ttnn_perf.records.observation import JudgedTest, Run
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.records.verdict import Shift, Verdict
    from pytest_ttnn_perf.report.ci import CiReport
    from pytest_ttnn_perf.report.layout import Block
    from pytest_ttnn_perf.report.terminal import SummaryOptions


_COLUMNS: Final[Columns[tuple[JudgedTest, Verdict]]] = Columns(
    Column("test", lambda row: row[0].observation.test),
    Column("metric", lambda row: row[1].metric.name),
    Column("outcome", lambda row: row[1].outcome.value),
    Column("change", lambda row: row[1].change),
    Column("limit", lambda row: row[1].limit),
    Column("provisional", lambda row: row[1].provisional),
    Column("sentence", lambda row: sentence(row[1])),
)


def gate_document(
    tests: Sequence[JudgedTest],
    *,
    failed: bool,
    complete: bool,
    shift: Shift | None,
    lost: Sequence[str] = (),
) -> dict[str, object]:
    """Return the result of a gate."""
    verdicts = [(judged, verdict) for judged in tests for verdict in judged.verdicts]
    return {
        "failed": failed,
        "shifted": shift is not None,
        "shift": shift.change if shift else None,
        "complete": complete,
        "lost": list(lost),
        "verdicts": [
            {**members, "by_op": judged.by_op if verdict.is_of_changed_time else None}
            for members, (judged, verdict) in zip(_COLUMNS.objects(verdicts), verdicts, strict=True)
        ],
        "findings": [
            {"test": judged.observation.test, **finding_document(finding)}
            for judged in tests
            for finding in judged.observation.findings
            if finding.outcome is RuleOutcome.FOUND
        ],
    }


@dataclass(frozen=True, slots=True)
class Gate:
    """The settings that recorded runs are judged by, and the CI job that reads the result."""

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

    def judge(self, run: Run, store: BaselineStore, *, records: Sequence[Path]) -> Gated:
        """Judge a run; ``records`` are where it was read.

        Raises:
            InputError: it has no tests, or defines a metric other than its baseline does.
        """
        if not run.tests:
            raise InputError(records[0], "the run has no tests: nothing was judged")
        run = judge_run(run, store, self.settings)
        # Another unit is not a result but an input that belongs to other baselines.
        for name, judged in run.tests.items():
            for verdict in judged.verdicts:
                if verdict.reason is Reason.OTHER_DEFINITION:
                    raise InputError(records[0], f"{name}: {sentence(verdict)}")
        rerun = replace(self.rerun, records=tuple(map(str, records)))
        summary_options = summary_options_of(
            list(run.tests.values()), self.settings, rerun=rerun, shift=run.shift
        )
        health = health_of(run, store, self.settings)
        return Gated(run, replace(summary_options, health=health))

    def ci_report(self, gated: Gated, store: BaselineStore) -> CiReport:
        """Return what reports for CI are made of."""
        from pytest_ttnn_perf.run.record import ci_report

        return ci_report(
            gated.run,
            self.settings,
            store,
            summary_options=gated.summary_options,
            job=self.job,
            record=", ".join(gated.summary_options.rerun.records),
        )


@dataclass(frozen=True, slots=True)
class Gated:
    """A run that was judged anew, as the settings say."""

    run: Run
    summary_options: SummaryOptions

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it is gated."""
        return not any(judged.verdicts for judged in self.run.tests.values())

    @property
    def passed(self) -> bool:
        """Whether it is whole, and no test of it failed or was lost."""
        wrong = self.is_empty or self.summary_options.failed or self.summary_options.health.lost
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
            lost=self.summary_options.health.lost,
        )
        verdicts = [(judged, verdict) for judged in tests for verdict in judged.verdicts]
        lines: list[Block] = [*summary_lines(tests, summary_options=self.summary_options)]
        if not self.run.complete:
            lines.append(f"failed: the run was cut short after {counted(len(tests), 'test')}")
        if self.is_empty:
            lines.append("failed: nothing was gated: the run has only metrics that are not")
        return Listing(tuple(lines), document, _COLUMNS.names, _COLUMNS.rows(verdicts))


def run(options: argparse.Namespace) -> Result:
    """Judge a recorded run against the baselines.

    Raises:
        InputError: the record or a baseline is unreadable, or both define a metric differently.
    """
    gate, shape = gate_of(options), options.format
    store = gate.store()
    gated = gate.judge(read_run(options.record), store, records=[options.record])
    if shape == "markdown":
        from pytest_ttnn_perf.report.markdown import markdown_text

        text = markdown_text(gate.ci_report(gated, store))
    elif shape == "gitlab":
        from pytest_ttnn_perf.report.ci import gitlab_text

        text = gitlab_text(gate.ci_report(gated, store))
    else:
        text = gated.listing().text(shape)
    return Result(text, failed=not gated.passed, shifted=gated.is_slower)


def gate_of(options: argparse.Namespace) -> Gate:
    """Return how recorded runs are judged: as the project does, or as the options say."""
    settings = project_settings()
    if options.missing:
        settings = replace(settings, missing=Missing(options.missing))
    if options.checklist:
        settings = replace(settings, checklist=Checklist(options.checklist))
    rerun = Rerun()
    if options.baselines is not None:
        settings = replace(settings, baselines=options.baselines)
        rerun = Rerun(options=("--ttnn-perf-baselines", str(options.baselines)))
    return Gate(settings, rerun, ci_job(os.environ, find_root(Path.cwd())))
