"""Whether most tests moved together: then the machine changed, not the code of each of them."""

from __future__ import annotations

from math import expm1, log, log1p
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.gate.policy import DEFAULT_POLICY, Policy
from pytest_ttnn_perf.gate.statistics import median
from pytest_ttnn_perf.model.metric import Better
from pytest_ttnn_perf.model.shift import Shift
from pytest_ttnn_perf.model.verdict import Outcome, Reason, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The greatest gain that has a logarithm: what is better beyond any measure is told as -1.
_GREATEST_GAIN: Final = -1 + 2**-53


class _Vote(NamedTuple):
    """How far a test moved and how far it may; natural logarithms, positive is worse."""

    change: float
    limit: float


def shift_of(
    tests: Iterable[Sequence[Verdict]], *, policy: Policy = DEFAULT_POLICY
) -> Shift | None:
    """Return the shift that the verdicts of a run's tests tell of; None for none.

    One vote per test, that of its timing which moved most for its limit: a test with many metrics
    has no more to say about the machine than one with few.
    """
    votes = [vote for verdicts in tests if (vote := _vote(verdicts)) is not None]
    if len(votes) < policy.shift_tests:
        return None
    for sign in (1, -1):
        moved = sum(1 for vote in votes if sign * vote.change > vote.limit / 2)
        if moved >= policy.shift_share * len(votes):
            change = median(vote.change for vote in votes)
            return Shift(expm1(change), moved, len(votes))
    return None


def explained(verdicts: Iterable[Verdict], shift: Shift) -> tuple[Verdict, ...]:
    """Return the verdicts with those as SHIFTED that are only as slow as the machine.

    A test that is worse than that stays a suspect. Measured again, it is measured on the same
    machine: the shift is taken off each of its measurements, and one within the limit clears it.
    """
    return tuple(_explained(verdict, log1p(shift.change)) for verdict in verdicts)


def _explained(verdict: Verdict, shift: float) -> Verdict:
    by_numbers = verdict.outcome is Outcome.REGRESSED and verdict.reason is None
    moved = _moved(verdict)
    if not by_numbers or moved is None or shift <= 0:
        return verdict
    if min((moved.change, *_confirmed_changes(verdict))) - shift > moved.limit:
        return verdict
    return verdict._replace(outcome=Outcome.SHIFTED, reason=Reason.SHIFTED)


def _confirmed_changes(verdict: Verdict) -> tuple[float, ...]:
    """Return how far each confirm pass was from the baseline, as the first measurement is told."""
    if not verdict.centre:
        return ()
    sign = -1.0 if verdict.metric.better is Better.HIGHER else 1.0
    return tuple(sign * log(value / verdict.centre) for value in verdict.confirmed)


def _vote(verdicts: Sequence[Verdict]) -> _Vote | None:
    moves = [move for verdict in verdicts if (move := _moved(verdict)) is not None]
    return max(moves, key=lambda move: abs(move.change) / move.limit, default=None)


def _moved(verdict: Verdict) -> _Vote | None:
    if not verdict.metric.compared_by_ratio or verdict.change is None or not verdict.limit:
        return None
    return _Vote(log1p(max(verdict.change, _GREATEST_GAIN)), log1p(verdict.limit))
