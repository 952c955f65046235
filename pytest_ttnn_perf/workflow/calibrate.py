"""A/A sessions: the same tests in one fresh process after another, nothing changed between."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import expm1, log1p
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import DecodeError, UsageError
from pytest_ttnn_perf.gate.judge import judge_test, session_of
from pytest_ttnn_perf.gate.policy import DEFAULT_POLICY
from pytest_ttnn_perf.gate.power import alarm_rate, noise_of, smallest_caught
from pytest_ttnn_perf.gate.ratios import band_of, centre_of
from pytest_ttnn_perf.model.assignment import PassKind
from pytest_ttnn_perf.model.baseline import Accepted, MetricBaseline, TestBaseline
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
    from collections.abc import Callable, Iterable, Iterator

    from pytest_ttnn_perf.model.message import Message
    from pytest_ttnn_perf.model.observation import Observation

#: Logarithms beyond this have no exponential; as a change it means "beyond any measure".
_LARGEST_LOG: Final = 700.0


@dataclass(slots=True)
class Sessions:
    """What A/A sessions have measured so far.

    ``troubles`` says why a test has no result, ``stopped`` why there are fewer sessions than
    ``wanted``. ``collected`` is what the first worker has told of its tests.
    """

    wanted: int
    completed: int = 0
    measured: dict[str, list[Observation]] = field(default_factory=dict)
    troubles: dict[str, str] = field(default_factory=dict)
    stopped: str | None = None
    collected: Collected | None = None

    def good(self) -> dict[str, list[Observation]]:
        """Return the tests that had no trouble in any session."""
        return {t: seen for t, seen in self.measured.items() if t not in self.troubles}


def run_sessions(
    workers: Workers,
    *,
    sessions: int,
    timeout_s: float,
    begin: Callable[[Collected], None],
    progress: Callable[[Progress], None],
) -> Sessions:
    """Measure the tests that ``workers`` collect, ``sessions`` times.

    ``begin`` is called once, before the first test runs. Ctrl-C, or a session that cannot be run
    after others could, ends it early and keeps what there is.

    Raises:
        UsageError: the tests cannot be collected or run at all.
    """
    found = Sessions(sessions)
    start_s = time.monotonic()
    try:
        for number in range(1, sessions + 1):
            hearing = _Hearing(found, number, start_s, begin, progress)
            one = Pass(PassKind.CALIBRATE, workers, hearing, timeout_s)
            # The first session finds out which tests are measured; the others, and those that
            # have failed, cost time only.
            one.run(tuple(found.good()) if number > 1 else None)
            hearing.close(one.left)
            if found.stopped:
                break
            found.completed = number
            if not found.good():
                break
    except KeyboardInterrupt:
        found.stopped = "interrupted"
    return found


@dataclass(slots=True)
class _Hearing:
    """Takes in what one session measures."""

    found: Sessions
    number: int
    start_s: float
    begin: Callable[[Collected], None]
    progress: Callable[[Progress], None]
    stop: str | None = None
    _collected: Collected | None = None
    _done: int = 0
    _heard: set[str] = field(default_factory=set)
    _refused: str | None = None

    def hear(self, message: Message) -> None:
        """Keep observations and troubles; tell how far it is."""
        match message:
            case Collected(tests=tests) if tests and self._collected is None:
                self._collect(message)
            case Reported():
                self._receive(message)
            case Finished():
                self._done += 1
                self._tell()
            case CollectionReported(report=report) if report.get("outcome") == "failed":
                self._refused = f"{report['nodeid']} cannot be collected: {_last_line(report)}"
                self.stop = self._refused  # whatever options ask to run the rest even so
            case Refused(text=text):
                self._refused = self._refused or text
            case Broke(text=text):
                self._refused = self._refused or f"internal error of a worker\n{text}"
            case Stopped(text=text):
                said = f"a test or a plugin ended the session: {text or 'interrupted'}"
                self._refused = self._refused or said

    def lose(self, loss: Loss) -> None:
        """Note the tests that a worker was running when it died or hung."""
        why = f"its worker {loss.text}; log: {loss.log}"
        for started in loss.tests:
            self._trouble(started.test, why)
        if not loss.tests and not self._done:
            self._refused = self._refused or f"the worker {loss.text}; log: {loss.log}\n{loss.tail}"

    def close(self, left: Iterable[str]) -> None:
        """Note the tests that this session should have measured and did not.

        ``left`` are those that no worker came to run.

        Raises:
            UsageError: it is the first session, and it could not be run.
        """
        if self._refused is not None and self.number == 1:
            raise UsageError(self._refused)
        if self._refused is not None:
            self.found.stopped = f"stopped in session {self.number} ({self._refused})"
            return
        for test in self.found.good():
            if test not in self._heard:
                self._trouble(test, "the test did not run again")
        for test in left:
            if self._is_measured(test):
                self._trouble(test, "the test did not run")
        if self._collected and self._done < len(self._collected.tests):
            self._done = len(self._collected.tests)
            self._tell()

    def _collect(self, message: Collected) -> None:
        if self.number == 1:
            self.begin(message)
            self.found.collected = message
        self._collected = message
        self._tell()

    def _is_measured(self, test: str) -> bool:
        measured = self._collected.measured if self._collected else None
        return measured is None or test in measured

    def _receive(self, message: Reported) -> None:
        test, failed = message.test, message.report.get("outcome") == "failed"
        trouble = _last_line(message.report) if failed else None
        if message.observed is not None:
            self._heard.add(test)
            try:
                observation = decode_observation(test, Value(message.observed))
            except DecodeError as error:
                self._trouble(test, str(error))
                return
            seen = self.found.measured.setdefault(test, [])
            trouble = trouble or _flaw(observation) or _difference(observation, seen)
            seen.append(observation)
        if trouble is not None and test in self.found.measured:
            self._trouble(test, trouble)

    def _trouble(self, test: str, why: str) -> None:
        self.found.troubles.setdefault(test, f"session {self.number}: {why}")

    def _tell(self) -> None:
        elapsed_s = time.monotonic() - self.start_s
        sessions = self.found.wanted
        tests = len(self._collected.tests) if self._collected else None
        self.progress(Progress(self.number, sessions, self._done, tests, elapsed_s))


def _flaw(observation: Observation) -> str | None:
    """Return why an observation can be no baseline; None if it can."""
    if observation.problems:
        return observation.problems[0]
    for verdict in judge_test(observation, None):
        if verdict.outcome is not Outcome.NO_BASELINE:
            return sentence(verdict)
    return None


def _difference(observation: Observation, seen: list[Observation]) -> str | None:
    """Return what differs from the first session and must not; None for nothing.

    What is compared exactly would fail against itself, and another configuration is another test.
    """
    if not seen:
        return None
    first = TestBaseline(Accepted(""), baselines_of(seen[:1]), seen[0].setting)
    for verdict in judge_test(observation, first):
        by_ratio = verdict.metric.compared_by_ratio and verdict.change is not None
        if not by_ratio and verdict.outcome is not Outcome.WITHIN:
            return f"not as in session 1: {sentence(verdict)}"
    return None


def _last_line(report: dict[str, object]) -> str:
    """Return what a serialised report says of its failure."""
    representation = report.get("longrepr")
    if isinstance(representation, dict):
        crash = representation.get("reprcrash")
        if isinstance(crash, dict) and crash.get("message"):
            return str(crash["message"]).splitlines()[0]
    lines = str(representation or "it failed").strip().splitlines()
    return lines[-1].removeprefix("E  ").strip()  # pytest's mark of an error's own lines


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
                caught = _fraction(smallest_caught(**seeing, measurements=1 + confirm))
            yield Calibrated(
                test=test,
                baseline=baseline,
                centre=centre_of(baseline),
                within=noise.within_sd,
                between=noise.between_sd,
                limit=_fraction(limit),
                false_alarms=rate,
                caught=caught,
            )


def too_noisy(seen: list[Observation]) -> str | None:
    """Return why a test could never pass against its sessions; None if it could."""
    for name, baseline in baselines_of(seen).items():
        if baseline.metric.compared_by_ratio:
            limits = seen[0].metrics[name].limits
            noise = band_of(baseline, limits, policy=DEFAULT_POLICY).noise
            if noise > log1p(max(DEFAULT_POLICY.too_noisy, limits.tolerance or 0.0)):
                return f"{name} is too noisy: noise alone reaches {_fraction(noise) * 100:.1f} %"
    return None


def _fraction(change: float) -> float:
    return expm1(min(change, _LARGEST_LOG))
