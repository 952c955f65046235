"""A run for reviewers: the headline, what failed and what to run, and never too long."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.finding import Evidence, Severity
from pytest_ttnn_perf.core.observation import Outcome, Shift
from pytest_ttnn_perf.core.settings import Missing
from pytest_ttnn_perf.report.markdown import COMMENT_BYTES, markdown_text
from tests.harness.ci_report import finding, judged, told, verdict

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.observation import JudgedTest, Verdict
    from pytest_ttnn_perf.report.ci import CiReport

SLOWER = verdict(Outcome.REGRESSED)
FINE = verdict(Outcome.WITHIN)


def text_of(run: CiReport, *, most_bytes: int = COMMENT_BYTES) -> str:
    return markdown_text(run, most_bytes=most_bytes)


def many(count: int, *verdicts: Verdict) -> list[JudgedTest]:
    return [judged(f"test_a.py::test_model[{n}]", *verdicts) for n in range(count)]


@pytest.mark.parametrize(
    ("run", "headline"),
    [
        (
            told(judged("a.py::a", SLOWER), judged("a.py::b", FINE)),
            "❌ ttnn-perf: 1 of 2 tests failed",
        ),
        (
            told(judged("a.py::a", verdict(Outcome.IMPROVED))),
            "✅ ttnn-perf: 1 test gated, all passed",
        ),
        (
            told(judged("a.py::a", FINE), shift=Shift(0.08, 6, 7)),
            "❌ ttnn-perf: 6 of 7 tests 8.0 % slower: the machine, or a change they share; "
            "no single test failed",
        ),
        (
            told(judged("a.py::a", SLOWER), complete=False),
            "❌ ttnn-perf: the run was cut short: 1 of 1 test failed",
        ),
    ],
)
def test_headline_says_how_it_went(run: CiReport, headline: str) -> None:
    assert text_of(run).splitlines()[0] == f"## {headline}"


def test_run_without_gated_tests_does_not_look_like_a_pass() -> None:
    assert text_of(told()).startswith("⚠️ **ttnn-perf: no test was gated**\n")
    steady = text_of(told(judged("a.py::a", FINE)))
    assert steady.startswith("✅ **ttnn-perf: 1 test gated, all passed**\n"), "a line, no heading"


@pytest.mark.parametrize(
    ("missing", "title"),
    [
        (Missing.FAIL, "### Without a baseline: 2 tests, failed"),
        (Missing.WARN, "### Without a baseline: 2 tests"),
        (Missing.IGNORE, None),
    ],
)
def test_tests_without_a_baseline(missing: Missing, title: str | None) -> None:
    new = [
        judged("a.py::a", verdict(Outcome.NO_BASELINE)),
        judged("a.py::b", verdict(Outcome.NOT_COMPARABLE)),
    ]
    text = text_of(told(*new, missing=missing, passes=missing is not Missing.FAIL))
    found = [line for line in text.splitlines() if line.startswith("### Without")]
    assert found == ([title] if title else [])
    assert ("pytest a.py::a --ttnn-perf-update=new" in text) == bool(title)


def test_findings_are_grouped_by_rule_errors_open_and_first() -> None:
    evidence = (Evidence("Tilize 1x32", 61_000, "ns"),)
    warned = finding(evidence=evidence)
    tests = [
        judged("a.py::a", FINE, findings=(warned,)),
        judged("a.py::b", FINE, findings=(warned, finding("TTP001", Severity.ERROR))),
        judged("a.py::c", FINE, findings=(finding("TTP103", Severity.INFO),)),
    ]
    text = text_of(told(*tests))
    assert "### Checklist: 1 error, 1 warning\n" in text
    error = text.index("<details open><summary>TTP001")
    assert error < text.index("<details><summary>TTP203 layout-conversions (warning): 2 tests")
    assert "- 12 % of the time goes into `tilize`\n  - in `a.py::b`, `a.py::a`\n" in text
    assert "  - Tilize 1x32: 61.00 µs\n" in text
    assert "Fix: Keep tensors in `TILE`.\n\nSee: `ttnn-perf rules TTP203`\n" in text
    assert "TTP103" not in text


@pytest.mark.parametrize("most_bytes", [3_000, COMMENT_BYTES])
def test_long_report_is_cut_and_says_so(most_bytes: int) -> None:
    text = text_of(told(*many(800, SLOWER)), most_bytes=most_bytes)
    assert len(text.encode()) <= most_bytes
    assert len(text.encode()) > most_bytes / 2
    left = re.search(r"\*[\d,]+ of 800 rows left out; the whole is in `\S+run\.json`\.\*", text)
    assert left is not None
    assert text.startswith("## ❌ ttnn-perf: 800 of 800 tests failed")
    assert text.endswith("</sub>\n")
    assert text.count("<details") == text.count("</details>")
    assert text.count("```") % 2 == 0


def test_gains_of_a_fast_machine_are_not_offered() -> None:
    text = text_of(told(judged("a.py::a", verdict(Outcome.IMPROVED)), shift=Shift(-0.1, 6, 7)))
    assert "### Improved" not in text
    assert "6 of 7 tests 10.0 % faster: the machine, or a change they share" in text
