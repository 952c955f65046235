"""What rules, bottlenecks and plans say of all real captures: numbers, no wording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.checklist.bottleneck import bottleneck_of
from pytest_ttnn_perf.analysis.checklist.plan import plan_of, start_of
from pytest_ttnn_perf.analysis.checklist.runner import (
    all_rules,
    in_regions,
    rule_of,
    run_rules,
)
from pytest_ttnn_perf.core.finding import RuleOutcome
from tests.analysis.rules.captures import LOGS, REPORTS, TABLES, log_of, ops_of, report_of
from tests.analysis.rules.test_plan import assert_sound
from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_ttnn_perf.core.finding import Finding, Subject

KINDS: dict[str, tuple[list[str], Callable[[str], Subject]]] = {
    "tables": (TABLES, ops_of),
    "reports": (REPORTS, report_of),
    "logs": (LOGS, log_of),
}
#: The first digits of rules that tell a value, a limit and evidence whenever they have an answer.
WITH_VALUES = frozenset("367")


def told(value: float | None) -> str:
    """Return a number as far as it may not change by chance."""
    return "" if value is None else f"{value:.6g}"


def outcomes(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a line for each finding, and one for all rules of another outcome."""
    listed = list(findings)
    for one in listed:
        if one.outcome is RuleOutcome.FOUND:
            parts = (one.value, one.saving_ns, one.adds_ns, one.gaps_ns)
            places = " ".join(f"{told(each.value)}@{each.ops[:2]}" for each in one.evidence[:3])
            also = f" quiet by {one.covered_by}" if one.quiet else ""
            yield f"  {one.code} {one.severity.value} {' '.join(map(told, parts))}{also}: {places}"
            if one.fix != rule_of(one.code).fix:
                yield f"    {one.fix}"
    for outcome in (RuleOutcome.CLEAN, RuleOutcome.NOT_MEASURED, RuleOutcome.NOT_APPLICABLE):
        own = [one for one in listed if one.outcome is outcome]
        texts = (
            f"{one.code[3:]}{'=' if one.value else ''}{told(one.value or None)}" for one in own
        )
        yield f"  {outcome.value}: {', '.join(texts)}"


def answers(subject: Subject) -> Iterator[str]:
    """Yield what is said of each region, with its bottleneck and plan."""
    for region in in_regions(subject):
        findings = run_rules(all_rules(), region)
        for one in findings:
            is_found = one.outcome is RuleOutcome.FOUND
            assert one.reason or one.outcome is RuleOutcome.CLEAN, one
            if one.code[3] in WITH_VALUES and subject.kernels is None:
                tells = one.value is not None and one.limit is not None and one.unit != ""
                assert tells is (is_found or one.outcome is RuleOutcome.CLEAN), one
                assert bool(one.evidence) is is_found, one
        held = bottleneck_of(region, {})
        yield f" {region.region or 'all'}: {held.kind.name if held else 'unknown'} " + told(
            held.value if held else None
        )
        start = start_of(region, {})
        if start is not None:
            plan = plan_of(findings, start)
            assert_sound(plan)
            steps = (f"{step.finding.code} {told(step.left_ns)}" for step in plan.steps)
            yield f"  from {told(start.now_ns)} of {told(start.ideal_ns)}: {', '.join(steps)}"
        yield from outcomes(findings)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_all_captures(kind: str) -> None:
    names, read = KINDS[kind]
    lines = [line for name in names for line in (name, *answers(read(name)))]
    assert_golden(f"rules_on_{kind}", "\n".join(lines))
