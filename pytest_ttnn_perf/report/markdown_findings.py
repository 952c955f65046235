"""What the checklist found, and how far models have come, in Markdown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.report.checklist import advice_lines, evidence_lines, title
from pytest_ttnn_perf.report.fitting import Section
from pytest_ttnn_perf.report.markup import FOLDED, code, heading_rows, prose, row, spans, summary
from pytest_ttnn_perf.report.optimization import PROGRESS_TITLES, first_step, progress_cells
from pytest_ttnn_perf.report.told import Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.finding import Finding
    from pytest_ttnn_perf.report.told import Told

#: How many tests with the same finding are named; the others are counted.
_MOST_TESTS: Final = 10
#: How many findings of one rule are told; tests often differ in their numbers only.
_MOST_FINDINGS: Final = 5


def findings_section(told: Told) -> Section | None:
    """Lay out what was found, rule by rule, errors first; None if nothing was."""
    rules = _by_rule(told)
    if not rules:
        return None
    levels = Counter(told.level_of_finding(next(iter(found))) for found in rules.values())
    kinds = (Level.ERROR, Level.WARNING)
    told_counts = ", ".join(counted(levels[k], k.value) for k in kinds if levels[k])
    items = [
        _rule(told, found)
        for kind in kinds
        for found in rules.values()
        if told.level_of_finding(next(iter(found))) is kind
    ]
    return Section(f"\n### Checklist: {told_counts}\n\n", tuple(items), noun="rule")


def progress_section(told: Told) -> Section | None:
    """Lay out how far each model has come, folded away; None where nothing is known."""
    progress = told.manner.progress
    if not progress:
        return None
    head = summary("Optimization progress") + heading_rows((*PROGRESS_TITLES, "first"))
    rows = (
        row((code(test), *progress_cells(each), prose("; ".join(first_step(each)) or "-")))
        for test, each in progress
    )
    return Section(f"\n{head}", tuple(rows), FOLDED, noun="row")


def _by_rule(told: Told) -> dict[tuple[str, Level | None], dict[Finding, list[str]]]:
    """Return what asks for attention, by rule; just the same in several tests is said once."""
    found: dict[tuple[str, Level | None], dict[Finding, list[str]]] = {}
    for judged in told.tests:
        for finding in judged.findings:
            level = told.level_of_finding(finding)
            if level is not None:
                same = found.setdefault((finding.code, level), {})
                same.setdefault(finding, []).append(judged.observation.test)
    return found


def _rule(told: Told, found: dict[Finding, list[str]]) -> str:
    first = next(iter(found))
    tests = list(dict.fromkeys(test for names in found.values() for test in names))
    shown = f"{first.code} {first.name} ({first.severity.value}): {counted(len(tests), 'test')}"
    opened = summary(shown)
    if told.level_of_finding(first) is Level.ERROR:
        opened = opened.replace("<details>", "<details open>", 1)
    lines = [opened]
    for finding, names in list(found.items())[:_MOST_FINDINGS]:
        what = title(finding).partition("): ")[2]
        lines.append(f"- {spans(what)}\n  - in {_named(names)}\n")
        lines += [f"  - {spans(text.strip())}\n" for text in evidence_lines(finding)]
    more = len(found) - _MOST_FINDINGS
    lines += [f"- and {more:,} more like these\n"] if more > 0 else []
    lines += list(_advice(first))
    return "".join([*lines, FOLDED, "\n"])


def _advice(finding: Finding) -> Iterator[str]:
    for text in advice_lines(finding):
        kind, _, rest = text.strip().partition(": ")
        yield f"\n{kind.capitalize()}: {code(rest) if kind == 'see' else spans(rest)}\n"


def _named(tests: list[str]) -> str:
    more = len(tests) - _MOST_TESTS
    named = ", ".join(map(code, tests[:_MOST_TESTS]))
    return f"{named} and {more:,} more" if more > 0 else named
