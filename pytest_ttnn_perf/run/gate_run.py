"""One run of the gate: takes observations, judges them, and leaves record and baselines."""

from __future__ import annotations

import os
import secrets
from dataclasses import field, replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.device.host import host_hardware
from pytest_ttnn_perf.records.json import decode, encode
from pytest_ttnn_perf.records.observation import Location, Observation, Run
from pytest_ttnn_perf.records.settings import Update
from pytest_ttnn_perf.records.verdict import HEALTHY, BaselineHealth
from pytest_ttnn_perf.report.checklist import shift_advice, shift_line, shift_size
from pytest_ttnn_perf.report.terminal import (
    closing_lines,
    failure_text,
    heading_line,
    health_lines,
    shown_path,
    summary_lines,
)
from pytest_ttnn_perf.run.confirm import add_confirmation, in_question, mark_unconfirmed
from pytest_ttnn_perf.run.health import find_orphans, health_of
from pytest_ttnn_perf.run.judge import (
    check_against_verdicts,
    failing_verdicts,
    is_failed,
    judge_observation,
    machine_shift,
    relabel_shifted,
    summary_options_of,
    violations,
)
from pytest_ttnn_perf.run.record import (
    Journal,
    ci_report,
    environment_of,
    report_writers,
    write_run,
)
from pytest_ttnn_perf.run.update import Updates, acceptance_now
from pytest_ttnn_perf.run.workers import DeviceResults

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.records.hardware import CiJob, Hardware
    from pytest_ttnn_perf.records.observation import Coverage, JudgedTest
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.report.ci import CiReport
    from pytest_ttnn_perf.report.numbers import Line
    from pytest_ttnn_perf.report.sentences import Rerun
    from pytest_ttnn_perf.report.terminal import SummaryOptions


@dataclass(frozen=True, slots=True)
class RunContext:
    """What is known of a run before its first test."""

    settings: Settings
    project: Path
    cwd: Path
    rerun: Rerun
    job: CiJob
    #: Whether tests run in workers.
    isolated: bool
    #: The profiler, and why it was chosen.
    profiler: str
    has_devices: bool
    hardware: Hardware = field(default_factory=host_hardware)

    def heading(self) -> str:
        """Return one line on what this run does."""
        return heading_line(
            self.settings,
            None if self.has_devices else self.hardware.key,
            cwd=self.cwd,
            inline=not self.isolated,
            profiler=self.profiler,
        )


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run that is over: what was judged and written, and what could not be written."""

    context: RunContext
    run: Run
    store: BaselineStore
    health: BaselineHealth = HEALTHY
    #: The baseline files that were changed.
    written: Sequence[Path] = ()
    records: Sequence[Path] = ()
    errors: list[str] = field(default_factory=list)
    #: What the reports for CI are made of; None if none of them is wanted.
    ci_report: CiReport | None = None

    def summary_options(self) -> SummaryOptions:
        """Return how the run is summarised, on every surface."""
        context, run = self.context, self.run
        options = summary_options_of(
            list(run.tests.values()), context.settings, rerun=context.rerun, shift=run.shift
        )
        return replace(options, health=self.health)

    def with_ci_report(self) -> RunResult:
        """Return the result with its report for CI, if that is wanted in any form."""
        settings, job = self.context.settings, self.context.job
        files = settings.markdown or settings.gitlab
        shown = settings.step_summary and job.step_summary
        if not (files or shown or (job.annotates and settings.annotations)):
            return self
        record = shown_path(self.records[0], self.context.cwd) if self.records else None
        report = ci_report(
            self.run,
            settings,
            self.store,
            summary_options=self.summary_options(),
            job=job,
            record=record,
        )
        return replace(self, ci_report=report)

    def summary(self) -> Iterator[Line]:
        """Return the lines of the terminal's summary; without tests, what fails such a run."""
        context, run = self.context, self.run
        if not run.tests:
            return health_lines(self.health)
        found = find_orphans(run, self.store)
        if found is not None:  # what the commands about them must be given
            record = os.path.relpath(self.records[0], context.cwd) if self.records else None
            found = replace(found, record=record, options=context.rerun.baselines_option)
        options = replace(self.summary_options(), update=context.settings.update, orphaned=found)
        return summary_lines(list(run.tests.values()), summary_options=options)

    def closing(self) -> Iterator[str]:
        """Return the lines that say where the results went."""
        baselines = self.context.settings.baselines
        return closing_lines(
            missing=None if baselines.is_dir() else baselines,
            written=self.written,
            records=self.records,
            cwd=self.context.cwd,
        )

    def annotations(self, *, failures: bool) -> Iterator[str]:
        """Return the lines that GitHub turns into annotations, if they are wanted."""
        wanted = self.context.job.annotates and self.context.settings.annotations
        if self.ci_report is None or not wanted:
            return iter(())
        from pytest_ttnn_perf.report.ci import annotation_lines

        return annotation_lines(self.ci_report, failures=failures)

    def shift_text(self) -> str | None:
        """Return what fails a run whose machine is slower as a whole; None if it is not."""
        shift = self.run.shift
        if shift is None or not shift.worse:
            return None
        advice = shift_advice(shift, self.context.rerun.accept_all(), failed=False)
        return "\n  ".join([shift_size(shift), *advice])


