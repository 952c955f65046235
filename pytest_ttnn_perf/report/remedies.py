"""What to do about a verdict: the command that resolves it, ready to be copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.model.verdict import Outcome, Reason

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.rerun import Updating
    from pytest_ttnn_perf.model.verdict import Verdict


class Remedy(NamedTuple):
    """What to do, in words, and the command that does it where there is one."""

    advice: str
    command: str | None = None


def remedy(verdict: Verdict, updates: Updating) -> str | None:
    """Return what to do about a verdict in one line; None where nothing is to be done.

    ``updates`` are the commands that take the result of its test into the baselines.
    """
    found = remedy_of(verdict, updates)
    return ": ".join(filter(None, found)) if found else None


def remedy_of(verdict: Verdict, updates: Updating) -> Remedy | None:
    """Return the same with its command apart, ready to be copied."""
    match verdict.outcome:
        case Outcome.WITHIN | Outcome.SHIFTED:
            return None
        case Outcome.IMPROVED:
            return Remedy("keep it with", updates.keep)
        case Outcome.NO_BASELINE:
            return Remedy("record it with", updates.record)
        case Outcome.NOT_COMPARABLE | Outcome.REGRESSED:
            return _change_remedy(verdict, updates)
        case Outcome.TOO_NOISY:
            return _noise_remedy(verdict, updates)
        case Outcome.NO_DATA:
            return Remedy(_data_remedy(verdict))


def _change_remedy(verdict: Verdict, updates: Updating) -> Remedy:
    if verdict.reason is Reason.OTHER_KEY:
        return Remedy("record it with", updates.record)
    if verdict.reason is Reason.ABSOLUTE_LIMIT:
        return Remedy("mend the model, or change the limit in the test; no update accepts this")
    if verdict.reason is Reason.OTHER_DEFINITION:
        return Remedy(
            "correct the metric's definition in the test, or accept it with", updates.accept
        )
    return Remedy("accept it with", updates.accept)


def _noise_remedy(verdict: Verdict, updates: Updating) -> Remedy:
    if verdict.reason is Reason.SAMPLES_DIFFER:
        return Remedy('make it repeatable, or record it with better="lower" or "higher"')
    advice = (
        "raise iterations= in the marker or quiet the machine; then delete the test from its "
        "baseline file and record it with"
    )
    return Remedy(advice, updates.record)


def _data_remedy(verdict: Verdict) -> str:
    match verdict.reason:
        case Reason.RAISED:
            return "mend the test; what it measured before is in the run record"
        case Reason.NOTHING_RECORDED:
            return "call ttnn_perf.measure(...) or ttnn_perf.record(...) in the test"
        case Reason.LOST:
            return "its log, named above, has what it printed; with -s also what tests did"
        case Reason.NOT_CONFIRMED:
            return "run it again; --ttnn-perf-confirm 0 judges by one measurement"
        case Reason.NOT_POSITIVE:
            return 'mend what produces the number; what may be zero is recorded with kind="count"'
        case Reason.NOT_RECORDED:
            return "record it again, or delete it from the baseline file"
        case _:
            return "mend what produces the number; nothing was stored"
