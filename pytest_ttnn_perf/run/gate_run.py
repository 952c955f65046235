"""One run of the gate: takes observations, judges them, and leaves record and baselines."""

from __future__ import annotations

import secrets
from dataclasses import field, replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.device.host import host_hardware
from pytest_ttnn_perf.records.json import decode, encode
from pytest_ttnn_perf.records.observation import Location, Observation, Run
from pytest_ttnn_perf.records.settings import Update
from pytest_ttnn_perf.records.verdict import HEALTHY, BaselineHealth
from pytest_ttnn_perf.report.checklist import shift_advice, shift_line, shift_size
from pytest_ttnn_perf.report.sentences import Rerun
from pytest_ttnn_perf.report.terminal import failure_text, heading_line, health_lines, summary_lines
from pytest_ttnn_perf.run.confirm import confirmed, in_question, not_confirmed
from pytest_ttnn_perf.run.health import health_of, orphaned, with_commands
from pytest_ttnn_perf.run.judge import (
    assess,
    checked_against_verdicts,
    failed,
    failing,
    judge_observation,
    relabelled,
    summary_options_of,
    violations,
)
from pytest_ttnn_perf.run.record import Journal, Results, environment_of
from pytest_ttnn_perf.run.update import Updates, accepted_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.records.hardware import Hardware
    from pytest_ttnn_perf.records.observation import Coverage, JudgedTest
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.records.verdict import Shift
    from pytest_ttnn_perf.report.numbers import Line
    from pytest_ttnn_perf.report.terminal import SummaryOptions


