"""A finding as it is printed, and its numbers in their units."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.records.finding import Evidence, Finding, RuleOutcome, Severity
from pytest_ttnn_perf.report.checklist import evidence_lines, finding_document, shown, title


def found(*evidence: Evidence) -> Finding:
    return Finding(
        "TTP203", "layout-conversions", Severity.WARNING, RuleOutcome.FOUND,
        "11.6 % of the kernel time goes into 1 conversion", 0.116, 0.05, "of kernel time", evidence,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.05, "of kernel time", "5.0 % of kernel time"),
        (0.1, "above the mean", "10.0 % above the mean"),
        (202_500, "ns", "202.5 us"),
        (1, "B", "1 B"),
        (430_080, "bytes", "420.0 KiB"),
        (15_728_640, "B saved", "15.00 MiB saved"),
        (1, "ops", "1 op"),
        (2, "ops", "2 ops"),
        (0, "losses", "0 losses"),
        (1, "processes", "1 process"),
        (1.0, "transfers per barrier", "1 transfer per barrier"),
        (1, "GB/s", "1 GB/s"),
        (1, "fps", "1 fps"),
        (1, "x the median", "1 x the median"),
        (1234.5, "", "1,234"),
    ],
)
def test_a_number_in_its_unit(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def test_a_finding_with_its_limit() -> None:
    assert title(found()) == (
        "TTP203 layout-conversions (warning): 11.6 % of the kernel time goes into 1 conversion, "
        "limit 5.0 % of kernel time"
    )


def test_evidence_has_its_share_where_there_is_one() -> None:
    times = Evidence("32 x Untilize 1x1x128x256", 202_500.0, "ns", 0.015)
    finding = found(times, Evidence("ttnn.add", 1, "calls"), Evidence("trace 7"))
    assert list(evidence_lines(finding)) == [
        "    32 x Untilize 1x1x128x256: 202.5 us, 1.5 %",
        "    ttnn.add: 1 call",
        "    trace 7",
    ]
    assert finding_document(finding)["evidence"] == [
        {"subject": times.subject, "value": 202_500.0, "unit": "ns", "share": 0.015},
        {"subject": "ttnn.add", "value": 1, "unit": "calls", "share": None},
        {"subject": "trace 7", "value": None, "unit": "", "share": None},
    ]
