"""Outputs that the gate lets pass, and that are several times as far off as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.measurements import NO_PCC, pccs
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ttnn_perf.records.observation import Observation


#: An error below this counts as this: few roundings make it, and no error at all has no multiple.
_LEAST_ERROR: Final = 1e-5
#: Errors are differences from 1, and multiples of them: what lies beyond these digits is rounding.
_ERROR_DIGITS, _TIMES_DIGITS = 12, 6


class _Growth(NamedTuple):
    """A PCC, its baseline, and what became of its error.

    ``times`` is against the session of the baseline that was furthest off, which decides;
    ``of_centre`` against the baseline that is shown.
    """

    name: str
    now: float
    then: float
    times: float
    of_centre: float

    @property
    def sentence(self) -> str:
        error, before = _error(self.now), _error(self.then)
        # What is below the least error is at most that, so the multiple is at least this.
        least = before < _LEAST_ERROR
        before = max(before, _LEAST_ERROR)
        grew = f"{'at least ' if least else ''}{_number(self.of_centre)} times the error"
        against = f"{error:.6f} against {'at most ' if least else ''}{before:.6f}"
        text = f"{self.name} {self.now:.6f}, baseline {self.then:.6f}: {grew} ({against})"
        if self.times == self.of_centre:
            return text
        return f"{text}, {_number(self.times)} times that of its worst session"


@rule("TTP907", "pcc-error-grew", Severity.WARNING, Input.TEST)
def pcc_error_grew(
    observation: Observation,
    verdicts: tuple[Verdict, ...] | None,
    *,
    growth: Limit = Limit(3, "times", "one bit of mantissa less is four times the error"),
    error: Limit = Limit(
        1e-4, "1 - PCC", "about seventy times what one rounding to bfloat16 leaves, 1.4e-6"
    ),
) -> Answer:
    """A PCC passes, and its error is several times that of the baseline.

    ## What it finds
    Correlations whose error, `1 - PCC`, has grown at least `growth` times and is now at least
    `error`, though the drop is small enough for the gate. From 0.9999 to 0.9980 is twenty times the
    error, and a drop of less than 0.002.

    ## Why it matters
    A good PCC is all in its last digits: near 1, a model can lose most of its precision before the
    drop is large enough to fail. Each bit of mantissa that a data format has less makes the error
    four times as large.

    ## What to do
    Find the change that cost it, such as a data format, a math fidelity or an approximation; if it
    is worth its price, accept it with `--ttnn-perf-update=all --ttnn-perf-reason "why"`. Until
    then no other update adds an accuracy of this test to its baseline, or it would be what the next
    run is compared with.

    ## When it is no problem
    When the loss was decided on, and is accepted with its reason. Where other inputs are drawn in
    every run, the sessions of the baseline show how much that moves the error; until there are
    several, seed the inputs, or waive the rule.

    ## Where it looks
    What the gate says of every PCC of the test that it lets pass: the worst sample against the
    median of the accepted sessions, and against the worst of these sessions; the error has grown by
    `growth` against both. An error below 0.00001 counts as 0.00001. A PCC that fails, because it is
    below its limit (TTP901) or dropped by too much (TTP904), is not reported again here.
    """
    names = {observed.metric.name for observed in pccs(observation)}
    if not names:
        return Answer.not_measured(NO_PCC)
    if verdicts is None:
        return Answer.not_measured("the test was not compared with its baseline")
    own = [verdict for verdict in verdicts if verdict.metric.name in names]
    passing = [verdict for verdict in own if verdict.outcome is not Outcome.REGRESSED]
    grown = sorted(_growths(passing), key=lambda pcc: (-pcc.times, pcc.name))
    if not grown:
        nothing = "there is no baseline of a PCC to compare with"
        return Answer.not_measured(
            nothing if len(passing) == len(own) else "the gate fails the PCC"
        )
    beyond = [pcc for pcc in grown if pcc.times >= growth.value]
    found = [pcc for pcc in beyond if _error(pcc.now) >= error.value]
    if found:
        worst, *others = found  # a test may check every layer of a model
        more = f"; {len(others)} more grew, too" if others else ""
        return growth.found(
            worst.times,
            worst.sentence + more,
            (Evidence(pcc.name, pcc.times, growth.unit) for pcc in found),
        )
    why_clean = f"an error below {error.value:g} is rounding" if beyond else None
    return growth.clean(grown[0].times, reason=why_clean)


def _growths(verdicts: Iterable[Verdict]) -> Iterator[_Growth]:
    """Yield the PCCs that were compared with a baseline; what is above 1 is no correlation."""
    for verdict in verdicts:
        now, then = verdict.observed, verdict.centre
        if now is None or then is None or max(now, then) > 1 + _LEAST_ERROR:
            continue
        worst = then if verdict.worst is None else verdict.worst
        yield _Growth(verdict.metric.name, now, then, _times(now, worst), _times(now, then))


def _error(pcc: float) -> float:
    return max(0.0, round(1 - pcc, _ERROR_DIGITS))


def _times(now: float, then: float) -> float:
    return round(_error(now) / max(_error(then), _LEAST_ERROR), _TIMES_DIGITS)


def _number(times: float) -> str:
    """Return a multiple with one decimal, unless that is zero."""
    return f"{times:.1f}".removesuffix(".0")
