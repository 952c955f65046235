"""Shift of the whole machine."""

from __future__ import annotations

from math import expm1, log, log1p, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import LARGEST
from pytest_ttnn_perf.core.metric import Better, median
from pytest_ttnn_perf.core.observation import Outcome, Reason, Shift, Verdict
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY, Policy
from pytest_ttnn_perf.gate.ratios import MEDIAN_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ttnn_perf.core.metric import Source


#: The greatest gain that has a logarithm: what is better beyond any measure is told as -1.
_GREATEST_GAIN: Final = -1 + 2**-53


class Move(NamedTuple):
    """A change and its limit as natural logarithms; positive is worse."""

    change: float
    limit: float


def shift_of(
    tests: Iterable[Sequence[Verdict]], *, policy: Policy = DEFAULT_POLICY
) -> Shift | None:
    """Return the shift of the machine by votes of its tests.

    One vote per test, that of its timing in the middle: a test with many metrics has no more to
    say about the machine than one with few, and the furthest of many is far out by chance.
    """
    votes = [vote for verdicts in tests if (vote := vote_of(verdicts)) is not None]
    if len(votes) < policy.least_shift_tests:
        return None
    share = policy.shift_share if len(votes) >= policy.shift_tests else 1.0
    for sign in (1, -1):
        moved = sum(1 for vote in votes if sign * vote.change > vote.limit / 2)
        if moved >= share * len(votes):
            change = median(vote.change for vote in votes)
            return Shift(expm1(change), moved, len(votes))
    return None


def bears_out(shift: Shift, move: float) -> bool:
    """Return whether the ``move`` of controls confirms a shift.

    Half of it is enough: where the code is to blame, tests that do not share it have not moved.
    """
    return log1p(move) >= log1p(shift.change) / 2


def machine_move(controls: Sequence[Move], *, policy: Policy = DEFAULT_POLICY) -> float | None:
    """Return the change of the machine, as a fraction, by controls.

    The median of their changes, as far as it stands out from its own error: what is within that is
    no news of the machine, and what is far beyond is believed whole. None without controls.
    """
    if not controls:
        return None
    move = median([control.change for control in controls])
    deviation = median([control.limit for control in controls]) / policy.deviations
    error = MEDIAN_ERROR * deviation / sqrt(len(controls))
    # By James and Stein: no estimate of several such moves is nearer to them on the whole.
    return _fraction(move - error * error / move) if abs(move) > error else 0.0


def explain_by_shift(verdicts: Iterable[Verdict], shift: Shift) -> tuple[Verdict, ...]:
    """Mark verdicts that are only as slow as the machine.

    A first measurement that is worse than that stays a suspect. Once measured again, it is judged
    beside controls on the same machine, and that verdict stands: what it cleared and is beyond its
    limit all the same is as slow as they are.
    """
    return tuple(_explain_by_shift(verdict, log1p(shift.change)) for verdict in verdicts)


def _explain_by_shift(verdict: Verdict, shift: float) -> Verdict:
    move = _move_of(verdict)
    if move is None or shift <= 0 or verdict.reason is not None:
        return verdict
    if verdict.confirmed:
        machine = log1p(verdict.machine or 0.0)
        explained = verdict.outcome is Outcome.WITHIN and move.change + machine > move.limit
    else:
        beyond = verdict.outcome is Outcome.REGRESSED
        explained = beyond and move.change - shift <= move.limit
    if not explained:
        return verdict
    return replace(verdict, outcome=Outcome.SHIFTED, reason=Reason.SHIFTED)


def vote_of(verdicts: Iterable[Verdict], source: Source | None = None) -> Move | None:
    """Return the median move of a test, of all or one source."""
    own = (v for v in verdicts if source is None or v.metric.source is source)
    return middle_of(move for verdict in own if (move := _move_of(verdict)) is not None)


def middle_of(moves: Iterable[Move]) -> Move | None:
    """Return the median move relative to its limit; of two the smaller."""
    ordered = sorted(moves, key=_against_limit)
    middles = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    return min(middles, key=lambda move: abs(_against_limit(move)), default=None)


def _against_limit(move: Move) -> float:
    return move.change / move.limit


def _move_of(verdict: Verdict) -> Move | None:
    if not verdict.metric.compared_by_ratio or verdict.change is None or not verdict.limit:
        return None
    return Move(log1p(max(verdict.change, _GREATEST_GAIN)), log1p(verdict.limit))


def moved_again(verdict: Verdict, samples: Sequence[float]) -> Move | None:
    """Return the move of a metric that was measured again."""
    if not verdict.metric.compared_by_ratio or not verdict.limit or not verdict.centre:
        return None
    if not samples or not all(0 < sample <= LARGEST for sample in samples):
        return None
    sign = -1.0 if verdict.metric.better is Better.HIGHER else 1.0
    return Move(sign * log(median(samples) / verdict.centre), log1p(verdict.limit))


#: Changes beyond this logarithm have no exponential.
_LARGEST_LOG: Final = 700.0


def _fraction(change: float) -> float:
    return expm1(min(change, _LARGEST_LOG))
