"""Confirm passes: which results are measured again, and what that does to an observation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError
from pytest_ttnn_perf.records.messages import Broke, PassKind, Refused, Reported, Stopped
from pytest_ttnn_perf.records.metric import Source
from pytest_ttnn_perf.records.verdict import Outcome, Reason
from pytest_ttnn_perf.report.checklist import confirm_heading, confirm_line, suspicion_line
from pytest_ttnn_perf.run.update import Action, actions_of
from pytest_ttnn_perf.run.workers import Listener, Loss, Pass, WorkerLauncher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_ttnn_perf.records.messages import Message
    from pytest_ttnn_perf.records.observation import JudgedTest, MetricObservation, Observation
    from pytest_ttnn_perf.records.settings import Update
    from pytest_ttnn_perf.records.verdict import Verdict
    from pytest_ttnn_perf.run.gate_run import GateRun


#: What is the same however often it is asked for, or is told at the end alone.
MEASURED_ONCE: Final = frozenset({Source.REPLAY, Source.TRACY})
#: What makes a new centre: one lucky or unlucky process must not become it.
_DECISIVE: Final = frozenset({Action.ADD, Action.ACCEPT, Action.REPLACE})


def in_question(judged: JudgedTest, update: Update | None, *, passes: int) -> frozenset[str]:
    """Return the metrics of a test that are measured again before anything is decided.

    Those that look slower, and those that would become a baseline. Times and throughputs only:
    what is compared exactly has no luck. Each ``passes`` times at most.
    """
    observation = judged.observation
    if observation.problems or observation.raised is not None or observation.unconfirmed:
        return frozenset()
    actions = actions_of(_without_suspects(judged), update) if update else {}
    return frozenset(
        verdict.metric.name
        for verdict in judged.verdicts
        if verdict.metric.compared_by_ratio
        # What was recorded is the same however often it is read; Tracy reports at its end alone.
        and verdict.metric.source not in MEASURED_ONCE
        # A part is accepted with its total, and that is what is measured again.
        and verdict.reason is not Reason.EXPLAINS
        and (is_suspect(verdict) or actions.get(verdict.metric.name) in _DECISIVE)
        and len(observation.metrics[verdict.metric.name].confirmations) < passes
    )


def is_suspect(verdict: Verdict) -> bool:
    """Return whether a metric looks worse by its numbers, which may be bad luck."""
    by_ratio = verdict.metric.compared_by_ratio
    return by_ratio and verdict.outcome is Outcome.REGRESSED and verdict.reason is None


def _without_suspects(judged: JudgedTest) -> JudgedTest:
    """Return a judged test as it would be if all that looks worse were bad luck.

    A gain beside a suspect is measured along with it: once the suspect is cleared there may be too
    few passes left for the gain.
    """
    verdicts = (
        verdict._replace(outcome=Outcome.WITHIN) if is_suspect(verdict) else verdict
        for verdict in judged.verdicts
    )
    return replace(judged, verdicts=tuple(verdicts))


def add_confirmation(
    observation: Observation, names: Iterable[str], again: Observation, *, number: int
) -> Observation:
    """Return an observation with what confirm pass ``number`` measured of the metrics ``names``."""
    failed = _why_not_counted(observation, again)
    if failed is not None:
        return mark_unconfirmed(observation, names, f"confirm pass {number}: {failed}")
    for name in names:
        if name not in again.metrics:
            why = f"confirm pass {number}: the test did not record it"
            return mark_unconfirmed(observation, names, why)
    samples = {name: again.metrics[name].samples for name in names}
    return _with_samples(observation, samples)


def mark_unconfirmed(observation: Observation, names: Iterable[str], why: str) -> Observation:
    """Return an observation whose metrics ``names`` could not be measured again."""
    nothing: dict[str, tuple[float, ...]] = dict.fromkeys(names, ())
    return replace(_with_samples(observation, nothing), unconfirmed=why)


def _why_not_counted(observation: Observation, again: Observation) -> str | None:
    if again.raised is not None:
        return f"the test raised {again.raised}"
    if again.problems:
        return again.problems[0]
    difference = again.setting.first_difference(observation.setting)
    if difference is not None:
        name, now, then = difference
        return f"another configuration: {name} is {now!r}, before {then!r}"
    return None


def _with_samples(observation: Observation, samples: dict[str, tuple[float, ...]]) -> Observation:
    def more(name: str, observed: MetricObservation) -> MetricObservation:
        if name not in samples:
            return observed
        return replace(observed, confirmations=(*observed.confirmations, samples[name]))

    metrics = {name: more(name, observed) for name, observed in observation.metrics.items()}
    return replace(observation, metrics=metrics)


def suspicion(judged: JudgedTest) -> str | None:
    """Say what makes a test look slower; None if it is only to be recorded."""
    suspects = [verdict for verdict in judged.verdicts if is_suspect(verdict)]
    return suspicion_line(judged.observation.test, suspects) if suspects else None


#: A confirm pass may take this many times as long as the first, which ran all tests.
_PATIENCE: Final = 10.0
_LEAST_PATIENCE_S: Final = 60.0


@dataclass(slots=True)
class ConfirmPasses:
    """Measures tests again until they are cleared, or as often as the settings ask for."""

    gate: GateRun
    workers: WorkerLauncher
    print_line: Callable[[str], None]
    #: Those whose tests are profiled, if the run has such a pass.
    profiling: WorkerLauncher | None = None

    def run(self, tests: Sequence[str], *, first_pass_s: float) -> None:
        """Measure ``tests`` again; what the gate knows of each is complete afterwards."""
        passes = self.gate.settings.confirm
        for number in range(1, passes + 1):
            left = [test for test in tests if self.gate.in_question(test)]
            if not left:
                return
            self.print_line(confirm_heading(len(left), number=number, passes=passes))
            # Each metric as it was measured at first.
            for workers, profiled in ((self.workers, False), (self.profiling, True)):
                again = [t for t in tests if self.gate.in_question(t, profiled=profiled)]
                if again and workers is not None:
                    listener = _ConfirmListener(
                        self.gate, number, profiled, self.print_line, dict.fromkeys(again)
                    )
                    silence_s = self._silence_s(first_pass_s)
                    again_pass = Pass(PassKind.CONFIRM, workers, listener, silence_s)
                    again_pass.run(again)
                    listener.close(again_pass.stopped)
                    if again_pass.stopped:
                        self.print_line(f"ttnn-perf: a worker {again_pass.stopped}")
                        return

    def _silence_s(self, first_pass_s: float) -> float:
        patience_s = max(_PATIENCE * first_pass_s, _LEAST_PATIENCE_S)
        return min(self.gate.settings.timeout or patience_s, patience_s)


@dataclass(slots=True)
class _ConfirmListener(Listener):
    """Takes in what one confirm pass measures; its reports are nobody else's business."""

    gate: GateRun
    number: int
    profiled: bool
    print_line: Callable[[str], None]
    waiting: dict[str, None]
    _trouble: str | None = None

    def receive(self, message: Message) -> None:
        """Add an observation to its test."""
        match message:
            case Reported(report={"outcome": "rerun"}):
                pass  # of pytest-rerunfailures' marker: a test counts as it ends
            case Reported(test=test) if message.observed is not None and test in self.waiting:
                del self.waiting[test]
                self._add(test, message.observed)
            case Refused(text=text) | Broke(text=text) | Stopped(text=text):
                self._trouble = text

    def worker_lost(self, loss: Loss) -> None:
        """Give up the tests that a worker was running when it died or hung."""
        why = f"its worker {loss.text}; log: {loss.log}"
        if not loss.tests:  # those that are left would have had another worker
            self._trouble = why
        for started in loss.tests:
            self._give_up(started.test, why)

    def close(self, stopped: str | None) -> None:
        """Give up the tests that no worker told anything about."""
        why = f"a worker before it {stopped}" if stopped else self._trouble
        for test in tuple(self.waiting):
            self._give_up(test, why or "the test did not run again")

    def _give_up(self, test: str, why: str) -> None:
        if test in self.waiting:
            del self.waiting[test]
            self.gate.cannot_confirm(test, f"confirm pass {self.number}: {why}")

    def _add(self, test: str, observed: dict[str, object]) -> None:
        before = self.gate.judged(test)
        suspects = [v.metric.name for v in before.verdicts if is_suspect(v)] if before else []
        asked = self.gate.in_question(test, profiled=self.profiled)
        try:
            judged = self.gate.confirm(test, observed, number=self.number, profiled=self.profiled)
        except DecodeError as error:
            judged = self.gate.cannot_confirm(test, f"confirm pass {self.number}: {error}")
        for verdict in judged.verdicts:
            if verdict.metric.name in suspects and verdict.metric.name in asked:
                self.print_line(confirm_line(test, verdict))
