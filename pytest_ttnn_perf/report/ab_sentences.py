"""What a comparison of two versions says in words."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.model.verdict import Outcome, Reason
from pytest_ttnn_perf.report.numbers import format_fraction, format_value
from pytest_ttnn_perf.report.sentences import change_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.model.ab import Compared, StrayCode
    from pytest_ttnn_perf.model.verdict import Verdict

WORKING_TREE: Final = "working tree"


def ab_sentence(compared: Compared, ref: str) -> str:
    """Say what was found for one metric, against the commit that is called ``ref``."""
    verdict = compared.paired.verdict
    name = verdict.metric.name
    if verdict.outcome is Outcome.NO_DATA:
        return f"{name} was not recorded in every round"
    if verdict.reason is Reason.NEW_METRIC:
        return f"{name} is recorded in the {WORKING_TREE} only"
    if verdict.reason is Reason.NOT_RECORDED:
        return f"{name} is recorded in {ref} only"
    if compared.obstacle is not None:
        what = compared.obstacle
        return (
            f"{name} cannot be compared: {what.field} is {what.after!r}, in {ref} {what.before!r}"
        )
    if verdict.reason is Reason.SAMPLES_DIFFER:
        return f"{name} differs between rounds ({verdict.detail}): it must not change"
    now = format_value(verdict.metric, verdict.observed, beside=verdict.centre)
    start = f"{name} {now}, {ref} {format_value(verdict.metric, verdict.centre)}"
    if verdict.reason is Reason.EXPLAINS:
        return f"{start}: it explains {verdict.detail}, which is judged"
    if verdict.reason is Reason.VALUE_CHANGED:
        return f"{start}: it must not change"
    return f"{start}: {change_in_words(verdict)}{_judged(compared, verdict)}"


def _judged(compared: Compared, verdict: Verdict) -> str:
    low, high = compared.paired.low, compared.paired.high
    rounds = counted(compared.rounds, "round")
    if low is None or high is None:
        limit = format_fraction(verdict.limit_as_read) if verdict.limit else "no change"
        return f", limit {limit}"
    if verdict.outcome is Outcome.TOO_NOISY:
        reach = format_fraction(verdict.limit_as_read)
        return f"; too noisy to judge: after {rounds} a change of {reach} could hide"
    return f", limit {format_fraction(verdict.limit_as_read)} ({rounds})"


def stray_text(stray: StrayCode, *, side: str, command: Sequence[str]) -> str:
    """Say that a side ran code that is not its own, and what to do; ``command`` is the user's."""
    others = counted(stray.count - 1, "other module")
    more = f" and {others}" if stray.count > 1 else ""
    whose = "that is installed" if stray.installed else f"of the {WORKING_TREE}"
    of = f"the {side}" if side == WORKING_TREE else side
    again = shlex.join(command)
    points = "what is installed comes first"
    if not stray.installed:
        points = "an editable install, or a path, points there"
    lines = [
        f"tests of {of} ran code {whose}: {stray.name} from {stray.file}{more}",
        f"  so it would be compared with itself: {points}",
        f"  let each side find its own first: PYTHONPATH={shlex.quote(stray.folder)} {again}",
    ]
    if not stray.installed:
        shared = str(PurePath(stray.file).parent)
        lines.append(f"  or, if both are to use the same: {again} --same {shlex.quote(shared)}")
    return "\n".join(lines)
