"""The figures that rules judge, without their judgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.checklist.analyses.kind import Numbers
from pytest_ttnn_perf.checklist.runner import run_rules
from pytest_ttnn_perf.model.analysis import Figure
from pytest_ttnn_perf.model.finding import RuleOutcome

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.rule import Rule
    from pytest_ttnn_perf.model.analysis import Section
    from pytest_ttnn_perf.model.subject import Subject

_SILENT = {
    RuleOutcome.NOT_MEASURED: "not measured",
    RuleOutcome.NOT_APPLICABLE: "not applicable",
}


def judged(
    subject: Subject,
    rules: dict[str, type[Rule]],
    *sections: Section,
    figures: tuple[Figure, ...] = (),
    notes: tuple[str, ...] = (),
) -> Numbers:
    """Return sections with what the rules look at, each by the words for its figure.

    A rule that cannot tell is a note; one that lacks its input is passed over.
    """
    asked = {words: rule() for words, rule in rules.items()}
    told = {
        words: rule
        for words, rule in asked.items()
        if not rule.needs or any(map(subject.has, rule.needs))
    }
    findings = dict(zip(told, run_rules(told.values(), subject), strict=True))
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
