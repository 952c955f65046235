"""A/A sessions: the same tests in one fresh process after another, nothing changed between."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import expm1
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import DecodeError, UsageError
from pytest_ttnn_perf.gate.judge import judge_test, session_of
from pytest_ttnn_perf.gate.policy import DEFAULT_POLICY
from pytest_ttnn_perf.gate.power import alarm_rate, noise_of, smallest_caught
from pytest_ttnn_perf.gate.ratios import band_of, centre_of
from pytest_ttnn_perf.model.assignment import PassKind
from pytest_ttnn_perf.model.baseline import MetricBaseline
from pytest_ttnn_perf.model.calibration import Calibrated, Progress
from pytest_ttnn_perf.model.encoding.observations import decode_observation
from pytest_ttnn_perf.model.encoding.value import Value
from pytest_ttnn_perf.model.message import (
    Broke,
    Collected,
    CollectionReported,
    Finished,
    Refused,
    Reported,
    Stopped,
)
from pytest_ttnn_perf.model.verdict import Outcome
from pytest_ttnn_perf.report.sentences import sentence
from pytest_ttnn_perf.workflow.passes import Loss, Pass, Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ttnn_perf.model.message import Message
    from pytest_ttnn_perf.model.observation import Observation


@dataclass(slots=True)
class Sessions:
    """What A/A sessions have measured so far. ``troubles`` says why a test has no result."""

    wanted: int
    completed: int = 0
    measured: dict[str, list[Observation]] = field(default_factory=dict)
    troubles: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False

    def good(self) -> dict[str, list[Observation]]:
        """Return the tests that had no trouble in any session."""
        return {t: seen for t, seen in self.measured.items() if t not in self.troubles}


def run_sessions(
    workers: Workers, *, sessions: int, timeout_s: float, progress: Callable[[Progress], None]
) -> Sessions:
    """Measure the tests that ``workers`` collect, ``sessions`` times; Ctrl-C keeps what there is.

    Raises:
        UsageError: the tests cannot be collected or run at all.
    """
    found = Sessions(sessions)
    start_s = time.monotonic()
    try:
        for number in range(1, sessions + 1):
            hearing = _Hearing(found, number, start_s, progress)
            # The first session finds out which tests are measured; the others cost time only.
            tests = tuple(found.measured) if number > 1 else None
            Pass(PassKind.CALIBRATE, workers, hearing, timeout_s).run(tests)
            hearing.close()
            found.completed = number
            if not found.good():
                break
    except KeyboardInterrupt:
        found.interrupted = True
    return found


@dataclass(slots=True)
class _Hearing:
    """Takes in what one session measures."""

    found: Sessions
    number: int
    start_s: float
    progress: Callable[[Progress], None]
    stop: str | None = None
    _tests: int | None = None
    _done: int = 0
    _heard: set[str] = field(default_factory=set)
    _refused: str | None = None

    def hear(self, message: Message) -> None:
        """Keep observations and troubles; tell how far it is."""
        match message:
            case Collected(tests=tests) if self._tests is None:
                self._tests = len(tests)
                self._tell()
            case Reported():
                self._receive(message)
            case Finished():
                self._done += 1
                self._tell()
            case CollectionReported(report=report) if report.get("outcome") == "failed":
                self._refused = f"{report['nodeid']} cannot be collected: {_last_line(report)}"
            case Refused(text=text) | Broke(text=text) | Stopped(text=text):
                self._refused = self._refused or text or "interrupted"

    def lose(self, loss: Loss) -> None:
        """Note the tests that a worker was running when it died or hung."""
        why = f"its worker {loss.text}; log: {loss.log}"
        for started in loss.tests:
            self.found.troubles.setdefault(started.test, why)
        if not loss.tests and self._tests is None:
            self._refused = self._refused or f"the worker {loss.text}; log: {loss.log}\n{loss.tail}"

    def close(self) -> None:
        """Note the tests that this session should have measured and did not."""
        if self._refused is not None:
            raise UsageError(self._refused)
        for test in self.found.measured.keys() - self._heard:
            why = f"session {self.number}: the test did not run again"
            self.found.troubles.setdefault(test, why)

    def _receive(self, message: Reported) -> None:
        test, failed = message.test, message.report.get("outcome") == "failed"
        trouble = _last_line(message.report) if failed else None
        if message.observed is not None:
            self._heard.add(test)
            try:
                observation = decode_observation(test, Value(message.observed))
            except DecodeError as error:
                self.found.troubles[test] = str(error)
                return
            trouble = trouble or _flaw(observation)
            self.found.measured.setdefault(test, []).append(observation)
        if trouble is not None and (test in self.found.measured or message.observed is not None):
            self.found.troubles.setdefault(test, f"session {self.number}: {trouble}")

    def _tell(self) -> None:
        elapsed_s = time.monotonic() - self.start_s
        sessions = self.found.wanted
        self.progress(Progress(self.number, sessions, self._done, self._tests, elapsed_s))


def _flaw(observation: Observation) -> str | None:
    """Return why an observation can be no baseline; None if it can."""
    if observation.problems:
        return observation.problems[0]
    for verdict in judge_test(observation, None):
        if verdict.outcome is not Outcome.NO_BASELINE:
            return sentence(verdict)
    return None


def _last_line(report: dict[str, object]) -> str:
    """Return what a serialised report says of its failure."""
    representation = report.get("longrepr")
    if isinstance(representation, dict):
        crash = representation.get("reprcrash")
        if isinstance(crash, dict) and crash.get("message"):
            return str(crash["message"]).splitlines()[0]
    lines = str(representation or "it failed").strip().splitlines()
    return lines[-1]


def baselines_of(seen: list[Observation]) -> dict[str, MetricBaseline]:
    """Return what sessions are stored as: every gated metric that all of them recorded."""
    first = seen[0]
    return {
        name: MetricBaseline(
            observed.metric,
            tuple(session_of(each.metrics[name], each.metrics[name].samples) for each in seen),
        )
        for name, observed in first.metrics.items()
        if observed.gated and all(name in each.metrics for each in seen)
    }


def calibrated(sessions: Sessions, *, confirm: int) -> Iterator[Calibrated]:
    """Yield what the sessions tell about every time and throughput, with ``confirm`` passes."""
    for test, seen in sessions.good().items():
        for name, baseline in baselines_of(seen).items():
            if not baseline.metric.compared_by_ratio:
                continue
            noise = noise_of(baseline)
            limit = band_of(baseline, seen[0].metrics[name].limits, policy=DEFAULT_POLICY).limit
            rate = caught = None
            if noise.between_sd is not None and noise.centre_sd is not None:
                seeing = {
                    "limit": limit,
                    "session_sd": noise.between_sd,
                    "centre_sd": noise.centre_sd,
                }
                rate = alarm_rate(**seeing, measurements=1 + confirm)
                caught = expm1(smallest_caught(**seeing, measurements=1 + confirm))
            yield Calibrated(
                test=test,
                baseline=baseline,
                centre=centre_of(baseline),
                within=noise.within_sd,
                between=noise.between_sd,
                limit=expm1(limit),
                false_alarms=rate,
                caught=caught,
            )
