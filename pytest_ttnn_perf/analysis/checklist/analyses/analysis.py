"""What an analysis is: a name, the inputs it can use, and the function that looks at them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.validity import why_invalid
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.analysis.ops.roofline import rooflines
from pytest_ttnn_perf.records.finding import (
    Analysis,
    AnalysisOutcome,
    Figure,
    Input,
    Row,
    RuleOutcome,
    Section,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytest_ttnn_perf.analysis.checklist.operands import Operand
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Op, OpTable, Signature


_NOTHING: Final = "what there is to look at does not say"
_NO_OPS: Final = "the capture has no op that ran on a device"


@dataclass(frozen=True, slots=True)
class Numbers:
    """What an analysis has to tell; sections without rows are left out."""

    figures: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
    picture: tuple[str, ...] = ()


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
        numbers = self._numbers(known)
        if isinstance(numbers, Answer):
            outcome = AnalysisOutcome(numbers.outcome.value)
            return Analysis(self.name, self.title, outcome, numbers.reason)
        of_capture = capture_notes(known.ops) if known.ops and Input.OPS in self.needs else ()
        return Analysis(
            self.name,
            self.title,
            figures=numbers.figures,
            sections=tuple(section for section in numbers.sections if section.rows),
            notes=(*numbers.notes, *of_capture),
            picture=numbers.picture,
        )

    def _numbers(self, subject: Subject) -> Numbers | Answer:
        if not any(map(subject.has, self.needs)):
            return Answer.not_measured(self._why_absent(subject))
        numbers = self.look(subject)
        if (
            isinstance(numbers, Answer)
            or numbers.figures
            or any(each.rows for each in numbers.sections)
        ):
            return numbers
        return Answer.not_measured("; ".join(numbers.notes) or _NOTHING)

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


def capture_notes(table: OpTable) -> Iterator[str]:
    """Yield notes on a capture that every analysis of it has."""
    on_host = sum(table.columns.host)
    if on_host:
        yield f"{counted(on_host, 'op')} ran on the host: not counted (TTP007)"
    flaw = why_invalid(table)
    if flaw is not None:
        yield f"no time of this capture can be trusted: {flaw}"


_SILENT = {
    RuleOutcome.NOT_MEASURED: "not measured",
    RuleOutcome.NOT_APPLICABLE: "not applicable",
}


def with_rules(
    subject: Subject,
    rules: Mapping[str, str],
    *sections: Section,
    figures: tuple[Figure, ...] = (),
    notes: tuple[str, ...] = (),
) -> Numbers:
    """Return sections with what rules look at: their codes, each by the words for its figure.

    A rule that cannot tell is a note; one that lacks its input is passed over.
    """
    asked = {words: rule_of(code) for words, code in rules.items()}
    usable = {
        words: rule
        for words, rule in asked.items()
        if not rule.needs or any(map(subject.has, rule.needs))
    }
    findings = dict(zip(usable, run_rules(usable.values(), subject), strict=True))
    return Numbers(
        (
            *figures,
            *(
                Figure(f"{words} ({each.code})", each.value, each.unit)
                for words, each in findings.items()
                if each.value is not None
            ),
        ),
        sections,
        (
            *notes,
            *(
                f"{words} ({each.code}): {_SILENT[each.outcome]}: {each.reason}"
                for words, each in findings.items()
                if each.outcome in _SILENT
            ),
        ),
    )


class Part(NamedTuple):
    """Something with a weight, called by its label; ``times`` ops, tensors or calls make it up."""

    label: str
    weight: float
    times: int = 1


def section(
    heading: str,
    parts: Iterable[Part],
    *,
    unit: str,
    of: str,
    whole: float | None = None,
    ranked: bool = True,
) -> Section:
    """Add up the parts of one label; shares are of ``whole`` or else of all parts.

    The heaviest comes first, or if not ``ranked``, what was met first.
    """
    weights: dict[str, float] = {}
    counts: dict[str, int] = {}
    for label, weight, times in parts:
        weights[label] = weights.get(label, 0.0) + weight
        counts[label] = counts.get(label, 0) + times
    total = sum(weights.values()) if whole is None else whole
    labels = sorted(weights, key=lambda label: (-weights[label], label)) if ranked else weights
    rows = tuple(
        Row(label, weights[label], weights[label] / total if total else None, counts[label])
        for label in labels
    )
    return Section(heading, unit, rows, of)


def by_time(
    heading: str,
    ops: Iterable[Op],
    label: Callable[[Op], str] = op_name,
    *,
    of: str = "of kernel time",
    whole: float | None = None,
) -> Section:
    """Add up the kernel time of ops by what they are called."""
    parts = (Part(label(op), op.kernel_ns) for op in ops)
    return section(heading, parts, unit="ns", of=of, whole=whole)


def by_bytes(
    heading: str, operands: Iterable[Operand], label: Callable[[Operand], str], *, of: str
) -> Section:
    """Add up the bytes of operands by what they are called."""
    parts = (Part(label(each), each.size, each.times) for each in operands)
    return section(heading, parts, unit="B", of=of)


def lost_time(table: OpTable, chosen: Callable[[Signature], bool], *, whole: float) -> Section:
    """Add up by how much ops miss the time that their roofline allows them."""
    losses = (
        (row, line.kernel_ns - line.least_ns)
        for row, line in enumerate(rooflines(table))
        if line.least_ns is not None and chosen(table.signatures[table.columns.signature[row]])
    )
    parts = (Part(op_name(table.op(row)), loss) for row, loss in losses if loss > 0)
    return section("time beyond the roofline", parts, unit="ns", of="of kernel time", whole=whole)
