"""Outputs that agree less than they did."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pytest_ttnn_perf.checklist.accuracy import NO_PCC, pccs, worst_of
from pytest_ttnn_perf.checklist.rule import Rule, clean, found, limit, not_measured
from pytest_ttnn_perf.model.finding import Evidence, Severity
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.subject import Subject

#: Less than any drop that is meant: 0.992 - 0.99 is a little more than 0.002 in binary.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class PccDropped(Rule):
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
    The worst sample of every PCC of the test against the fact of its name and `_baseline`, as
    `pcc_baseline`: the median of the accepted sessions. A `tolerance` for the PCC in the marker
    replaces the limit.
    """

    code: ClassVar[str] = "TTP904"
    name: ClassVar[str] = "pcc-dropped"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[Input, ...]] = (Input.TEST,)

    drop: float = limit(0.002, unit="PCC", source="the gate's own limit for accuracies")

    def check(self, subject: Subject) -> Answer:
        """Compare every PCC with its baseline; the largest drop beyond its limit comes first."""
        assert subject.observation is not None
        if not pccs(subject.observation):
            return not_measured(NO_PCC)
        drops = sorted(self._drops(subject), key=lambda each: (each[2] - each[1], each[0]))
        if not drops:
            return not_measured("there is no baseline of a PCC to compare with")
        _, drop, allowed = drops[0]
        short = [each for each in drops if each[1] > each[2] + _ROUNDING]
        if not short:
            return clean(drop, limit=allowed, unit="PCC")
        return found(
            "; ".join(f"{name} dropped by {drop:.6f}" for name, drop, _ in short),
            value=drop,
            limit=allowed,
            unit="PCC",
            evidence=(Evidence(name, drop, "PCC") for name, drop, _ in short),
        )

    def _drops(self, subject: Subject) -> Iterator[tuple[str, float, float]]:
        """Yield name, drop and limit of the PCCs that are numbers and have a baseline."""
        assert subject.observation is not None
        for observed in pccs(subject.observation):
            name, tolerance = observed.metric.name, observed.limits.tolerance
            before, now = subject.facts.get(f"{name}_baseline"), worst_of(observed)
            if isinstance(before, (int, float)) and not math.isnan(now):
                yield name, before - now, self.drop if tolerance is None else tolerance
