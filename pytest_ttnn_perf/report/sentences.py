"""A verdict in one sentence. Every reporter uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.model.metric import Better, Kind
from pytest_ttnn_perf.model.verdict import Outcome, Reason
from pytest_ttnn_perf.report.numbers import format_change, format_fraction, format_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_ttnn_perf.model.verdict import Verdict

#: Worse and better, in the words that fit a metric.
_WORDS: Final = {
    (Kind.TIME, Better.LOWER): ("slower", "faster"),
    (Kind.TIME, Better.HIGHER): ("shorter", "longer"),
}
_DIRECTION: Final = {
    Better.LOWER: ("higher", "lower"),
    Better.HIGHER: ("lower", "higher"),
    Better.EQUAL: ("different", "different"),
}


def sentence(verdict: Verdict) -> str:
    """Say what the gate found for one metric: found against expected, with the limit."""
    if verdict.outcome is Outcome.NO_DATA:
        return _no_data(verdict)
    now = format_value(verdict.metric, verdict.observed, beside=verdict.centre)
    start = f"{verdict.metric.name} {now}"
    if verdict.reason is not None and verdict.outcome is not Outcome.SHIFTED:
        return f"{start}{_REASONED[verdict.reason](verdict)}"
    then = format_value(verdict.metric, verdict.centre)
    compared = f"{start}, baseline {then}: {change_in_words(verdict)}"
    if verdict.outcome is Outcome.TOO_NOISY:
        return f"{compared}; too noisy to judge: noise alone reaches {_limit(verdict)}"
    shifted = ": only as slow as the machine" if verdict.outcome is Outcome.SHIFTED else ""
    return f"{compared}, limit {_limit(verdict)}{shifted} ({_basis(verdict)})"


def change_in_words(verdict: Verdict) -> str:
    """Say how much better or worse a metric is."""
    worse, better = _WORDS.get(
        (verdict.metric.kind, verdict.metric.better), _DIRECTION[verdict.metric.better]
    )
    if verdict.change is None:
        return "up from none"
    change = verdict.change_as_read
    if format_change(change) == format_change(0):
        return "no change"
    return f"{format_fraction(change)} {worse if verdict.change > 0 else better}"


def _limit(verdict: Verdict) -> str:
    return "no change" if not verdict.limit else format_fraction(verdict.limit_as_read)


def _basis(verdict: Verdict) -> str:
    samples = counted(verdict.samples, "sample")
    sessions = counted(verdict.sessions, "session")
    basis = f"{samples} against {sessions}"
    if verdict.confirmed:
        medians = ", ".join(format_value(verdict.metric, value) for value in verdict.confirmed)
        basis += f"; confirm passes: {medians}"
    return basis + ("; provisional baseline" if verdict.provisional else "")


def _no_data(verdict: Verdict) -> str:
    name = verdict.metric.name
    detail = verdict.detail
    match verdict.reason:
        case Reason.RAISED:
            return f"nothing was judged: the test raised {detail}"
        case Reason.NOTHING_RECORDED:
            return "nothing was judged: the test recorded no metric"
        case Reason.NOT_RECORDED:
            return f"{name} is in the baseline but the test did not record it"
        case Reason.NO_SAMPLES:
            return f"{name} has no samples" + (f": {detail}" if detail else "")
        case Reason.NOT_POSITIVE:
            return f"{name} is zero or less: {detail}"
        case Reason.NOT_CONFIRMED:
            return f"{name}{_seen_once(verdict)} could not be confirmed: {detail}"
        case Reason.LOST:
            return f"nothing was judged: its worker {detail}"
        case _:
            return f"{name} is not a finite number" + (f": {detail}" if detail else "")


def _seen_once(verdict: Verdict) -> str:
    if verdict.observed is None:
        return ""
    now = format_value(verdict.metric, verdict.observed, beside=verdict.centre)
    if verdict.centre is None:
        return f" {now}"
    then = format_value(verdict.metric, verdict.centre)
    return f" {now}, baseline {then}: {change_in_words(verdict)}, which"


def _bound(verdict: Verdict) -> str:
    bound, value = verdict.bound, verdict.observed
    below = bound is not None and value is not None and value < bound
    limit = format_value(verdict.metric, bound)
    note = f" ({verdict.detail})" if verdict.detail else ""
    return f" is {'below' if below else 'above'} its limit {limit}{note}"


def _beside_baseline(verdict: Verdict) -> str:
    if verdict.centre is None:
        return ", no baseline"
    then = f", baseline {format_value(verdict.metric, verdict.centre)}"
    return then if verdict.change is None else f"{then}: {change_in_words(verdict)}"


def _value_changed(verdict: Verdict) -> str:
    return f", baseline {format_value(verdict.metric, verdict.centre)}: it must not change"


_REASONED: Final[Mapping[Reason, Callable[[Verdict], str]]] = {
    Reason.ABSOLUTE_LIMIT: _bound,
    Reason.VALUE_CHANGED: _value_changed,
    Reason.SAMPLES_DIFFER: lambda v: f" differs between samples ({v.detail}): it must not change",
    Reason.GONE: lambda v: f", baseline {format_value(v.metric, v.centre)}: no such op runs now",
    Reason.EXPLAINS: lambda v: f"{_beside_baseline(v)}; it explains {v.detail}, which is judged",
    Reason.NEW_TEST: lambda _: " has no baseline: the test is new",
    Reason.NEW_METRIC: lambda _: " has no baseline: the metric is new in this test",
    Reason.OTHER_KEY: lambda v: f" has no baseline on this hardware; there are ones on: {v.detail}",
    Reason.OTHER_CONFIGURATION: lambda v: f" was measured in another configuration: {v.detail}",
    Reason.OTHER_SOURCE: lambda v: f" comes from another source: {v.detail}",
    Reason.OTHER_DEFINITION: lambda v: f" is defined differently: {v.detail}",
}
