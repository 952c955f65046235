"""Rounds: two versions of a project measured in turns, each time in a fresh process.

The order changes from round to round (A B, B A, A B, ...), so that what drifts evenly is as often
to the one's disadvantage as to the other's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.model.assignment import PassKind
from pytest_ttnn_perf.model.calibration import Progress
from pytest_ttnn_perf.model.message import Collected, Strayed
from pytest_ttnn_perf.workflow.device_pass import untold, with_device
from pytest_ttnn_perf.workflow.origins import Stray
from pytest_ttnn_perf.workflow.passes import Loss, Pass
from pytest_ttnn_perf.workflow.sessions import Hearing, Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_ttnn_perf.model.message import Message
    from pytest_ttnn_perf.model.observation import Observation
    from pytest_ttnn_perf.workflow.crew import Crew


@dataclass(slots=True)
class Side:
    """One of the two versions: what it is called, who measures it, and what that found.

    ``tests`` are those to run in the first round; None for all that are collected.
    """

    name: str
    crew: Crew
    found: Sessions
    tests: Sequence[str] | None = None


class StrayedError(UsageError):
    """A side's tests ran code that is not that side's."""

    def __init__(self, side: Side, strays: Sequence[Stray]) -> None:
        super().__init__(f"{side.name}: {strays[0].name} is {strays[0].file}")
        self.side = side
        self.strays = tuple(strays)


def after_is_first(number: int) -> bool:
    """Tell which side is measured first in a round: the working tree in those of odd number."""
    return number % 2 == 1


def run_rounds(
    before: Side,
    after: Side,
    *,
    rounds: int,
    progress: Callable[[Progress], None],
    begin: Callable[[Collected], None],
) -> str | None:
    """Measure both sides, ``rounds`` times; return why it ended early, None if it did not.

    ``begin`` is told what the working tree collects, before any other process starts. Ctrl-C, or a
    round that cannot be run after others could, keeps what there is.

    Raises:
        UsageError: the tests of a side cannot be collected or run at all.
        StrayedError: a side's tests ran code that is not that side's.
    """
    start_s = time.monotonic()

    def tell(number: int, done: int, side: Side, ready: int, of: int | None) -> None:
        elapsed_s = time.monotonic() - start_s
        progress(Progress(number, rounds, ready, of, elapsed_s, "round", side.name, 2, done))

    try:
        for number in range(1, rounds + 1):
            order = (after, before) if after_is_first(number) else (before, after)
            for done, side in enumerate(order):
                hearing = Hearing(side.found, number, partial(tell, number, done, side))
                hearing.begin = begin if side is after else hearing.begin
                # What has failed once has no result any more, and costs time only.
                tests = side.tests if number == 1 else _in_both(before, after)
                _run_session(side, hearing, tests)
                if side.found.stopped is not None:
                    return f"{side.found.stopped}, {side.name}"
                if number == 1 and side is after and not side.found.measured:
                    return None  # nothing to compare the other side with
            if not _in_both(before, after):
                return None
    except KeyboardInterrupt:
        return "interrupted"
    return None


def _in_both(before: Side, after: Side) -> tuple[str, ...]:
    """Return the tests that had no trouble on either side."""
    known = before.found.good()
    return tuple(test for test in after.found.good() if test in known)


def _run_session(side: Side, hearing: Hearing, tests: Sequence[str] | None) -> None:
    """Measure one side once, as a usual run does: a device pass if there is one, then the other."""
    crew, found = side.crew, side.found
    hearing.alike, hearing.word = False, "round"
    if crew.has_device_pass:
        device = crew.device_pass()
        told = device.run()
        if device.stopped is not None:
            found.stopped = f"stopped in round {hearing.number} ({device.stopped})"
            return
        hearing.complete = partial(_with_device, told=told, why=device.untold)
    listener = _Listener(hearing)
    kind = PassKind.AB if crew.first_kind is PassKind.WALL else crew.first_kind
    one = Pass(kind, crew.first(), listener, crew.settings.timeout)
    one.run(tests)
    if listener.strays:
        raise StrayedError(side, listener.strays)
    if one.stopped is not None:
        found.stopped = f"stopped in round {hearing.number} (a worker {one.stopped})"
        return
    try:
        hearing.close(one.left, () if hearing.number == 1 else tests)
    except UsageError as error:
        message = f"{side.name}: {error}"
        raise UsageError(message) from error
    found.completed = hearing.number


def _with_device(
    observation: Observation, *, told: Mapping[str, Observation], why: str | None
) -> Observation:
    profiled = told.get(observation.test)
    if profiled is None and why is not None:
        profiled = untold(observation.test, f"device pass: {why}")
    return with_device(observation, profiled)


@dataclass(slots=True)
class _Listener:
    """Hears a side's workers, and stops them if they do not run that side's code."""

    hearing: Hearing
    strays: list[Stray] = field(default_factory=list)
    _stop: str | None = None

    @property
    def stop(self) -> str | None:
        return self._stop or self.hearing.stop

    def hear(self, message: Message) -> None:
        """Take notice of what a worker says."""
        match message:
            case Strayed(modules=modules):
                told = [Stray(*each) for each in modules]
                self.strays += [each for each in told if each not in self.strays]
                self._stop = "code of another version was loaded"
            case Collected(measured=None):
                wrong = "ab measures one test at a time: leave out -n and --tx"
                raise UsageError(wrong)
            case _:
                self.hearing.hear(message)

    def lose(self, loss: Loss) -> None:
        """Take notice of a worker that died or hung."""
        self.hearing.lose(loss)
