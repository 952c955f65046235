"""One run of the gate: judge observations, keep their journal, change baselines."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import decode, encode
from pytest_ttnn_perf.core.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf.core.metric import OF_DEVICE, Source
from pytest_ttnn_perf.core.observation import End, EndKind, Observation, Outcome, Run
from pytest_ttnn_perf.core.settings import AB, Update
from pytest_ttnn_perf.core.text import NANOSECONDS_IN
from pytest_ttnn_perf.gate.confirm import (
    MEASURED_ONCE,
    MachineMoves,
    add_confirmation,
    changes_of_control,
    choose_controls,
    in_doubt,
    in_question,
    mark_unconfirmed,
)
from pytest_ttnn_perf.gate.judging import (
    DeviceResults,
    check_numbers,
    check_sweeps,
    judge_observation,
    see_machine,
    violations,
)
from pytest_ttnn_perf.gate.machine_shift import (
    ALIKE,
    Suites,
    bears_out,
    explain_by_shift,
    likeness,
    speakers,
)
from pytest_ttnn_perf.gate.record import Journal, RunContext, environment_of
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.gate.update import Updates, acceptance_now

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.baseline import MetricBaseline
    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import (
        Coverage,
        JudgedTest,
        Location,
        MetricObservation,
        Shift,
        Verdict,
    )
    from pytest_ttnn_perf.core.settings import Settings


_ALONE: Final = "no controls; --ttnn-perf-confirm=ab compares it with its baseline's commit"
_UNLIKE: Final = "its controls are unlike it: what slows it may not slow them"


def repeated(first: Observation, other: Observation) -> Observation:
    """Return an observation with the samples of an earlier repeat."""
    if first.ended is not None or other.ended is not None:
        return replace(first if first.ended is not None else other, node_id=other.node_id)
    metrics = {
        name: replace(seen, samples=(*first.metrics[name].samples, *seen.samples))
        if name in first.metrics
        else seen
        for name, seen in other.metrics.items()
    }
    return replace(other, metrics={**first.metrics, **metrics})


@dataclass(slots=True)
class GateRun:
    """The judge of a run; nothing is read or written before ``begin``."""

    context: RunContext
    #: The results of the device pass, which is over before the first test is judged.
    device: DeviceResults = field(default_factory=DeviceResults)
    store: BaselineStore = field(init=False)
    journal: Journal = field(init=False)
    run: Run = field(init=False)
    errors: list[str] = field(default_factory=list)
    #: Whether a shift is still to be borne out by controls.
    doubts_shift: bool = False
    _suites: Suites = field(init=False)
    _updates: Updates = field(init=False)
    #: By node id, as pytest, workers and passes name tests; records and baselines do not.
    _tests: dict[str, JudgedTest] = field(default_factory=dict)
    #: The names that tests are filed under, by node id, where that is not the id.
    _identities: dict[str, str] = field(default_factory=dict)
    #: The node ids of names that tests are filed under, where that is not the id.
    node_ids: dict[str, str] = field(default_factory=dict)
    #: The last node id of each name that tests are filed under.
    _items: dict[str, str] = field(default_factory=dict)
    #: The controls of the confirm pass that is under way.
    _controls: tuple[str, ...] = ()
    _began: bool = False

    def __post_init__(self) -> None:
        settings, now = self.context.settings, datetime.now(timezone.utc)
        # Sorts by time to the millisecond: two runs of one second are in their order too.
        part = f"{now.microsecond // 1000:03x}{secrets.randbelow(4096):03x}"
        identifier = f"{now:%Y%m%dT%H%M%SZ}-{part}"
        self.store = BaselineStore(settings.baselines)
        self._suites = Suites(self.store)
        self._updates = Updates(self.store, settings.update)
        self.journal = Journal(settings.artifacts / "runs" / f"{identifier}.jsonl")
        self.run = Run(self.context.hardware, {}, label=settings.label, id=identifier)

    @property
    def settings(self) -> Settings:
        """The settings of this run."""
        return self.context.settings

    @property
    def passes_folder(self) -> Path:
        """The folder of this run's workers."""
        return self.settings.artifacts.absolute() / "passes" / str(self.run.id)

    def begin(
        self,
        tests: Collection[str],
        coverage: Coverage | None = None,
        identities: Mapping[str, str] | None = None,
    ) -> None:
        """Read the baselines of the tests to measure, and start the journal.

        ``coverage`` is what was collected, None if that is not known. Without tests, that is all
        that is kept. ``identities`` are the names that tests are filed under.

        Raises:
            InputError: a baseline is unreadable or malformed.
            WriteError: the artifacts' folder is not writable.
        """
        for test, identity in (identities or {}).items():
            self.identify(test, identity)
        coverage = coverage and coverage.with_identities(self._identities)
        self.run = replace(self.run, coverage=coverage)
        if not tests:
            return
        self._began = True
        self.store.preload(tests)
        environment = environment_of(self.context.project, self.context.job)
        self.run = replace(self.run, environment=environment)
        # What was collected is written when it is known which of it was measured.
        self.journal.open(replace(self.run, coverage=None))

    def identify(self, test: str, identity: str) -> None:
        """File a test under a name."""
        self._identities[test] = identity
        self.node_ids[identity] = test

    def identity(self, test: str) -> str:
        """Return the name that a test is filed under."""
        return self._identities.get(test, test)

    def judge(self, test: str, observed: dict[str, object]) -> JudgedTest:
        """Record one test's observation, judge it, and decide whether it is written.

        ``test`` is its node id, ``observed`` the observation as plain JSON, as a worker sends it.

        Raises:
            DecodeError: it is not an observation.
        """
        identity = self.identity(test)
        observation = decode(Observation, observed, key=identity)  # or the journal is unreadable
        if identity != test:
            observation = replace(observation, node_id=test)
        if not self._began:  # a test that asked for the fixture only while it ran
            self.attempt(partial(self.begin, [test], self.run.coverage))
        hardware = observation.hardware or self.context.hardware
        is_new = self.settings.update is not None and self.store.find(hardware, identity) is None
        observation = self.device.add_to(observation, is_new=is_new)
        before, self._items[identity] = self._items.get(identity, test), test
        if (
            before != test and before in self._tests
        ):  # repeated, as by pytest-repeat: the last has the samples of all
            observation = repeated(self._tests.pop(before).observation, observation)
        if self.settings.targets is not None:
            from pytest_ttnn_perf.gate.targets import with_targets

            observation = with_targets(observation, hardware, self.settings.targets)
        return self._record(observation)

    def _record(self, observation: Observation) -> JudgedTest:
        self.attempt(partial(self.journal.add, observation.test, encode(observation)))
        return self._judge(observation)

    def _judge(self, observation: Observation) -> JudgedTest:
        judged = judge_observation(observation, self._suites, hardware=self.context.hardware)
        judged = check_numbers(judged, self.settings)
        if self.run.shift is not None:
            verdicts = explain_by_shift(judged.verdicts, self.run.shift)
            judged = replace(judged, verdicts=verdicts)
        return self._decide(observation.node_id or observation.test, judged)

    def _decide(self, test: str, judged: JudgedTest) -> JudgedTest:
        if violations(judged, self.settings.checklist):
            self._updates.withdraw(judged.observation.test)  # a failure is no baseline
        else:
            judged = self._updates.decide(
                judged,
                hardware=self.context.hardware,
                accepted=partial(acceptance_now, self.run.environment, self.settings.reason),
                run=str(self.run.id),
            )
        self._tests[test] = judged
        return judged

    def record_lost(self, test: str, why: str, location: Location | None = None) -> JudgedTest:
        """Record a test without a result, as its worker died."""
        lost = Observation(test, ended=End(EndKind.LOST, why), location=location)
        return self.judge(test, encode(lost))

    def judged(self, test: str) -> JudgedTest | None:
        """Return a test as it is judged by now; None before."""
        return self._tests.get(test)

    def in_question(self, test: str, *, profiled: bool | None = None) -> frozenset[str]:
        """Return the metrics of a judged test that should be measured again.

        Only those of the device pass, or only the others, if ``profiled`` says.
        """
        judged, passes = self._tests.get(test), self.settings.confirm_passes
        if judged is None:  # a later repeat has its samples
            return frozenset()
        names = in_question(judged, self._updates.update, passes=passes)
        if profiled is None or not names:
            return names
        return frozenset(name for name in names if self._is_of_device(test, name) is profiled)

    def in_doubt(self, test: str, *, early: bool = False) -> frozenset[str]:
        """Return the metrics of a test that rounds should decide.

        ``early``: the machine is not known yet.
        """
        if self.settings.confirm != AB:
            return frozenset()
        suites = self._suites.of(self._hardware_of(test))
        return in_doubt(
            self._tests[test],
            lambda source: not early and source in suites and suites[source].move is not None,
        )

    def accepted_commit(self, test: str) -> str | None:
        """Return the commit of a test's baseline; None if unknown.

        Raises:
            UsageError: it was measured with another ttnn, which rounds would not show.
        """
        baseline = self.store.find(self._hardware_of(test), self.identity(test))
        accepted = baseline and baseline.accepted
        now = self.run.environment.ttnn
        if accepted and accepted.ttnn and now and accepted.ttnn != now:
            message = f"both sides would run with ttnn {now}, the baseline had {accepted.ttnn}"
            raise UsageError(message)
        return accepted.commit if accepted else None

    def add_rounds(self, test: str, found: Mapping[str, Verdict], why_not: str) -> JudgedTest:
        """Add verdicts of rounds, or why there are none; judge anew."""
        observation = self._tests[test].observation
        metrics = dict(observation.metrics)
        for name in self.in_doubt(test):
            told = found.get(name)
            note = metrics[name].note if told else f"not compared in turns: {why_not}"
            metrics[name] = replace(metrics[name], rounds=told, note=note)
        return self._record(replace(observation, metrics=metrics))

    def slower_on_host(self, test: str) -> tuple[str, float] | None:
        """Return a baseline's commit, and the slowdown in ns of wall time.

        None where a device is slower, too, or where nothing else is checked out.
        """
        judged = self._tests[test]
        slower = [v for v in judged.verdicts if v.outcome is Outcome.REGRESSED]
        times = [v for v in slower if v.metric.source is Source.WALL
                 and v.metric.unit in NANOSECONDS_IN and v.observed and v.centre]  # fmt: skip
        if judged.by_op or not times or any(v.metric.source in OF_DEVICE for v in slower):
            return None
        baseline = self.store.find(self._hardware_of(test), self.identity(test))
        then = (baseline and baseline.accepted and baseline.accepted.commit) or ""
        now = self.run.environment
        if not then or ((now.commit or "").startswith(then) and not now.dirty):
            return None
        first = times[0]
        slower_ns = (first.observed or 0.0) - (first.centre or 0.0)
        return then, slower_ns * NANOSECONDS_IN[first.metric.unit]

    def explain_host(self, test: str, sentence: str) -> None:
        """Add what makes a wall time slower."""
        self._record(replace(self._tests[test].observation, host=sentence))

    def _is_of_device(self, test: str, metric: str) -> bool:
        observed = self.device.observations.get(test)
        return observed is not None and metric in observed.metrics

    def has_baseline(self, test: str) -> bool:
        """Return whether a test has a baseline on this hardware."""
        return self.store.find(self.context.hardware, self.identity(test)) is not None

    def controls(self, suspects: Sequence[str], *, profiled: bool) -> tuple[str, ...]:
        """Return the tests to measure again as controls of ``suspects``.

        Empty for tests that are new: they are compared with nothing.
        """
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
        alike = self._speakers(suspects, sources)

        def likeness_of(test: str) -> float:
            own = self._speakers([test], sources)
            found = [likeness(one, other) for one in own for other in alike]
            return max(found, default=0.0)

        return choose_controls(judged, {*suspects, *in_question}, sources, likeness_of)

    def _speakers(
        self, tests: Collection[str], sources: Collection[Source]
    ) -> list[MetricBaseline]:
        stored = [(self._hardware_of(test), self.identity(test)) for test in tests]
        known = [self.store.find(*each) for each in stored]
        return [
            baseline
            for test in known
            if test is not None
            for source, baseline in speakers(test).items()
            if source in sources
        ]

    def _hardware_of(self, test: str) -> Hardware:
        judged = self._tests.get(test)
        return (judged and judged.observation.hardware) or self.context.hardware

    def moves_of(self, controls: Mapping[str, Observation]) -> MachineMoves:
        """Return how the machine moved, by controls that were measured again."""
        self._controls = tuple(controls)
        changes = (changes_of_control(self._tests[test], again) for test, again in controls.items())
        suites = self._suites.of(self._hardware_of(next(iter(controls), "")))
        return MachineMoves(changes, suites, otherwise=self.run.shift)

    def confirm(
        self,
        test: str,
        again: Observation,
        *,
        number: int,
        profiled: bool,
        moves: MachineMoves,
    ) -> JudgedTest:
        """Add the results of confirm pass ``number``, and judge anew.

        ``moves`` are those of the machine in this pass.
        """
        observation = self._tests[test].observation
        names = self.in_question(test, profiled=profiled)
        first = self._suites.of(self._hardware_of(test))
        confirmed = add_confirmation(
            observation, names, again, number=number, first=first, moves=moves
        )
        return self._record(replace(confirmed, metrics=self._noted(test, confirmed, names)))

    def _noted(
        self, test: str, observation: Observation, names: Collection[str]
    ) -> dict[str, MetricObservation]:
        """Return the metrics of a suspect, noting controls unlike it."""
        metrics = dict(observation.metrics)
        for name in names:
            sources = {metrics[name].metric.source}
            own = self._speakers([test], sources)
            others = self._speakers(self._controls, sources)
            alike = [likeness(one, other) for one in own for other in others]
            why = _ALONE if own and not alike else _UNLIKE
            if max(alike, default=0.0) < ALIKE and own and metrics[name].note is None:
                metrics[name] = replace(metrics[name], note=why)
        return metrics

    def cannot_confirm(self, test: str, why: str) -> JudgedTest:
        """Note that a test could not be measured again, and judge anew."""
        observation = self._tests[test].observation
        return self._record(mark_unconfirmed(observation, self.in_question(test), why))

    def assess_machine(self) -> Shift | None:
        """Learn of the machine, and judge all tests anew.

        Accepting all is the answer to a machine that has changed for good: then nothing is
        explained away. A gain, or a session, of a shifted machine is not written.
        """
        observations = [judged.observation for judged in self._tests.values()]
        run = self.run
        shift = see_machine(observations, self._suites, run.hardware, run.environment)
        if shift is not None and self.settings.update is Update.ALL:
            self._suites.excuse_nothing(shift.source)
            shift = None
        if shift is not None:
            self.run = replace(run, shift=shift)
            self.doubts_shift = shift.worse and self.settings.confirm_passes > 0
            self._updates.only_new()
        for observation in observations:
            self._judge(observation)
        return shift

    def check_shift(self, moves: MachineMoves) -> Shift | None:
        """Return a shift that controls refute; judge every test again.

        Where no control moved with a number, the votes stand.
        """
        self.doubts_shift = False
        shift = self.run.shift
        move = moves.by_source.get(shift.source) if shift else None
        if shift is None or move is None or bears_out(shift, move):
            return None
        self.run = replace(self.run, shift=None, shift_refuted=True)
        self._suites.excuse_nothing(shift.source)
        self._updates = Updates(self.store, self.settings.update)
        for judged in tuple(self._tests.values()):
            self._judge(judged.observation)
        return shift

    def withdraw(self, test: str) -> None:
        """Do not write a test's result: its teardown failed."""
        if self._updates.withdraw(self.identity(test)):
            judged = self._tests[test]
            problem = "nothing was written: the test failed after its call, in its teardown"
            observation = replace(judged.observation, problems=(problem,))
            self._tests[test] = replace(judged, observation=observation, written=frozenset())

    def finish(self, *, complete: bool) -> tuple[Path, ...]:
        """Write baselines, and complete ``run``; return the files that were changed.

        A run that is not ``complete`` was interrupted: its record says so, and never passes.
        """
        written: tuple[Path, ...] = ()
        before = self._by_identity()
        tests = check_sweeps(before, self.settings)
        for test, judged in tests.items():
            if judged is not before[test] and violations(judged, self.settings.checklist):
                self._updates.withdraw(test)
                tests[test] = replace(judged, written=frozenset())
        try:
            written = self._updates.write()
        except TtnnPerfError as error:
            self.errors.append(str(error))
            tests = {test: replace(each, written=frozenset()) for test, each in tests.items()}
        coverage = self.run.coverage and self.run.coverage.without(tests)
        self.run = replace(self.run, tests=tests, complete=complete, coverage=coverage)
        return written

    def abandon(self) -> None:
        """Delete the journal of a run that was refused."""
        self.journal.close()
        self.run = replace(self.run, tests=self._by_identity(), coverage=None)

    def _by_identity(self) -> dict[str, JudgedTest]:
        return {judged.observation.test: judged for judged in self._tests.values()}

    def attempt(self, write: Callable[[], object]) -> bool:
        """Write something; a failure is added to ``errors``."""
        try:
            write()
        except TtnnPerfError as error:
            self.errors.append(str(error))
            return False
        return True
