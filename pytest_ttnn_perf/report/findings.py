"""What the checklist says of the tests of a run, in its summary."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.model.finding import RuleOutcome, Severity
from pytest_ttnn_perf.report.checklist import advice_lines, evidence_lines, title
from pytest_ttnn_perf.report.lines import Line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.model.finding import Finding, NeedlessWaiver
    from pytest_ttnn_perf.model.observation import JudgedTest

#: The heaviest first; what is only for information comes last, without evidence and advice.
_ORDER: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)
#: How many tests with the same finding are named; the others are counted.
_MOST_TESTS: Final = 3


def findings_lines(tests: Sequence[JudgedTest]) -> Iterator[Line]:
    """Lay out what was found, one finding that several tests share once, and what to do."""
    lines = [*_bottlenecks(tests)]
    advised: set[str] = set()
    shared = _shared(tests)
    for severity in _ORDER:
        for finding, names in shared.items():
            if finding.severity is severity:
                bad = finding.fails
                lines += [Line(text, bad=bad) for text in _finding(finding, names, advised)]
    if lines:
        yield Line("optimization checklist")
        yield from lines
        yield Line("")


def findings_count(tests: Sequence[JudgedTest]) -> str:
    """Count what was found, by severity; nothing if there is nothing."""
    found = Counter(
        finding.severity for judged in tests for finding in _told(judged) if finding.stands
    )
    told = ", ".join(counted(found[each], each.value) for each in _ORDER[:2] if found[each])
    return told and f"checklist: {told}"


def _bottlenecks(tests: Sequence[JudgedTest]) -> Iterator[Line]:
    for judged in tests:
        if judged.observation.bottleneck is not None:
            yield Line(f"{judged.observation.test}: bottleneck: {judged.observation.bottleneck}")


def _shared(tests: Sequence[JudgedTest]) -> dict[Finding, list[str]]:
    """Return every finding, with the tests that have just the same."""
    found: dict[Finding, list[str]] = {}
    for judged in tests:
        for finding in _told(judged):
            found.setdefault(finding, []).append(judged.observation.test)
    return found


def _told(judged: JudgedTest) -> Iterator[Finding]:
    for finding in judged.findings:
        if finding.outcome is RuleOutcome.FOUND:
            yield finding


def _finding(finding: Finding, tests: Sequence[str], advised: set[str]) -> Iterator[str]:
    where = tests[0] if len(tests) == 1 else counted(len(tests), "test")
    yield f"{where}: {title(finding)}"
    if len(tests) > 1:
        more = len(tests) - _MOST_TESTS
        yield f"    {', '.join(tests[:_MOST_TESTS])}{f' and {more} more' if more > 0 else ''}"
    if finding.waived is not None or finding.severity is Severity.INFO:
        return
    yield from evidence_lines(finding)
    if finding.code not in advised:
        advised.add(finding.code)
        yield from advice_lines(finding)


def waiver_lines(waivers: Iterable[NeedlessWaiver]) -> Iterator[Line]:
    """Say which waivers are for nothing: they would hide what comes later."""
    for waiver in waivers:
        place = f"rules.{waiver.code}" if waiver.test is None else f"{waiver.test}: waive"
        if waiver.known:
            yield Line(f"{place}: {waiver.code} found nothing; remove the waiver")
        else:
            yield Line(f"{place}: {waiver.code} is no rule; `ttnn-perf rules` lists them")
