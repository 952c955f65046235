"""Rounds: two versions of a project measured in turns, each time in a fresh process.

The order changes from round to round (A B, B A, A B, ...), so that what the second process of a
round has to bear is as often to the one's disadvantage as to the other's.
"""

from __future__ import annotations

import time
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.experiments.compare_rounds import after_is_first, is_exact
from pytest_ttnn_perf.gate.paired import Plan
from pytest_ttnn_perf.observe.strays import Stray
from pytest_ttnn_perf.records.messages import Collected, PassKind, Strayed
from pytest_ttnn_perf.run.passes import Pass
from pytest_ttnn_perf.run.sessions import SessionListener, Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_ttnn_perf.experiments.versions import Version
    from pytest_ttnn_perf.records.messages import Message
    from pytest_ttnn_perf.run.workers import WorkerFactory


class InTurns(Protocol):
    """Two versions that can be measured, round by round, and what was measured of them."""

    @property
    def before(self) -> Sessions:
        """What the one has measured so far."""

    @property
    def after(self) -> Sessions:
        """What the other has."""

    def run(self, number: int, tests: Sequence[str] | None) -> str | None:
        """Run a round of ``tests``, None for all; return why no other can follow, if none can.

        Raises:
            UsageError: the tests of a version cannot be collected or run at all.
        """


def run_rounds(turns: InTurns, *, rounds: int, look: Callable[[int], Sequence[str]]) -> str | None:
    """Run rounds until all is known, ``rounds`` at most; return why it ended early.

    ``look`` is called after some of them, and returns the tests that are to be measured on. Ctrl-C,
    or a round that cannot be run after others could, keeps what there is.

    Raises:
        UsageError: the tests of a version cannot be collected or run at all.
    """
    looks = Plan(rounds).looks()
    tests: Sequence[str] | None = None
    try:
        for number in range(1, rounds + 1):
            stopped = turns.run(number, tests)
            if stopped is not None:
                return stopped
            tests = look(number) if number in looks else tests
            # What has failed once has no result any more, and what is exact is known: more rounds
            # cost time only.
            before, after = turns.before.good(), turns.after.good()
            good = [test for test in in_both(turns) if not is_exact(before[test], after[test])]
            tests = tuple(test for test in (good if tests is None else tests) if test in good)
            if not tests:
                return None
    except KeyboardInterrupt:
        return "interrupted"
    return None


def in_both(turns: InTurns) -> tuple[str, ...]:
    """Return the tests that had no trouble in either version."""
    known = turns.before.good()
    return tuple(test for test in turns.after.good() if test in known)


class StrayedError(UsageError):
    """A version's tests ran code that is not its own."""

    def __init__(self, version: Version, strays: Sequence[Stray]) -> None:
        super().__init__(f"{version.name}: {strays[0].name} is {strays[0].file}")
        self.version = version
        self.strays = tuple(strays)


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """How far rounds have come. ``tests`` is None before the first collection.

    ``version`` is being measured. ``left_s`` is what all rounds that there may be will take at this
    pace; None before anything is done.
    """

    number: int
    next_look: int
    version: str
    done: int
    tests: int | None
    fraction: float
    left_s: float | None

    @property
    def is_over(self) -> bool:
        """Whether the version has just been measured."""
        return self.done == self.tests


@dataclass(slots=True)
class _Side:
    version: Version
    factory: WorkerFactory
    found: Sessions


