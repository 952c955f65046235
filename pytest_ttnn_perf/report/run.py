"""A gated run in words: failures, record, reports and summary."""

from __future__ import annotations

import json
import os
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.errors import WriteError
from pytest_ttnn_perf.core.files import write_text
from pytest_ttnn_perf.core.observation import QUIET, WITHOUT_BASELINE, encode_heading, value_of
from pytest_ttnn_perf.core.settings import Checklist, Missing
from pytest_ttnn_perf.core.text import visible
from pytest_ttnn_perf.gate.health import find_orphans, health_of
from pytest_ttnn_perf.gate.judging import (
    difference_text,
    differences_of,
    failing_verdicts,
    is_failed,
    sweeps_in,
    violations,
)
from pytest_ttnn_perf.gate.rules_on_numbers import axis_without_effect
from pytest_ttnn_perf.machine.git import Git, work_tree
from pytest_ttnn_perf.report.findings import ModelKind, State, progress_of, title
from pytest_ttnn_perf.report.sentences import sentence, worst_first
from pytest_ttnn_perf.report.tables import Line, shown_path
from pytest_ttnn_perf.report.terminal import (
    SummaryOptions,
    failure_text,
    health_lines,
    indented,
    shift_advice,
    shift_line,
    summary_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import JudgedTest, Run, Shift, Verdict
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.gated_run import GateRun
    from pytest_ttnn_perf.gate.record import CiJob, RunContext
    from pytest_ttnn_perf.gate.store import BaselineStore
    from pytest_ttnn_perf.report.ci import CiReport
    from pytest_ttnn_perf.report.findings import Progress
    from pytest_ttnn_perf.report.sentences import Rerun
    from pytest_ttnn_perf.report.tables import Table


def write_run(run: Run, file: Path) -> None:
    write_text(file, run_text(run) + "\n")


def run_text(run: Run) -> str:
    """Return a run record as text, one line per test."""
    heading = json.dumps(encode_heading(run))
    tests = []
    for name, judged in run.tests.items():
        encoded = encode(judged)
        for verdict in judged.verdicts:
            encoded["verdicts"][verdict.metric.name]["sentence"] = sentence(verdict)
        tests.append(f"  {json.dumps(name)}: {json.dumps(encoded)}")
    # For those who draw them; a reader of ours finds them out anew.
    swept = [json.dumps(encode(sweep)) for sweep in sweeps_in(run.tests.values())]
    sweeps = ', "sweeps": [\n' + ",\n".join(swept) + "\n]" if swept else ""
    return heading[:-1] + ', "tests": {\n' + ",\n".join(tests) + "\n}" + sweeps + "}"


def summary_options_of(
    tests: Sequence[JudgedTest], settings: Settings, *, rerun: Rerun, shift: Shift | None
) -> SummaryOptions:
    progress = ((judged.observation.test, _progress(judged)) for judged in tests)
    return SummaryOptions(
        frozenset(judged.observation.test for judged in tests if is_failed(judged, settings)),
        rerun,
        QUIET | WITHOUT_BASELINE if settings.missing is Missing.IGNORE else QUIET,
        shift,
        progress=tuple((test, steps) for test, steps in progress if steps is not None),
        sweeps=tuple(sweeps_in(tests)),
    )


def _progress(judged: JudgedTest) -> Progress | None:
    observation = judged.observation
    if not any(finding.family.is_step for finding in observation.findings):
        return None
    compared = any(verdict.centre is not None for verdict in judged.verdicts)
    progress = progress_of(
        observation.findings,
        unanswered=observation.unanswered,
        has_baseline=compared or bool(judged.written),
        kind=next((kind for kind in ModelKind if kind.value == observation.model_kind), None),
    )
    known = {State.DONE, State.OPEN}
    return progress if any(step.state in known for step in progress.steps) else None


def ci_report(
    run: Run,
    settings: Settings,
    store: BaselineStore,
    *,
    summary_options: SummaryOptions,
    job: CiJob,
    record: str | None,
) -> CiReport:
    from pytest_ttnn_perf.report.ci import CiReport

    differences = differences_of(
        (judged.observation for judged in run.tests.values()),
        store,
        hardware=run.hardware,
        environment=run.environment,
    )
    return CiReport(
        run,
        summary_options,
        settings.missing,
        settings.checklist is Checklist.ENFORCE,
        tuple(difference_text(*each) for each in differences),
        record,
        job,
    )


def heading(context: RunContext) -> str:
    settings, cwd = context.settings, context.cwd
    key = f"key {context.hardware.key}"
    if settings.replay is not None:
        key = "keys of the artifacts"
    elif context.has_devices:
        key = "keys of the devices that tests open"
    parts = [f"gate on, {key}", f"baselines {shown_path(settings.baselines, cwd)}"]
    if settings.update:
        parts.append(f"update {settings.update.value}")
    if settings.missing is not Missing.FAIL:
        parts.append(f"missing {settings.missing.value}")
    if not context.isolated:
        parts.append("in this process, nothing is measured again")
    if settings.replay is None:
        return ", ".join([*parts, context.profiler])
    replayed = f"replaying {shown_path(settings.replay, cwd)}"
    return ", ".join([*parts, f"{replayed}, times of this machine are left out"])


_NO_METRIC: Final = "-"


def property_pairs(judged: JudgedTest, hardware: Hardware | None) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    observation = judged.observation
    own = observation.hardware or hardware
    if own is not None:
        pairs.append(("key", own.key))
    if observation.node_id is not None:
        pairs.append(("identity", observation.test))
    if judged.verdicts:
        pairs.append(("verdict", worst_first(judged.verdicts)[0].outcome.value))
    for verdict in judged.verdicts:
        # The verdict on a test without any data is of no metric, and said already.
        pairs += _of_verdict(verdict) if verdict.metric.name != _NO_METRIC else []
    judged_names = {verdict.metric.name for verdict in judged.verdicts}
    for name, observed in observation.metrics.items():
        value = value_of(observed, None)
        if name not in judged_names and value is not None:
            pairs.append((name, _number(value)))
            pairs.append((f"{name}.unit", observed.metric.unit))
    found = sorted(finding.code for finding in judged.findings if finding.stands)
    pairs += [("findings", ",".join(found))] if found else []
    # pytest takes care of values, but not of names.
    return [(visible(f"ttnn_perf.{name}"), visible(value)) for name, value in pairs]


def _of_verdict(verdict: Verdict) -> Iterator[tuple[str, str]]:
    name = verdict.metric.name
    if verdict.observed is not None:
        yield name, _number(verdict.observed)
        yield f"{name}.unit", verdict.metric.unit
    yield f"{name}.verdict", verdict.outcome.value
    if verdict.centre is not None:
        yield f"{name}.baseline", _number(verdict.centre)
    as_read = {"change": verdict.change_as_read, "limit": verdict.limit_as_read}
    for what, fraction in as_read.items():
        if fraction is not None:  # four decimals are enough for a dashboard; never -0
            yield f"{name}.{what}_percent", _number(round(fraction * 100, 4) + 0.0)


def _number(value: float) -> str:
    return f"{value:.10g}"


class RunReport:
    """The words of a gated run, during it and at its end."""

    def __init__(self, gate: GateRun, rerun: Rerun, *, verbose: bool = False) -> None:
        self.gate, self._verbose = gate, verbose
        record = gate.settings.json or gate.journal.file.with_suffix(".json")
        self._rerun = replace(rerun, record=os.path.relpath(record, gate.context.cwd))

    def rerun(self, *, compares: bool) -> Rerun:
        """Return the commands that repeat tests of this run.

        Only those that compare ask git for a commit.
        """
        base = self._base if compares else None
        return replace(self._rerun, node_ids=self.gate.node_ids, base=base)

    @cached_property
    def _base(self) -> str | None:
        """The commit to compare with, asked for once."""
        root = work_tree(self.gate.context.cwd)
        return None if root is None else Git(root).comparison_base()

    def failure(self, judged: JudgedTest) -> str | None:
        settings = self.gate.settings
        if not is_failed(judged, settings):
            return None
        found = violations(judged, settings.checklist)
        verdicts = failing_verdicts(judged, settings)
        return failure_text(
            judged, verdicts, findings=found, rerun=self.rerun(compares=True), verbose=self._verbose
        )

    def junit_properties(self, test: str) -> list[tuple[str, str]]:
        judged = self.gate.judged(test)
        if judged is None or not self.gate.settings.junit_properties:
            return []
        return property_pairs(judged, self.gate.context.hardware)

    def finish(self, *, complete: bool) -> RunResult:
        gate, settings = self.gate, self.gate.settings
        written = gate.finish(complete=complete)
        run, records = gate.run, []
        own_record = gate.journal.file.with_suffix(".json")
        if run.tests and gate.attempt(partial(write_run, run, own_record)):
            records.append(own_record)
        if records or not run.tests:
            gate.journal.close()
        # Also of a run without tests: the file of an earlier run must not stand in for it.
        if settings.json is not None and gate.attempt(partial(write_run, run, settings.json)):
            records.append(settings.json)
        if settings.benchmark_json is not None:
            from pytest_ttnn_perf.report.benchmark_json import write_benchmarks

            gate.attempt(partial(write_benchmarks, run, settings.benchmark_json))
        tests = list(run.tests.values())
        slower = run.shift is not None or any(is_failed(judged, settings) for judged in tests)
        rerun = self.rerun(compares=slower)
        options = summary_options_of(tests, settings, rerun=rerun, shift=run.shift)
        options = replace(options, health=health_of(run, gate.store, settings))
        report = None
        job, files = gate.context.job, settings.markdown or settings.gitlab or settings.html
        shown = settings.step_summary and job.step_summary
        if files or shown or (job.annotates and settings.annotations):
            record = shown_path(records[0], gate.context.cwd) if records else None
            report = ci_report(
                run, settings, gate.store, summary_options=options, job=job, record=record
            )
            self._write_reports(report)
        return RunResult(
            gate.context, run, gate.store, options, written, records, gate.errors, report
        )

    def _write_reports(self, report: CiReport) -> None:
        settings, summary = self.gate.settings, report.job.step_summary
        if settings.markdown is not None:
            from pytest_ttnn_perf.report.markdown import markdown_text

            text = markdown_text(report)
            self.gate.attempt(partial(write_text, settings.markdown, text))
        if settings.gitlab is not None:
            from pytest_ttnn_perf.report.ci import gitlab_text

            text = gitlab_text(report)
            self.gate.attempt(partial(write_text, settings.gitlab, text))
        if settings.step_summary and summary is not None:
            self.gate.attempt(partial(_add_to_step_summary, summary, report))

    def abandon(self) -> RunResult:
        gate = self.gate
        gate.abandon()
        options = SummaryOptions(rerun=self.rerun(compares=False))
        return RunResult(gate.context, gate.run, gate.store, options, errors=gate.errors)


def _add_to_step_summary(file: Path, report: CiReport) -> None:
    from pytest_ttnn_perf.report.markdown import markdown_text

    try:  # others may have begun it
        with file.open("a", encoding="utf-8") as stream:
            stream.write(markdown_text(report))
    except OSError as cause:
        raise WriteError(file, cause) from cause


class RunResult(Struct, frozen=True):
    """A run that is over; ``errors`` say what could not be written."""

    context: RunContext
    run: Run
    store: BaselineStore
    options: SummaryOptions
    #: The baseline files that were changed.
    written: Sequence[Path] = ()
    records: Sequence[Path] = ()
    errors: list[str] = []
    #: The source of reports for CI; None if none of them is wanted.
    ci_report: CiReport | None = None
    #: The page for a browser, if one was written.
    page: Path | None = None
    #: What came of sending it to a database.
    sent: Line | None = None

    def summary(
        self, *, told: frozenset[str] = frozenset(), verbosity: int = 0
    ) -> Iterator[Line | Table]:
        """Return the terminal's summary; without tests, what fails such a run.

        ``told`` are the tests whose failure was shown, ``verbosity`` is pytest's.
        """
        settings, run = self.context.settings, self.run
        if not run.tests:
            return health_lines(self.options.health, self.options.rerun)
        record = os.path.relpath(self.records[0], self.context.cwd) if self.records else None
        options = replace(
            self.options,
            update=settings.update,
            orphans=find_orphans(run, self.store),
            record=record,
            told=told,
            verbosity=verbosity,
        )
        return summary_lines(list(run.tests.values()), summary_options=options)

    def closing(self) -> Iterator[str]:
        baselines, cwd = self.context.settings.baselines, self.context.cwd
        if not baselines.is_dir():
            yield f"no baselines folder at {shown_path(baselines, cwd)}"
        if self.written:
            recorded = sum(1 for judged in self.run.tests.values() if judged.written)
            yield f"{recorded} recorded: commit {shown_path(baselines, cwd)}{os.sep}"
        for path in self.records:
            yield f"record: {shown_path(path, cwd)}"
        if self.page is not None:
            yield f"page: {shown_path(self.page, cwd)}"

    def annotations(self, *, failures: bool) -> Iterator[str]:
        """Return the lines that GitHub turns into annotations, if they are wanted."""
        wanted = self.context.job.annotates and self.context.settings.annotations
        if self.ci_report is None or not wanted:
            return iter(())
        from pytest_ttnn_perf.report.ci import annotation_lines

        return annotation_lines(self.ci_report, failures=failures)

    def shift_text(self) -> str | None:
        shift = self.run.shift
        if shift is None or not shift.worse:
            return None
        tests, rerun = self.run.tests.values(), self.options.rerun
        advice = shift_advice(shift, tests, rerun, failed=False)
        return "\n".join([shift_line(shift), *(indented(*each) for each in advice)])

    def axes_text(self) -> str | None:
        """Return the failure by sweeps whose axes took no effect.

        That is known when the last point is measured: the tests have been reported as passed.
        """
        found: dict[str, None] = {}
        for judged in self.run.tests.values():
            for finding in violations(judged, self.context.settings.checklist):
                sweep = judged.observation.sweep
                if finding.code == axis_without_effect.code and sweep is not None:
                    found[f"{sweep.sweep}: {title(finding)}"] = None
        return "\n".join(found) or None
