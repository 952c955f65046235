"""What an analysis is: a name, the inputs it can use, and a look at them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.checklist.rule import Answer, not_measured
from pytest_ttnn_perf.model.analysis import Analysis, AnalysisOutcome
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ttnn_perf.model.analysis import Figure, Section
    from pytest_ttnn_perf.model.ops import OpTable
    from pytest_ttnn_perf.model.subject import Subject

_NOTHING: Final = "what there is to look at does not tell"
_NO_OPS: Final = "the capture has no op that ran on a device"


@dataclass(frozen=True, slots=True)
class Numbers:
    """What an analysis has to tell; sections without rows are left out."""

    figures: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """An analysis. ``look`` is asked if one of ``needs`` is there, and may answer why not.

    ``why`` says why nothing else will do, where that is not plain.
    """

    name: str
    title: str
    needs: tuple[Input, ...]
    look: Callable[[Subject], Numbers | Answer]
    why: str = ""

    def analysis(self, subject: Subject) -> Analysis:
        """Return what there is to tell of a subject."""
        known = _with_ops(subject)
        told = self._told(known)
        if isinstance(told, Answer):
            outcome = AnalysisOutcome(told.outcome.value)
            return Analysis(self.name, self.title, outcome, told.reason)
        of_capture = _notes(known.ops) if known.ops and Input.OPS in self.needs else ()
        return Analysis(
            self.name,
            self.title,
            figures=told.figures,
            sections=tuple(section for section in told.sections if section.rows),
            notes=(*told.notes, *of_capture),
        )

    def _told(self, subject: Subject) -> Numbers | Answer:
        if not any(map(subject.has, self.needs)):
            return not_measured(self._why_absent(subject))
        told = self.look(subject)
        if isinstance(told, Answer) or told.figures or any(each.rows for each in told.sections):
            return told
        return not_measured("; ".join(told.notes) or _NOTHING)

    def _why_absent(self, subject: Subject) -> str:
        known = next((each for each in self.needs if each in subject.absent), None)
        if known is not None:
            return subject.absent[known]
        needed = " or ".join(each.value for each in self.needs)
        return f"needs {needed}{self.why and f': {self.why}'}"


def _with_ops(subject: Subject) -> Subject:
    """Return a subject whose op table, if it has one, has ops of a device."""
    if subject.ops is None or subject.ops.devices:
        return subject
    return replace(subject, ops=None, absent={**subject.absent, Input.OPS: _NO_OPS})


def _notes(table: OpTable) -> Iterator[str]:
    """Yield what is to be known of a capture, whatever is looked at."""
    on_host = sum(table.columns.host)
    if on_host:
        yield f"{counted(on_host, 'op')} ran on the host: not counted (TTP007)"
    lost = [each for each in table.traces if not each.complete]
    for each in lost[:1]:
        yield (
            f"replays of trace {each.trace} on device {each.device} ran different ops: the "
            "profiler lost data (TTP002)"
        )