@dataclass(slots=True)
class GateRun:
    """The judging side of a run. Nothing is read or written before ``begin``."""

    settings: Settings
    project: Path
    cwd: Path
    rerun: Rerun = Rerun()
    inline: bool = False
    hardware: Hardware = field(default_factory=host_hardware)
    shift: Shift | None = None
    #: What devices told of tests in a pass of their own.
    profiled: Mapping[str, Observation] = field(default_factory=dict)
    #: Why they told nothing of any test.
    unavailable: str | None = None
    profiler: str = "profiler off"
    has_devices: bool = False
    #: Why the run ended before any test was measured for the gate.
    cut_short: str | None = None
    coverage: Coverage | None = None
    results: Results = field(init=False)
    health: BaselineHealth = HEALTHY
    _store: BaselineStore = field(init=False)
    _updates: Updates = field(init=False)
    _journal: Journal = field(init=False)
    _run: Run = field(init=False)
    _tests: dict[str, JudgedTest] = field(default_factory=dict)
    _begun: bool = False

    def __post_init__(self) -> None:
        now = datetime.now(timezone.utc)
        # Sorts by time, and two runs that start in one second still differ.
        identifier = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        self.results = Results(self.settings, self.cwd)
        self._store = BaselineStore(self.settings.baselines)
        self._updates = Updates(self._store, self.settings.update)
        self._journal = Journal(self.settings.artifacts / "runs" / f"{identifier}.jsonl")
        self._run = Run(self.hardware, {}, label=self.settings.label, id=identifier)

    def begin(self, tests: Iterable[str]) -> None:
        """Read the baselines of the tests to come, and start the journal.

        Raises:
            InputError: a baseline is unreadable or malformed.
            WriteError: the artifacts' folder is not writable.
        """
        self._begun = True
        self._store.preload(tests)
        environment = environment_of(self.project)
        self._run = replace(
            self._run, environment=replace(environment, runner=self.results.job.runner)
        )
        self._journal.open(self._run)

    def judge(self, test: str, observed: dict[str, object]) -> JudgedTest:
        """Record one test's observation, then judge it, then decide whether it is written.

        ``observed`` is the observation as plain JSON, as a worker sends it.

        Raises:
            DecodeError: it is not an observation.
        """
        observation = decode(Observation, observed, key=test)  # or the journal is unreadable
        if not self._begun:  # a test that asked for the fixture only while it ran
            self.results.attempt(partial(self.begin, [test]))
        told = self.profiled.get(test)
        if told is not None or self.unavailable is not None:
            from pytest_ttnn_perf.observe.checklist import asked_again
            from pytest_ttnn_perf.run.device_pass import unavailable, with_device

            told = told or unavailable(test, f"device pass: {self.unavailable}")
            observation = asked_again(with_device(observation, told), self.settings)
            observed = encode(observation)
        self.results.attempt(partial(self._journal.add, test, observed))
        return self._judge(observation)

    def judge_again(self, observation: Observation) -> JudgedTest:
        """Judge a test anew on all that is known of it now, and record that."""
        encoded = encode(observation)
        self.results.attempt(partial(self._journal.add, observation.test, encoded))
        return self._judge(observation)

    def _judge(self, observation: Observation) -> JudgedTest:
        judged = judge_observation(observation, self._store, hardware=self.hardware)
        judged = checked_against_verdicts(judged, self.settings)
        if self.shift is not None:
            judged = relabelled(judged, self.shift)
        self._tests[observation.test] = self._decided(judged)
        return self._tests[observation.test]

    def _decided(self, judged: JudgedTest) -> JudgedTest:
        if violations(judged, self.settings.checklist):
            self._updates.withdraw(judged.observation.test)
            return judged  # what fails is nothing to compare with
        return self._updates.decide(
            judged,
            hardware=self.hardware,
            accepted=partial(accepted_now, self._run.environment, self.settings.reason),
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
        told = frozenset(self.profiled[test].metrics) if test in self.profiled else frozenset()
        return names & told if profiled else names - told

    def has_baseline(self, test: str) -> bool:
        """Return whether a test has a baseline on this hardware."""
        return self._store.find(self.hardware, test) is not None

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
        return self.judge_again(confirmed(observation, names, again, number=number))

    def cannot_confirm(self, test: str, why: str) -> JudgedTest:
        """Note that a test could not be measured again, and judge anew."""
        observation = self._tests[test].observation
        return self.judge_again(not_confirmed(observation, self.in_question(test), why))

    def assess_machine(self) -> str | None:
        """Find out, once all tests are measured, whether they moved together; say so.

        Accepting all is the answer to a machine that has changed for good: then nothing is
        explained away. A gain, or a session, of a shifted machine is not written.
        """
        if self.settings.update is Update.ALL:
            return None
        environment = self._run.environment
        self.shift = assess(
            self._tests, self._store, hardware=self.hardware, environment=environment
        )
        if self.shift is None:
            return None
        self._updates.only_new()
        for test, judged in self._tests.items():
            anew = relabelled(replace(judged, written=frozenset()), self.shift)
            self._tests[test] = self._decided(anew)
        return "ttnn-perf: " + shift_line(self.shift)

    def withdraw(self, test: str) -> None:
        """Do not write a test's result after all: what came after its call went wrong."""
        if self._updates.withdraw(test):
            judged = self._tests[test]
            problem = "nothing was written: the test failed after its call, in its teardown"
            observation = replace(judged.observation, problems=(problem,))
            self._tests[test] = replace(judged, observation=observation, written=frozenset())

    def failure(self, judged: JudgedTest) -> str | None:
        """Return the text a test fails with; None for a test that passes."""
        if not failed(judged, self.settings):
            return None
        verdicts = failing(judged, self.settings)
        found = violations(judged, self.settings.checklist)
        return failure_text(judged, verdicts, findings=found, rerun=self.rerun)

    def finish(self, *, complete: bool = True) -> Run:
        """Write baselines and records; return the run. What was not written is in ``errors``.

        A run that is not ``complete`` was interrupted: its record says so, and never passes.
        """
        for refused in self._updates.write(self.results.written):
            self.results.errors.append(refused.error)
            for test in refused.tests:
                self._tests[test] = replace(self._tests[test], written=frozenset())
        coverage = self.coverage and self.coverage.without(self._tests)
        run = replace(self._run, tests=self._tests, complete=complete, shift=self.shift)
        self._run = run = replace(run, coverage=coverage)
        self.health = health_of(run, self._store, self.settings)
        kept = not self._tests or self.results.publish(run, self._journal.file.with_suffix(".json"))
        if kept:
            self._journal.close()
        # Also of a run without tests: the file of an earlier run must not stand in for it.
        if self.settings.json is not None:
            self.results.publish(run, self.settings.json)
        self.results.report(run, self._store, self._summary_options)
        return run

    def abandon(self) -> None:
        """Delete the journal of a run that was refused before its first test."""
        self._journal.close()

    def summary(self) -> Iterator[Line]:
        """Lay out the run's result."""
        found = orphaned(self._run, self._store)
        found = with_commands(found, self.rerun, self.results.records, cwd=self.cwd)
        summary_options = replace(
            self._summary_options(), update=self.settings.update, orphaned=found
        )
        return summary_lines(list(self._tests.values()), summary_options=summary_options)

    def _summary_options(self) -> SummaryOptions:
        tests = list(self._tests.values())
        summary_options = summary_options_of(
            tests, self.settings, rerun=self.rerun, shift=self.shift
        )
        return replace(summary_options, health=self.health)

    def shift_text(self) -> str:
        """Say what fails a run whose machine is slower as a whole."""
        assert self.shift is not None
        advice = shift_advice(self.shift, self.rerun.accept_all(), failed=False)
        return "\n  ".join([shift_size(self.shift), *advice])

    def health_summary(self) -> Iterator[Line]:
        """Say what fails a run in which nothing was gated."""
        return health_lines(self.health)

    def heading(self) -> str:
        """Say in one line what this run does."""
        host = None if self.has_devices else self.hardware.key
        return heading_line(
            self.settings, host, cwd=self.cwd, inline=self.inline, profiler=self.profiler
        )

    @property
    def judged_any(self) -> bool:
        """Whether there is anything to report."""
        return bool(self._tests)
