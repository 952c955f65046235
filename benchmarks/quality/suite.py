"""One run of the gate over whole suites: votes on the machine, controls, confirm passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import expm1, log1p
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.quality.ours import (
    IMPROVED,
    REGRESSED,
    TOO_NOISY,
    WITHIN,
    Band,
    outcomes,
    settled,
)
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY as POLICY
from pytest_ttnn_perf.gate.machine import Move, bears_out, machine_move
from pytest_ttnn_perf.records.verdict import Shift

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.quality import Array

#: Confirm passes that a suspect may take, and one more where a shift was refuted.
PASSES = 2
#: The first pass and all that may follow it.
MEASUREMENTS = 2 + PASSES
MOST_CONTROLS, LEAST_CONTROLS = 8, 3
#: Controls that take no longer than this, all together, are not worth saving.
CHEAP_S = 1.0


@dataclass
class Night:
    """What one run made of some suites; by suite, by test, or by timing."""

    #: Tests that fail, REGRESSED or TOO_NOISY; and the latter alone.
    red: Array
    noisy: Array
    #: Whether the machine is found to be slower as a whole.
    shifted: Array
    #: What becomes part of the baseline: the first measurement, or all as a new centre.
    appended: Array
    accepted: Array
    #: Tests measured again, controls included, by suite.
    again: Array


def judge(of: Band, changes: Sequence[Array], seconds: Array, *, updates: bool) -> Night:
    """Judge one run of suites.

    Bands and changes are (suites, tests, timings), a change array for each measurement that may be
    taken; ``seconds`` (suites, tests) is how long tests take.
    """
    first = changes[0]
    flat = Band(*(part.ravel() for part in of))
    outcome = outcomes(flat, first.reshape(-1, 1)).reshape(first.shape)
    limit = np.where(outcome == IMPROVED, of.gain, of.limit)
    limit = np.where(outcome == TOO_NOISY, np.maximum(of.limit, of.noise), limit)
    vote, vote_limit = middle_timing(first, limit)
    move, worse = _shifts(vote, vote_limit, (outcome == REGRESSED).any(axis=(1, 2)))
    blocked = ((outcome == REGRESSED) | (outcome == TOO_NOISY)).any(axis=2)
    near = (first > POLICY.screen * of.limit) & (outcome != TOO_NOISY)
    better = (outcome == IMPROVED) & updates
    moved = np.isfinite(move)
    night = Night(
        blocked,
        (outcome == TOO_NOISY).any(axis=2),
        worse,
        (outcome == WITHIN) & ~moved[:, None, None] & ~blocked[..., None],
        np.zeros_like(near),
        np.zeros(len(first), dtype=int),
    )
    for at in np.nonzero((near | better).any(axis=(1, 2)) | worse)[0].tolist():
        run = _Run(
            Band(*(part[at] for part in of)), limit[at], outcome[at].copy(), seconds[at],
            [each[at] for each in changes], vote[at], vote_limit[at],
            updates=updates,
        )  # fmt: skip
        run.confirm(float(move[at]) if moved[at] else None)
        run.tell(night, at)
    return night


def middle_timing(changes: Array, limits: Array) -> tuple[Array, Array]:
    """Return each test's timing in the middle, seen against its limit; of two the nearer to 0."""
    count = changes.shape[-1]
    if count == 1:
        return changes[..., 0], limits[..., 0]
    against = changes / limits
    order = np.argsort(against, axis=-1, kind="stable")
    low, high = (order[..., middle, None] for middle in ((count - 1) // 2, count // 2))
    nearer = np.abs(np.take_along_axis(against, high, -1)) < np.abs(
        np.take_along_axis(against, low, -1)
    )
    at = np.where(nearer, high, low)
    return np.take_along_axis(changes, at, -1)[..., 0], np.take_along_axis(limits, at, -1)[..., 0]


def _shifts(vote: Array, limit: Array, beyond: Array) -> tuple[Array, Array]:
    """Return how suites moved as a whole, NaN where they did not, and which of them got slower."""
    tests = vote.shape[1]
    if tests < POLICY.least_shift_tests:
        return np.full(len(vote), np.nan), np.zeros(len(vote), dtype=bool)
    share = POLICY.shift_share if tests >= POLICY.shift_tests else 1.0
    slower = (vote > limit / 2).sum(axis=1) >= share * tests
    faster = ((-vote > limit / 2).sum(axis=1) >= share * tests) & ~slower
    change = np.median(vote, axis=1)
    # Slower, and none beyond its limit, is noise that limits are for.
    believed = (slower & (beyond | (change <= 0))) | faster
    return np.where(believed, change, np.nan), believed & (change > 0)


@dataclass
class _Run:
    """One suite in one run; arrays are (tests, timings) or by test."""

    of: Band
    limit: Array
    outcome: Array
    seconds: Array
    changes: list[Array]
    vote: Array
    vote_limit: Array
    updates: bool
    shift: Shift | None = None
    again: int = 0
    #: Timings that a shift explains, confirm passes that each has had, its measurements, the least
    #: that a confirm pass leaves of what is worse, and what the machine did meanwhile.
    explained: Array = field(init=False)
    counts: Array = field(init=False)
    taken: Array = field(init=False)
    least: Array = field(init=False)
    moves: Array = field(init=False)

    def __post_init__(self) -> None:
        self.explained = np.zeros_like(self.outcome, dtype=bool)
        self.counts = np.zeros_like(self.outcome)
        self.taken = np.zeros((*self.outcome.shape, 1 + PASSES))
        self.moves = np.zeros_like(self.taken)
        self.least = np.full(self.outcome.shape, np.inf)

    def confirm(self, move: float | None) -> None:
        """Measure what is in question again, as often as the package does."""
        if move is not None:
            self.shift = Shift(expm1(move), 0, 0)
            beyond = self.outcome == REGRESSED
            self.explained = beyond & (self.changes[0] - move <= self.of.limit) & (move > 0)
        doubted = self.shift is not None and self.shift.worse
        number, passes = 0, PASSES
        while number < passes:
            asked = self.in_question()
            suspects = asked.any(axis=1)
            if not (suspects.any() or doubted):
                return
            number += 1
            controls = self._controls(suspects)
            self.again += int(suspects.sum()) + len(controls)
            now = self._move_of(controls, number)
            if doubted and self.shift is not None:
                doubted = False
                if now is not None and not bears_out(self.shift, now):
                    self.shift = None
                    self.explained[:] = False
                    passes = 1 + PASSES
            asked = self.in_question()
            moves = (self._first_move(asked), now)
            if now is None and self.shift is None:
                moves = (None, None)  # nothing to compare the machine with
            otherwise = self.shift.change if self.shift else 0.0
            first, later = (otherwise if each is None else each for each in moves)
            self._take(asked & suspects[:, None], number, first, later)

    def in_question(self) -> Array:
        """Return the timings that the package would measure again."""
        shift = log1p(max(self.shift.change, 0.0)) if self.shift else 0.0
        at_first = self.changes[0] - shift > POLICY.screen * self.of.limit
        again = self.least > POLICY.agree * self.of.limit
        near = np.where(self.counts == 0, at_first, again)
        by_numbers = (self.outcome == WITHIN) | (self.outcome == REGRESSED)
        found = near & by_numbers & ~self.explained
        if self.updates and self.shift is None:
            found |= self.outcome == IMPROVED
        return found & (self.counts < PASSES)

    def _controls(self, suspects: Array) -> list[int]:
        shifted = self.explained.any(axis=1)
        able = ~suspects & (self.counts == 0).all(axis=1) & self._steady()
        cost = self.seconds * self.vote_limit**2
        order = np.lexsort((cost, shifted))
        order = order[able[order]]
        left = max(float(self.seconds[suspects].sum()), CHEAP_S)
        # Beside tests that moved with the machine, those that did not say more.
        unmoved = order[~shifted[order]]
        chosen: list[int] = []
        for test in (unmoved if len(unmoved) >= LEAST_CONTROLS else order).tolist():
            took = float(self.seconds[test])
            if len(chosen) < LEAST_CONTROLS or took <= left:
                chosen.append(test)
                left -= took
        return chosen[:MOST_CONTROLS]

    def _steady(self) -> Array:
        """Return the tests that can tell of the machine: one that has changed tells of itself."""
        return ((self.outcome == WITHIN) | self.explained).all(axis=1)

    def _move_of(self, controls: list[int], number: int) -> float | None:
        changes, limits = middle_timing(self.changes[number][controls], self.limit[controls])
        return _moved(changes, limits)

    def _first_move(self, asked: Array) -> float | None:
        steady = ~asked.any(axis=1) & self._steady()
        return _moved(self.vote[steady], self.vote_limit[steady])

    def _take(self, asked: Array, number: int, first: float, now: float) -> None:
        tests, timings = np.nonzero(asked)
        if not len(tests):
            return
        new = self.counts[asked] == 0
        self.taken[tests, timings, 0] = self.changes[0][asked]
        at_first = log1p(round(first, 5))
        self.moves[tests, timings, 0] = np.where(new, at_first, self.moves[tests, timings, 0])
        self.counts[asked] += 1
        measured, move = self.changes[number][asked], log1p(round(now, 5))
        self.taken[tests, timings, self.counts[asked]] = measured
        self.moves[tests, timings, self.counts[asked]] = move
        left = measured - np.maximum(np.minimum(move, measured), 0.0)
        self.least[asked] = np.minimum(self.least[asked], left)
        for count in range(1, PASSES + 1):
            same = asked & (self.counts == count)
            if same.any():
                self._judge_again(same, 1 + count)

    def _judge_again(self, cells: Array, measurements: int) -> None:
        part = Band(*(each[cells] for each in self.of))
        taken, moves = self.taken[cells][:, :measurements], self.moves[cells][:, :measurements]
        self.outcome[cells] = outcomes(part, taken, moves)
        if self.shift is not None and self.shift.worse:
            # What is cleared, and beyond its limit all the same, is as slow as the machine.
            change, move = settled(part, taken, moves)
            cleared = self.outcome[cells] == WITHIN
            self.explained[cells] = cleared & (change + move > part.limit)

    def tell(self, night: Night, at: int) -> None:
        """Say what came out, and what is written."""
        worse = ((self.outcome == REGRESSED) & ~self.explained) | (self.outcome == TOO_NOISY)
        night.red[at] = worse.any(axis=1)
        night.noisy[at] = (self.outcome == TOO_NOISY).any(axis=1)
        night.shifted[at] = self.shift is not None and self.shift.worse
        night.again[at] = self.again
        writes = ~night.red[at][:, None] & (self.shift is None)
        far = (self.counts > 0) & (np.abs(self.changes[0]) > log1p(POLICY.too_noisy))
        night.appended[at] = writes & (self.outcome == WITHIN) & ~far
        night.accepted[at] = writes & (self.outcome == IMPROVED) & self.updates


def _moved(changes: Array, limits: Array) -> float | None:
    if not len(changes):
        return None
    # The package looks at the two medians and the count only: so many that are alike tell the same.
    usual = Move(float(np.median(changes)), float(np.median(limits)))
    return machine_move([usual] * len(changes))
