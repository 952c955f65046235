"""One run of the gate: takes observations, judges them, and leaves record and baselines."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.atomic import check_writable
from pytest_ttnn_perf._support.errors import InputError, TtnnPerfError
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.device.host import host_environment, host_hardware
from pytest_ttnn_perf.model.baseline import Accepted
from pytest_ttnn_perf.model.encoding.observations import decode_observation
from pytest_ttnn_perf.model.encoding.value import Value
from pytest_ttnn_perf.model.observation import Run
from pytest_ttnn_perf.model.rerun import Rerun
from pytest_ttnn_perf.report.framing import closing_lines, heading_line
from pytest_ttnn_perf.report.terminal import failure_text, summary_lines
from pytest_ttnn_perf.workflow.judge import failed, failing, judge_observation, manner_of
from pytest_ttnn_perf.workflow.publish import Journal, write_run
from pytest_ttnn_perf.workflow.updates import Updates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.settings import Settings
    from pytest_ttnn_perf.report.terminal import Line


@dataclass(slots=True)
class GateRun:
    """The judging side of a run. Nothing is read or written before ``begin``."""

    settings: Settings
    project: Path
    here: Path
    rerun: Rerun = Rerun()
    hardware: Hardware = field(default_factory=host_hardware)
    errors: list[str] = field(default_factory=list)
    _store: BaselineStore = field(init=False)
    _updates: Updates = field(init=False)
    _journal: Journal = field(init=False)
    _run: Run = field(init=False)
    _tests: dict[str, JudgedTest] = field(default_factory=dict)
    _written: list[Path] = field(default_factory=list)
    _records: list[Path] = field(default_factory=list)
    _begun: bool = False

    def __post_init__(self) -> None:
        now = datetime.now(timezone.utc)
        # Sorts by time, and two runs that start in one second still differ.
        identifier = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        self._store = BaselineStore(self.settings.baselines)
        self._updates = Updates(self._store, self.settings.update)
        self._journal = Journal(self.settings.artifacts / "runs" / f"{identifier}.jsonl")
        self._run = Run(self.hardware, {}, label=self.settings.label, id=identifier)

    def check(self) -> None:
        """Find out before any test runs whether its result could be written.

        Raises:
            InputError: the baselines' folder is none.
            WriteError: the baselines' folder, the artifacts' folder or the report is not writable.
        """
        baselines = self.settings.baselines
        if baselines.exists() and not baselines.is_dir():
            raise InputError(baselines, "expected a folder of baselines, found a file")
        if self.settings.update is not None:
            check_writable(baselines)
        check_writable(self.settings.artifacts)
        report = self.settings.json
        if report is not None and report.is_dir():
            raise InputError(report, "expected a file for the run record, found a folder")
        if report is not None:
            check_writable(report.parent)

    def begin(self, tests: Iterable[str]) -> None:
        """Read the baselines of the tests to come, and start the journal.

        Raises:
            InputError: a baseline is unreadable or malformed.
            WriteError: the artifacts' folder is not writable.
        """
        self._begun = True
        self._store.preload(tests)
        environment = host_environment(self.project, now=datetime.now(timezone.utc))
        self._run = replace(self._run, environment=environment)
        self._journal.open(self._run)

    def judge(self, test: str, observed: dict[str, object]) -> JudgedTest:
        """Record one test's observation, then judge it, then decide whether it is written.

        ``observed`` is the observation as plain JSON, as a worker sends it.

        Raises:
            DecodeError: it is not an observation.
        """
        if not self._begun:  # a test that asked for the fixture only while it ran
            self._attempt(partial(self.begin, [test]))
        self._attempt(partial(self._journal.add, test, observed))
        observation = decode_observation(test, Value(observed))
        judged = judge_observation(observation, self._store, hardware=self.hardware)
        judged = self._updates.decide(judged, hardware=self.hardware, accepted=self._accepted)
        self._tests[test] = judged
        return judged

    def withdraw(self, test: str) -> None:
        """Do not write a test's result after all: what came after its call went wrong."""
        if self._updates.withdraw(test):
            judged = self._tests[test]
            problem = "nothing was written: the test failed after its call, in its teardown"
            observation = replace(judged.observation, problems=(problem,))
            self._tests[test] = replace(judged, observation=observation, written=frozenset())

    def failure(self, judged: JudgedTest) -> str | None:
        """Return the text a test fails with; None for a test that passes."""
        missing = self.settings.missing
        if not failed(judged, missing=missing):
            return None
        return failure_text(judged, failing(judged, missing=missing), rerun=self.rerun)

    def finish(self, *, complete: bool = True) -> None:
        """Write baselines and records. What could not be written is kept in ``errors``.

        A run that is not ``complete`` was interrupted: its record says so, and never passes.
        """
        for refused in self._updates.write(self._written):
            self.errors.append(refused.error)
            for test in refused.tests:
                self._tests[test] = replace(self._tests[test], written=frozenset())
        run = replace(self._run, tests=self._tests, complete=complete)
        kept = not self._tests or self._publish(run, self._journal.file.with_suffix(".json"))
        if kept:
            self._journal.close()
        # Also of a run without tests: the file of an earlier run must not stand in for it.
        if self.settings.json is not None:
            self._publish(run, self.settings.json)

    def abandon(self) -> None:
        """End a run that never was one, without a trace."""
        self._journal.close()

    def summary(self) -> Iterator[Line]:
        """Lay out the run's result."""
        tests = list(self._tests.values())
        manner = manner_of(tests, missing=self.settings.missing, rerun=self.rerun)
        return summary_lines(tests, manner=manner)

    def heading(self) -> str:
        """Say in one line what this run does."""
        return heading_line(self.settings, self.hardware, here=self.here)

    def closing(self) -> Iterator[str]:
        """Say where the results went."""
        baselines = self.settings.baselines
        return closing_lines(
            missing=None if baselines.is_dir() else baselines,
            written=self._written,
            records=self._records,
            here=self.here,
        )

    @property
    def judged_any(self) -> bool:
        """Whether there is anything to report."""
        return bool(self._tests)

    def _publish(self, run: Run, file: Path) -> bool:
        if not self._attempt(partial(write_run, run, file)):
            return False
        self._records.append(file)
        return True

    def _attempt(self, write: Callable[[], object]) -> bool:
        """Go on after a failed write: what can be saved is saved, and the run says what was not."""
        try:
            write()
        except TtnnPerfError as error:
            self.errors.append(str(error))
            return False
        return True

    def _accepted(self) -> Accepted:
        environment = self._run.environment
        commit = environment.commit[:12] if environment.commit else None
        return Accepted(
            at=f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
            commit=commit,
            reason=self.settings.reason,
            ttnn=environment.ttnn,
        )
