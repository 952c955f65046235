"""Confirm passes: which results are measured again, and what that does to an observation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError
from pytest_ttnn_perf.records.messages import PassKind
from pytest_ttnn_perf.records.metric import Source
from pytest_ttnn_perf.records.verdict import Outcome, Reason
from pytest_ttnn_perf.report.checklist import confirm_heading, confirm_line, suspicion_line
from pytest_ttnn_perf.run.update import Action, actions_of
from pytest_ttnn_perf.run.workers import Pass, ResultListener, WorkerLauncher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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


def run_confirm_passes(
    gate: GateRun,
    tests: Sequence[str],
    *,
    workers: WorkerLauncher,
    profiling: WorkerLauncher | None,
    print_line: Callable[[str], None],
    first_pass_s: float,
) -> None:
    """Measure tests again until they are cleared, or as often as the settings ask for.

    ``profiling`` are the workers whose tests are profiled, if the run has such a pass. What the
    gate knows of each test is complete afterwards.
    """
    passes, timeout_s = gate.settings.confirm, gate.settings.timeout
    patience_s = max(_PATIENCE * first_pass_s, _LEAST_PATIENCE_S)
    silence_s = min(timeout_s or patience_s, patience_s)
    for number in range(1, passes + 1):
        left = [test for test in tests if gate.in_question(test)]
        if not left:
            return
        print_line(confirm_heading(len(left), number=number, passes=passes))
        # Each metric as it was measured at first.
        for launcher, profiled in ((workers, False), (profiling, True)):
            again = [test for test in tests if gate.in_question(test, profiled=profiled)]
            if not again or launcher is None:
                continue
            listener = _ConfirmListener(print_line, dict.fromkeys(again), gate, number, profiled)
            one = Pass(PassKind.CONFIRM, launcher, listener, silence_s)
            one.run(again)
            if one.stopped:
                listener.trouble = f"a worker before it {one.stopped}"
            listener.close("the test did not run again")
            if one.stopped:
                print_line(f"ttnn-perf: a worker {one.stopped}")
                return


@dataclass(slots=True)
class _ConfirmListener(ResultListener):
    """Takes in what one confirm pass measures; its reports are not emitted."""

    gate: GateRun
    number: int
    profiled: bool

    def give_up(self, test: str, why: str) -> None:
        """Record that a test could not be measured again."""
        if test in self.waiting:
            del self.waiting[test]
            self.gate.cannot_confirm(test, f"confirm pass {self.number}: {why}")

    def take(self, test: str, observed: dict[str, object]) -> None:
        """Add an observation to its test."""
        if test not in self.waiting:
            return
        del self.waiting[test]
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
