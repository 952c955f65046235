"""Outputs that agree less than they did."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.analysis.checklist.measurements import NO_PCC, pccs
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from pytest_ttnn_perf.records.observation import Observation


class _Drop(NamedTuple):
    """By how much a PCC is below its baseline, how much it may be, and what the gate says."""

    name: str
    drop: float
    allowed: float
    is_too_much: bool


@rule("TTP904", "pcc-dropped", Severity.ERROR, Input.TEST)
def pcc_dropped(observation: Observation, verdicts: tuple[Verdict, ...] | None) -> Answer:
    """A PCC dropped against the baseline.

    ## What it finds
    Correlations that are above their limit, and lower than when the baseline was accepted.

    ## Why it matters
    A limit of 0.99 lets a model fall from 0.9999 step by step without anybody noticing.

    ## What to do
    Find the change that cost it. If it is worth its price, accept it with
    `--ttnn-perf-update=all --ttnn-perf-reason "…"`.

    ## When it is no problem
    When the drop was decided on, and is accepted with its reason.

    ## Where it looks
    What the gate says of every PCC of the test: it compares the worst sample with the median of the
    accepted sessions. A drop of 0.002 is allowed; a `tolerance` for the PCC in the marker replaces
    that. The gate fails the test by itself, so the finding is not said twice.
    """
    names = {observed.metric.name for observed in pccs(observation)}
    if not names:
        return Answer.not_measured(NO_PCC)
    if verdicts is None:
        return Answer.not_measured("the test was not compared with its baseline")
    drops = sorted(_drops(verdicts, names), key=lambda pcc: (pcc.allowed - pcc.drop, pcc.name))
    if not drops:
        return Answer.not_measured("there is no baseline of a PCC to compare with")
    short = [pcc for pcc in drops if pcc.is_too_much]
    worst = (short or drops)[0]
    limit = Limit(worst.allowed, "PCC", "what the gate allows")
    if not short:
        return limit.clean(worst.drop)
    return limit.found(
        worst.drop,
        "; ".join(f"{pcc.name} dropped by {pcc.drop:.6f}" for pcc in short),
        (Evidence(pcc.name, pcc.drop, "PCC") for pcc in short),
    )


def _drops(verdicts: Iterable[Verdict], names: Container[str]) -> Iterator[_Drop]:
    """Yield the PCCs that the gate compared with a baseline."""
    for verdict in verdicts:
        centre, now = verdict.centre, verdict.observed
        if verdict.metric.name in names and centre is not None and now is not None:
            allowed = (verdict.limit or 0.0) * abs(centre)  # the verdict has it as a fraction
            is_too_much = verdict.outcome is Outcome.REGRESSED
            yield _Drop(verdict.metric.name, centre - now, allowed, is_too_much)
