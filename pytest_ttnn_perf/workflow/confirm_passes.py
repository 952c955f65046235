"""The confirm passes of a run: suspects measured again, each time in a fresh process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import DecodeError
from pytest_ttnn_perf.model.assignment import PassKind
from pytest_ttnn_perf.model.message import Broke, Refused, Reported, Stopped
from pytest_ttnn_perf.report.progress import confirm_heading, confirm_line
from pytest_ttnn_perf.workflow.confirm import is_suspect
from pytest_ttnn_perf.workflow.passes import Loss, Pass, Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_ttnn_perf.model.message import Message
    from pytest_ttnn_perf.workflow.run import GateRun

#: A confirm pass may take this many times as long as the first, which ran all tests.
_PATIENCE: Final = 10.0
_LEAST_PATIENCE_S: Final = 60.0


@dataclass(slots=True)
class ConfirmPasses:
    """Measures tests again until they are cleared, or as often as the settings ask for."""

    gate: GateRun
    workers: Workers
    say: Callable[[str], None]
    #: Those whose tests are profiled, if the run has such a pass.
    profiling: Workers | None = None

    def run(self, tests: Sequence[str], *, first_pass_s: float) -> None:
        """Measure ``tests`` again; what the gate knows of each is complete afterwards."""
        passes = self.gate.settings.confirm
        for number in range(1, passes + 1):
            left = [test for test in tests if self.gate.in_question(test)]
            if not left:
                return
            self.say(confirm_heading(len(left), number=number, passes=passes))
            # Each metric as it was measured at first.
            for workers, profiled in ((self.workers, False), (self.profiling, True)):
                again = [t for t in tests if self.gate.in_question(t, profiled=profiled)]
                if again and workers is not None:
                    hearing = _Hearing(self.gate, number, profiled, self.say, dict.fromkeys(again))
                    silence_s = self._silence_s(first_pass_s)
                    again_pass = Pass(PassKind.CONFIRM, workers, hearing, silence_s)
                    again_pass.run(again)
                    hearing.close(again_pass.stopped)
                    if again_pass.stopped:
                        self.say(f"ttnn-perf: a worker {again_pass.stopped}")
                        return

    def _silence_s(self, first_pass_s: float) -> float:
        patience_s = max(_PATIENCE * first_pass_s, _LEAST_PATIENCE_S)
        return min(self.gate.settings.timeout or patience_s, patience_s)


@dataclass(slots=True)
class _Hearing:
    """Takes in what one confirm pass measures; its reports are nobody else's business."""

    gate: GateRun
    number: int
    profiled: bool
    say: Callable[[str], None]
    waiting: dict[str, None]
    stop: str | None = None
    _trouble: str | None = field(default=None)

    def hear(self, message: Message) -> None:
        """Add an observation to its test."""
        match message:
            case Reported(report={"outcome": "rerun"}):
                pass  # of pytest-rerunfailures' marker: a test counts as it ends
            case Reported(test=test) if message.observed is not None and test in self.waiting:
                del self.waiting[test]
                self._add(test, message.observed)
            case Refused(text=text) | Broke(text=text) | Stopped(text=text):
                self._trouble = text

    def lose(self, loss: Loss) -> None:
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
                self.say(confirm_line(test, verdict))
