"""The one figure of an analysis that an overview shows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.finding import AnalysisOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.records.finding import Analysis, Figure


_OF_A_STEP: Final = "of a step"
#: The unit of what devices wait.
_OF_THE_TIME: Final = "of the time"
#: Less than this reads as 0.0 %.
_LEAST: Final = 0.0005


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure of the whole, or the first row of the ``section`` that it is from.

    ``at_most``: it is an upper bound.
    """

    label: str
    value: float
    unit: str
    section: str = ""
    at_most: bool = False

    @property
    def weight(self) -> float:
        """What part of the time it is, to compare it with others; 0 for bounds and all else."""
        is_time = self.unit in {_OF_A_STEP, _OF_THE_TIME} and not self.at_most
        return self.value if is_time else 0.0


def headline_of(analysis: Analysis, *, replayed: bool) -> Headline | None:
    """Return the main figure of an analysis; None where it has none.

    First what weighs most in a step; then the first other fraction that is not zero; then the first
    figure, where none is a fraction; else what weighs most in the first section. Unless a region is
    ``replayed``, the profiler makes its gaps longer.
    """
    found = _found(analysis)
    if found is None or replayed or found.unit != _OF_THE_TIME:
        return found
    return replace(found, at_most=True)


def _found(analysis: Analysis) -> Headline | None:
    if analysis.outcome is not AnalysisOutcome.MEASURED:
        return None
    fractions = [figure for figure in analysis.figures if is_fraction(figure.unit)]
    told = [figure for figure in fractions if figure.value >= _LEAST]
    of_a_step = [figure for figure in told if figure.unit == _OF_A_STEP]
    if of_a_step:
        return _headline(max(of_a_step, key=lambda figure: figure.value))
    others = [] if fractions else [figure for figure in analysis.figures if figure.value]
    if told or others:
        return _headline((told or others)[0])
    return next(_tops(analysis), None) or next(map(_headline, analysis.figures), None)


def _headline(figure: Figure) -> Headline:
    return Headline(figure.label, figure.value, figure.unit)


def _tops(analysis: Analysis) -> Iterator[Headline]:
    for section in analysis.sections:
        for row in section.rows[:1]:
            if row.share is None:
                yield Headline(row.label, row.value, section.unit, section.heading)
            else:
                yield Headline(row.label, row.share, section.of, section.heading)


def is_fraction(unit: str) -> bool:
    """Tell whether values of a unit are fractions, which are read in per cent."""
    return unit.startswith(("of ", "above "))
