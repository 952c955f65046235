"""Every rule answers on every real capture, report and log, with what belongs to its outcome."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_rules
from pytest_ttnn_perf.core.finding import RuleOutcome, Subject
from tests.rules.captures import LOGS, REPORTS, TABLES, log_of, ops_of, report_of

#: The first digits of rules that tell a value, a limit and evidence whenever they have an answer.
WITH_VALUES = frozenset("367")


def outcomes(subject: Subject) -> dict[str, RuleOutcome]:
    """Return the outcome of every rule; each must say what it found, or why it cannot tell."""
    findings = run_rules(all_rules(), subject)
    for finding in findings:
        is_found = finding.outcome is RuleOutcome.FOUND
        assert finding.reason or finding.outcome is RuleOutcome.CLEAN, finding
        if finding.code[3] in WITH_VALUES and subject.kernels is None:
            tells = finding.value is not None and finding.limit is not None and finding.unit != ""
            assert tells is (is_found or finding.outcome is RuleOutcome.CLEAN), finding
            assert bool(finding.evidence) is is_found, finding
    return {finding.code: finding.outcome for finding in findings}


@pytest.mark.parametrize("name", TABLES)
def test_every_capture(name: str) -> None:
    assert outcomes(ops_of(name))["TTP901"] is RuleOutcome.NOT_MEASURED


@pytest.mark.parametrize("name", REPORTS)
def test_every_report(name: str) -> None:
    assert outcomes(report_of(name))["TTP103"] is RuleOutcome.NOT_MEASURED


@pytest.mark.parametrize("name", LOGS)
def test_every_log(name: str) -> None:
    lost = name in {"demo-one.txt", "signpost_docs.txt"}
    expected = RuleOutcome.FOUND if lost else RuleOutcome.CLEAN
    assert outcomes(log_of(name))["TTP001"] is expected
