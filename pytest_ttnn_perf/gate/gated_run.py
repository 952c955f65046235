"""One run of the gate: takes observations, judges them, and leaves record and baselines."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import split_test_id
from pytest_ttnn_perf.core.codec import decode, encode
from pytest_ttnn_perf.core.errors import TtnnPerfError
from pytest_ttnn_perf.core.observation import Location, Observation, Run
from pytest_ttnn_perf.core.settings import Update
from pytest_ttnn_perf.core.verdict import Reason
from pytest_ttnn_perf.gate.confirm import (
    MEASURED_ONCE,
    add_confirmation,
    in_question,
    mark_unconfirmed,
)
from pytest_ttnn_perf.gate.device import DeviceResults
from pytest_ttnn_perf.gate.health import health_of, old_names
from pytest_ttnn_perf.gate.judging import (
    Policies,
    check_against_verdicts,
    check_sweeps,
    failing_verdicts,
    is_failed,
    judge_observation,
    machine_shift,
    relabel_shifted,
    violations,
)
from pytest_ttnn_perf.gate.machine_shift import bears_out
from pytest_ttnn_perf.gate.record import (
    Journal,
    RunContext,
    RunResult,
    environment_of,
    report_writers,
    write_run,
)
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.gate.update import Updates, acceptance_now
from pytest_ttnn_perf.report.terminal import failure_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import Coverage, JudgedTest, SweepPoint
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.core.verdict import Shift
    from pytest_ttnn_perf.gate.confirm import MachineMoves


@dataclass(slots=True)
class GateRun:
    """The judging side of a run. Nothing is read or written before ``begin``."""

    context: RunContext
    #: What the device pass measured, which is over before the first test is judged.
    device: DeviceResults = field(default_factory=DeviceResults)
    _store: BaselineStore = field(init=False)
    _policies: Policies = field(init=False)
    _updates: Updates = field(init=False)
    _journal: Journal = field(init=False)
    _run: Run = field(init=False)
    #: By node id, as pytest, workers and passes name tests; records and baselines do not.
    _tests: dict[str, JudgedTest] = field(default_factory=dict)
    #: What tests are filed under, by node id, where that is not the id.
    _identities: dict[str, str] = field(default_factory=dict)
    #: Where tests stand in their sweeps, by node id, as far as that is known beforehand.
    points: Mapping[str, SweepPoint] = field(default_factory=dict)
    _errors: list[str] = field(default_factory=list)
    _begun: bool = False
    #: The tests to measure, and the files of which it is known what their tests were called before.
    _asked: frozenset[str] = frozenset()
    _seen: set[tuple[Hardware, str]] = field(default_factory=set)
    #: Whether a shift is still to be borne out by controls.
    doubts_shift: bool = False
    #: The test that was asked about last, and what JUnit is told of it.
    _properties: tuple[JudgedTest | None, list[tuple[str, str]]] = (None, [])

    def __post_init__(self) -> None:
        settings, now = self.context.settings, datetime.now(timezone.utc)
        # Sorts by time, and two runs that start in one second still differ.
        identifier = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        self._store = BaselineStore(settings.baselines)
        self._policies = Policies(self._store)
        self._updates = Updates(self._store, settings.update)
        self._journal = Journal(settings.artifacts / "runs" / f"{identifier}.jsonl")
        self._run = Run(self.context.hardware, {}, label=settings.label, id=identifier)
        record = settings.json or self._journal.file.with_suffix(".json")
        self._offer(record=os.path.relpath(record, self.context.cwd))

    def _offer(self, **known: Any) -> None:
        """Let the commands that are printed use what is known now."""
        self.context = replace(self.context, rerun=replace(self.context.rerun, **known))

    @property
    def settings(self) -> Settings:
        """The settings of this run."""
        return self.context.settings

    def begin(
        self,
        tests: Collection[str],
        coverage: Coverage | None = None,
        identities: Mapping[str, str] | None = None,
    ) -> None:
        """Read the baselines of the tests to measure, and start the journal.

        ``coverage`` is what was collected, None if that is not known. Without tests, that is all
        that is kept. ``identities`` has what tests are filed under, where that is not their id.

        Raises:
            InputError: a baseline is unreadable or malformed.
            WriteError: the artifacts' folder is not writable.
        """
        for test, identity in (identities or {}).items():
            self.identify(test, identity)
        coverage = coverage and coverage.with_identities(self._identities)
        self._run = replace(self._run, coverage=coverage)
        if not tests:
            return
        self._asked = frozenset(map(self.identity, tests))
        self._begun = True
        self._store.preload(tests)
        environment = environment_of(self.context.project, self.context.job)
        self._run = replace(self._run, environment=environment)
        # What was collected is written when it is known which of it was measured.
        self._journal.open(replace(self._run, coverage=None))

    def identify(self, test: str, identity: str) -> None:
        """Take in what a test is filed under; what was stored under its id is found even so."""
        self._identities[test] = identity
        self._store.node_ids[identity] = test
        self._offer(node_ids=self._store.node_ids)

    def identity(self, test: str) -> str:
        """Return what a test is filed under."""
        return self._identities.get(test, test)

    def judge(self, test: str, observed: dict[str, object]) -> JudgedTest:
        """Record one test's observation, then judge it, then decide whether it is written.

        ``test`` is its node id, ``observed`` the observation as plain JSON, as a worker sends it.

        Raises:
            DecodeError: it is not an observation.
        """
        identity = self.identity(test)
        observation = decode(Observation, observed, key=identity)  # or the journal is unreadable
        if identity != test:
            observation = replace(observation, node_id=test)
            observed = {**observed, "node_id": test}
        if not self._begun:  # a test that asked for the fixture only while it ran
            self._attempt(partial(self.begin, [test], self._run.coverage))
        hardware = observation.hardware or self.context.hardware
        is_new = self.settings.update is not None and self._store.find(hardware, identity) is None
        complete = self.device.add_to(observation, is_new=is_new)
        if complete is not observation:
            from pytest_ttnn_perf.gate.checklist import check_numbers_again

            observation = check_numbers_again(complete, self.settings)
            observed = encode(observation)
        if self.settings.targets is not None:
            from pytest_ttnn_perf.gate.update import with_targets

            observation = with_targets(observation, hardware, self.settings.targets)
            observed = encode(observation)
        self._attempt(partial(self._journal.add, identity, observed))
        return self._judge(observation)

    def judge_again(self, observation: Observation) -> JudgedTest:
        """Judge a test anew on all that is known of it now, and record that."""
        encoded = encode(observation)
        self._attempt(partial(self._journal.add, observation.test, encoded))
        return self._judge(observation)

    def _judge(self, observation: Observation) -> JudgedTest:
        judged = judge_observation(observation, self._policies, hardware=self.context.hardware)
        judged = check_against_verdicts(judged, self.settings)
        if self._run.shift is not None:
            judged = relabel_shifted(judged, self._run.shift)
        if any(verdict.reason is Reason.NEW_TEST for verdict in judged.verdicts):
            self._look_for_old_name(judged)
        test = observation.node_id or observation.test
        self._tests[test] = self._decided(judged)
        return self._tests[test]

    def _look_for_old_name(self, judged: JudgedTest) -> None:
        """Find out what a new test may have been called before: what is gone from its file."""
        test, coverage = judged.observation.test, self._run.coverage
        hardware = judged.observation.hardware or self.context.hardware
        file = split_test_id(test)[0]
        if coverage is None or test in self.context.rerun.renamed or (hardware, file) in self._seen:
            return
        self._seen.add((hardware, file))
        found = old_names(file, hardware, self._store, coverage, new=self._asked)
        self._offer(renamed={**self.context.rerun.renamed, **found})

    def _decided(self, judged: JudgedTest) -> JudgedTest:
        if violations(judged, self.settings.checklist):
            self._updates.withdraw(judged.observation.test)
            return judged  # what fails is nothing to compare with
        return self._updates.decide(
            judged,
            hardware=self.context.hardware,
            accepted=partial(acceptance_now, self._run.environment, self.settings.reason),
            run=str(self._run.id),
        )

    def record_lost(self, test: str, why: str, location: Location | None = None) -> JudgedTest:
        """Record a test whose worker died: it has no result, which is one."""
        point = self.points.get(test)
        lost = Observation(test, lost=why, location=location, sweep=point)
        return self.judge(test, encode(lost))

    def judged(self, test: str) -> JudgedTest | None:
        """Return a test as it is judged by now; None before."""
        return self._tests.get(test)

    def in_question(self, test: str, *, profiled: bool | None = None) -> frozenset[str]:
        """Return the metrics of a judged test that should be measured again.

        Only those that the device pass told, or only those that it did not, if ``profiled`` says.
        """
        judged, passes = self._tests[test], self.settings.confirm
        shift = max(self._shift_so_far or 0.0, 0.0)
        names = in_question(judged, self._updates.update, passes=passes, shift=shift)
        if profiled is None or not names:
            return names
        return frozenset(name for name in names if self._is_of_device(test, name) is profiled)

    def _is_of_device(self, test: str, metric: str) -> bool:
        observed = self.device.observations.get(test)
        return observed is not None and metric in observed.metrics

    def has_baseline(self, test: str) -> bool:
        """Return whether a test has a baseline on this hardware."""
        return self._store.find(self.context.hardware, self.identity(test)) is not None

    @property
    def passes_folder(self) -> Path:
        """Where the workers of this run have their folders."""
        return self.settings.artifacts.absolute() / "passes" / str(self._run.id)

    def controls(self, suspects: Sequence[str], *, profiled: bool) -> tuple[str, ...]:
        """Return the tests to measure again beside ``suspects``, to see what the machine does.

        None beside tests that are new: there is nothing that they are compared with.
        """
        from pytest_ttnn_perf.gate.confirm import choose_controls

        device = self.device.observations
        judged = {t: j for t, j in self._tests.items() if not profiled or t in device}
        sources = {
            verdict.metric.source
            for test in (judged if self.doubts_shift else suspects)
            for verdict in judged[test].verdicts
            if verdict.centre is not None
            and verdict.metric.source not in MEASURED_ONCE
            and self._is_of_device(test, verdict.metric.name) is profiled
        }
        in_question = {test for test in judged if self.in_question(test)}
        return choose_controls(judged, {*suspects, *in_question}, sources)

    def moves_of(self, controls: Mapping[str, Observation]) -> MachineMoves:
        """Return what controls that were measured again show of the machine."""
        from pytest_ttnn_perf.gate.confirm import MachineMoves, moves_of_control

        moves = (moves_of_control(self._tests[test], again) for test, again in controls.items())
        return MachineMoves(moves, otherwise=self._shift_so_far)

    def first_moves(self) -> MachineMoves:
        """Return what the first pass shows of the machine, by tests that are not in question."""
        from pytest_ttnn_perf.gate.confirm import moves_at_first

        steady = (judged for test, judged in self._tests.items() if not self.in_question(test))
        return moves_at_first(steady, self._shift_so_far)

    @property
    def _shift_so_far(self) -> float | None:
        return self._run.shift.change if self._run.shift else None

    def confirm(
        self,
        test: str,
        again: Observation,
        *,
        number: int,
        profiled: bool,
        moves: tuple[MachineMoves, MachineMoves],
    ) -> JudgedTest:
        """Add what confirm pass ``number`` measured of what is in question, and judge anew.

        ``moves`` is what the machine did in the first pass and in this one.
        """
        observation = self._tests[test].observation
        names = self.in_question(test, profiled=profiled)
        return self.judge_again(
            add_confirmation(observation, names, again, number=number, moves=moves)
        )

    def cannot_confirm(self, test: str, why: str) -> JudgedTest:
        """Note that a test could not be measured again, and judge anew."""
        observation = self._tests[test].observation
        return self.judge_again(mark_unconfirmed(observation, self.in_question(test), why))

    @property
    def shift(self) -> Shift | None:
        """How the machine has shifted as a whole; None if it has not."""
        return self._run.shift

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
        self.doubts_shift = shift.worse and self.settings.confirm > 0
        self._updates.only_new()
        for test, judged in self._tests.items():
            anew = relabel_shifted(replace(judged, written=frozenset()), shift)
            self._tests[test] = self._decided(anew)
        from pytest_ttnn_perf.report.terminal import shift_line

        return "ttnn-perf: " + shift_line(shift)

    def check_shift(self, move: float | None) -> Shift | None:
        """Hold a shift against how controls moved; return it if they did not move with it.

        Then every test is judged by itself again. Where no control tells, the votes stand.
        """
        self.doubts_shift = False
        shift = self._run.shift
        if shift is None or move is None or bears_out(shift, move):
            return None
        self._run = replace(self._run, shift=None, shift_refuted=True)
        self._updates = Updates(self._store, self.settings.update)
        for judged in tuple(self._tests.values()):
            self._judge(judged.observation)
        return shift

    def withdraw(self, test: str) -> None:
        """Do not write a test's result after all: what came after its call went wrong."""
        if self._updates.withdraw(self.identity(test)):
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
        tests = self._with_sweeps(self._by_identity())
        for error, refused in self._updates.write(written):
            self._errors.append(error)
            for test in refused:
                tests[test] = replace(tests[test], written=frozenset())
        coverage = self._run.coverage and self._run.coverage.without(tests)
        run = replace(self._run, tests=tests, complete=complete, coverage=coverage)
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
        results = self.settings.benchmark_json
        if results is not None:
            from pytest_ttnn_perf.report.benchmark_json import write_benchmarks

            self._attempt(partial(write_benchmarks, run, results))
        result = RunResult(
            self.context, run, self._store, health, written, records, self._errors
        ).with_ci_report()
        if result.ci_report is not None:
            for write in report_writers(result.ci_report, self.settings):
                self._attempt(write)
        return result

    def _with_sweeps(self, tests: dict[str, JudgedTest]) -> dict[str, JudgedTest]:
        """Return tests with what is known once all points of a sweep are measured."""
        checked = check_sweeps(tests, self.settings)
        for test, judged in checked.items():
            if judged is not tests[test] and violations(judged, self.settings.checklist):
                self._updates.withdraw(test)
                checked[test] = replace(judged, written=frozenset())
        return checked

    def _by_identity(self) -> dict[str, JudgedTest]:
        """Return the tests as records name them."""
        return {judged.observation.test: judged for judged in self._tests.values()}

    def abandon(self) -> RunResult:
        """Delete the journal of a run that was refused; nothing of it is written."""
        self._journal.close()
        run = replace(self._run, tests=self._by_identity(), coverage=None)
        return RunResult(self.context, run, self._store, errors=self._errors)

    def _attempt(self, write: Callable[[], object]) -> bool:
        """Go on after a failed write: what can be saved is saved, and the run says what was not."""
        try:
            write()
        except TtnnPerfError as error:
            self._errors.append(str(error))
            return False
        return True