class Turns:
    """Measures two versions with workers, both with the settings that the later one has.

    ``progress`` is told how far it is.
    """

    def __init__(
        self,
        before: Version,
        after: Version,
        *,
        rounds: int,
        progress: Callable[[RoundProgress], None],
    ) -> None:
        """Find out how the workers of each are started.

        Raises:
            UsageError: one of them has none of the tests.
        """
        self._rounds = rounds
        self._progress = progress
        self._sides = tuple(
            _Side(version, version.workers(chooses=version is after), Sessions(rounds))
            for version in (before, after)
        )
        self._start_s = time.monotonic()
        #: Tests that were run so far in all processes, and in the one under way.
        self._ran = self._running = 0

    @property
    def before(self) -> Sessions:
        """What the earlier version has measured so far."""
        return self._sides[0].found

    @property
    def after(self) -> Sessions:
        """What the later one has."""
        return self._sides[1].found

    def run(self, number: int, tests: Sequence[str] | None) -> str | None:
        """Measure both in turns; return why no other round can follow.

        Raises:
            UsageError: the tests of a version cannot be collected or run at all.
            StrayedError: tests ran code that is not of their version.
        """
        order = reversed(self._sides) if after_is_first(number) else self._sides
        for place, side in enumerate(order):
            good = in_both(self)
            asked = [test for test in tests if test in good] if tests is not None else None
            listener = _Listener(side.found, number, partial(self._tell, number, place, side))
            listener.alike, listener.word = False, "round"
            if side is self._sides[1]:
                listener.begin = self._begin
            _prepare(side, number)
            _run_session(side, listener, side.version.tests if asked is None else asked)
            if side.found.stopped is not None:
                return f"{side.found.stopped}, {side.version.name}"
            self._ran += self._running
            if number == 1 and place == 0 and not side.found.measured:
                return None  # nothing to compare the other side with
        return None

    def _begin(self, collected: Collected) -> None:
        """Let the earlier version have the settings, and the root folder, of the later one."""
        before, after = self._sides
        if before.version.is_narrowed:
            identities = collected.identities
            before.version.tests = tuple(identities.get(test, test) for test in collected.tests)
        workers = before.factory.plain
        if collected.root is not None:
            assert workers.versions is not None, "one of two"
            workers.versions = replace(workers.versions, settings=Path(collected.root))
            there = replace(before.version.move, root=after.version.move.tree)
            before.version.rootdir = there.path(collected.root)

    def _tell(self, number: int, place: int, side: _Side, done: int, of: int | None) -> None:
        self._running = done
        elapsed_s, ran = time.monotonic() - self._start_s, self._ran + done
        left_s = None
        if ran and of is not None:
            in_round = (of - done) + (1 - place) * of
            left_s = elapsed_s / ran * max(in_round + 2 * of * (self._rounds - number), 0)
        part = (place + (done / of if of else 0.0)) / 2
        self._progress(
            RoundProgress(
                number,
                next(look for look in Plan(self._rounds).looks() if look >= number),
                side.version.name,
                done,
                of,
                fraction=min((number - 1 + part) / self._rounds, 1.0),
                left_s=left_s,
            )
        )


def _prepare(side: _Side, number: int) -> None:
    """Let workers of the first round ask the rules, where a step is tried: once is enough."""
    workers = side.factory.plain
    if workers.versions is not None:
        asks = workers.versions.receipts and number == 1
        workers.versions = replace(workers.versions, checklist=asks)


def _run_session(side: _Side, listener: _Listener, tests: Sequence[str] | None) -> None:
    """Measure a side once, as a usual run does: a device pass if there is one, then the other."""
    factory, found = side.factory, side.found
    if factory.has_device_pass:
        device = factory.run_device_pass()
        if device.stopped is not None:
            found.stopped = f"stopped in round {listener.number} ({device.stopped})"
            return
        listener.complete = device.add_to
    kind = PassKind.AB if factory.first_kind is PassKind.WALL else factory.first_kind
    one = Pass(kind, factory.first(), listener, factory.settings.timeout)
    one.run(tests)
    if listener.strays:
        raise StrayedError(side.version, listener.strays)
    if one.stopped is not None:
        found.stopped = f"stopped in round {listener.number} (a worker {one.stopped})"
        return
    try:
        listener.close(one.left, () if listener.number == 1 else tests)
    except UsageError as error:
        message = f"{side.version.name}: {error}"
        raise UsageError(message) from error
    found.completed = listener.number


@dataclass(slots=True)
class _Listener(SessionListener):
    """Receives what a side's workers send, and stops them if they do not run that side's code."""

    strays: list[Stray] = field(default_factory=list)

    def receive(self, message: Message) -> None:
        """Take notice of what a worker says."""
        match message:
            case Strayed(modules=modules):
                strays = [Stray(*stray) for stray in modules]
                self.strays += [stray for stray in strays if stray not in self.strays]
                self.stop = "code of another version was loaded"
            case Collected(measured=None):
                wrong = "versions are compared one test at a time: leave out -n and --tx"
                raise UsageError(wrong)
            case _:
                SessionListener.receive(self, message)  # slots: there is no super()