@dataclass(slots=True)
class GateRun:
    """The judging side of a run. Nothing is read or written before ``begin``."""

    context: RunContext
    #: What the device pass measured, which is over before the first test is judged.
    device: DeviceResults = DeviceResults()
    _store: BaselineStore = field(init=False)
    _updates: Updates = field(init=False)
    _journal: Journal = field(init=False)
    _run: Run = field(init=False)
    _tests: dict[str, JudgedTest] = field(default_factory=dict)
    _errors: list[str] = field(default_factory=list)
    _begun: bool = False
    #: The test that was asked about last, and what JUnit is told of it.
    _properties: tuple[JudgedTest | None, list[tuple[str, str]]] = (None, [])

    def __post_init__(self) -> None:
        settings, now = self.context.settings, datetime.now(timezone.utc)
        # Sorts by time, and two runs that start in one second still differ.
        identifier = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        self._store = BaselineStore(settings.baselines)
        self._updates = Updates(self._store, settings.update)
        self._journal = Journal(settings.artifacts / "runs" / f"{identifier}.jsonl")
        self._run = Run(self.context.hardware, {}, label=settings.label, id=identifier)

    @property
    def settings(self) -> Settings:
        """The settings of this run."""
        return self.context.settings

    def begin(self, tests: Collection[str], coverage: Coverage | None = None) -> None:
        """Read the baselines of the tests to measure, and start the journal.

        ``coverage`` is what was collected, None if that is not known. Without tests, that is all
        that is kept.

        Raises:
            InputError: a baseline is unreadable or malformed.
            WriteError: the artifacts' folder is not writable.
        """
        self._run = replace(self._run, coverage=coverage)
        if not tests:
            return
        self._begun = True
        self._store.preload(tests)
        environment = environment_of(self.context.project)
        environment = replace(environment, runner=self.context.job.runner)
        self._run = replace(self._run, environment=environment)
        # What was collected is written when it is known which of it was measured.
        self._journal.open(replace(self._run, coverage=None))

    def judge(self, test: str, observed: dict[str, object]) -> JudgedTest:
        """Record one test's observation, then judge it, then decide whether it is written.

        ``observed`` is the observation as plain JSON, as a worker sends it.

        Raises:
            DecodeError: it is not an observation.
        """
        observation = decode(Observation, observed, key=test)  # or the journal is unreadable
        if not self._begun:  # a test that asked for the fixture only while it ran
            self._attempt(partial(self.begin, [test], self._run.coverage))
        complete = self.device.add_to(observation)
        if complete is not observation:
            from pytest_ttnn_perf.observe.checklist import check_numbers_again

            observation = check_numbers_again(complete, self.settings)
            observed = encode(observation)
        self._attempt(partial(self._journal.add, test, observed))
        return self._judge(observation)

    def judge_again(self, observation: Observation) -> JudgedTest:
        """Judge a test anew on all that is known of it now, and record that."""
        encoded = encode(observation)
        self._attempt(partial(self._journal.add, observation.test, encoded))
        return self._judge(observation)

    def _judge(self, observation: Observation) -> JudgedTest:
        judged = judge_observation(observation, self._store, hardware=self.context.hardware)
        judged = check_against_verdicts(judged, self.settings)
        if self._run.shift is not None:
            judged = relabel_shifted(judged, self._run.shift)
        self._tests[observation.test] = self._decided(judged)
        return self._tests[observation.test]

    def _decided(self, judged: JudgedTest) -> JudgedTest:
        if violations(judged, self.settings.checklist):
            self._updates.withdraw(judged.observation.test)
            return judged  # what fails is nothing to compare with
        return self._updates.decide(
            judged,
            hardware=self.context.hardware,
            accepted=partial(acceptance_now, self._run.environment, self.settings.reason),
        )

    def record_lost(self, test: str, why: str, location: Location | None = None) -> JudgedTest:
        """Record a test whose worker died: it has no result, which is one."""
        return self.judge(test, encode(Observation(test, lost=why, location=location)))

    def judged(self, test: str) -> JudgedTest | None:
        """Return a test as it is judged by now; None before."""
        return self._tests.get(test)

    def in_question(self, test: str, *, profiled: bool | None = None) -> frozenset[str]:
        """Return the metrics of a judged test that should be measured again.

        Only those that the device pass told, or only those that it did not, if ``profiled`` says.
        """
        judged, passes = self._tests[test], self.settings.confirm
        names = in_question(judged, self._updates.update, passes=passes)
        if profiled is None or not names:
            return names
        observed = self.device.observations.get(test)
        of_device = frozenset(observed.metrics) if observed else frozenset()
        return names & of_device if profiled else names - of_device

    def has_baseline(self, test: str) -> bool:
        """Return whether a test has a baseline on this hardware."""
        return self._store.find(self.context.hardware, test) is not None

    @property
    def passes_folder(self) -> Path:
        """Where the workers of this run have their folders."""
        return self.settings.artifacts.absolute() / "passes" / str(self._run.id)

    def confirm(
        self, test: str, observed: dict[str, object], *, number: int, profiled: bool
    ) -> JudgedTest:
        """Add what confirm pass ``number`` measured of what is in question, and judge anew.

        Raises:
            DecodeError: it is not an observation.
        """
        again = decode(Observation, observed, key=test)
        observation = self._tests[test].observation
        names = self.in_question(test, profiled=profiled)
        return self.judge_again(add_confirmation(observation, names, again, number=number))

    def cannot_confirm(self, test: str, why: str) -> JudgedTest:
        """Note that a test could not be measured again, and judge anew."""
        observation = self._tests[test].observation
        return self.judge_again(mark_unconfirmed(observation, self.in_question(test), why))

    def assess_machine(self) -> str | None:
        """Find out, once all tests are measured, whether they moved together; say so.

        Accepting all is the answer to a machine that has changed for good: then nothing is
        explained away. A gain, or a session, of a shifted machine is not written.
        """
        if self.settings.update is Update.ALL:
            return None
        run = self._run
        shift = machine_shift(
            self._tests, self._store, hardware=run.hardware, environment=run.environment
        )
        if shift is None:
            return None
        self._run = replace(run, shift=shift)
        self._updates.only_new()
        for test, judged in self._tests.items():
            anew = relabel_shifted(replace(judged, written=frozenset()), shift)
            self._tests[test] = self._decided(anew)
        return "ttnn-perf: " + shift_line(shift)

    def withdraw(self, test: str) -> None:
        """Do not write a test's result after all: what came after its call went wrong."""
        if self._updates.withdraw(test):
            judged = self._tests[test]
            problem = "nothing was written: the test failed after its call, in its teardown"
            observation = replace(judged.observation, problems=(problem,))
            self._tests[test] = replace(judged, observation=observation, written=frozenset())

    def failure(self, judged: JudgedTest) -> str | None:
        """Return the text a test fails with; None for a test that passes."""
        if not is_failed(judged, self.settings):
            return None
        verdicts = failing_verdicts(judged, self.settings)
        found = violations(judged, self.settings.checklist)
        return failure_text(judged, verdicts, findings=found, rerun=self.context.rerun)

    def junit_properties(self, test: str) -> list[tuple[str, str]]:
        """Return the metrics of a judged test for JUnit; none if they are not wanted."""
        judged = self._tests.get(test)
        if judged is None or not self.settings.junit_properties:
            return []
        if self._properties[0] is not judged:  # two reports of a test have the same
            from pytest_ttnn_perf.report.ci import property_pairs

            self._properties = judged, property_pairs(judged, self.context.hardware)
        return self._properties[1]

    def finish(self, *, complete: bool) -> RunResult:
        """Write baselines, records and reports; what was not written is in ``errors``.

        A run that is not ``complete`` was interrupted: its record says so, and never passes.
        """
        written: list[Path] = []
        for refused in self._updates.write(written):
            self._errors.append(refused.error)
            for test in refused.tests:
                self._tests[test] = replace(self._tests[test], written=frozenset())
        coverage = self._run.coverage and self._run.coverage.without(self._tests)
        run = replace(self._run, tests=self._tests, complete=complete, coverage=coverage)
        health = health_of(run, self._store, self.settings)
        records: list[Path] = []
        own_record = self._journal.file.with_suffix(".json")
        if self._tests and self._attempt(partial(write_run, run, own_record)):
            records.append(own_record)
        if records or not self._tests:
            self._journal.close()
        # Also of a run without tests: the file of an earlier run must not stand in for it.
        given = self.settings.json
        if given is not None and self._attempt(partial(write_run, run, given)):
            records.append(given)
        result = RunResult(
            self.context, run, self._store, health, written, records, self._errors
        ).with_ci_report()
        if result.ci_report is not None:
            for write in report_writers(result.ci_report, self.settings):
                self._attempt(write)
        return result

    def abandon(self) -> RunResult:
        """Delete the journal of a run that was refused; nothing of it is written."""
        self._journal.close()
        run = replace(self._run, tests=self._tests, coverage=None)
        return RunResult(self.context, run, self._store, errors=self._errors)

    def _attempt(self, write: Callable[[], object]) -> bool:
        """Go on after a failed write: what can be saved is saved, and the run says what was not."""
        try:
            write()
        except TtnnPerfError as error:
            self._errors.append(str(error))
            return False
        return True
