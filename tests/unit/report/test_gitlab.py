"""GitLab's code quality report: what is in it, how severe, and what makes two runs comparable."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.records.finding import Severity
from pytest_ttnn_perf.records.hardware import CiJob
from pytest_ttnn_perf.records.settings import Missing
from pytest_ttnn_perf.records.verdict import Outcome
from pytest_ttnn_perf.report.ci import gitlab_text
from tests.harness.ci_report import PCC, finding, judged, told, verdict

if TYPE_CHECKING:
    from pytest_ttnn_perf.report.ci import CiReport

FINE = verdict(Outcome.WITHIN)


def issues(run: CiReport) -> list[dict[str, Any]]:
    found = json.loads(gitlab_text(run))
    assert isinstance(found, list)
    return found


def test_issue_has_all_that_gitlab_asks_for() -> None:
    slower = judged("a.py::a", verdict(Outcome.REGRESSED), by_op="Conv2d +61 us")
    (issue,) = issues(told(slower, job=CiJob(folder="models")))
    # Known by key, test and metric, also to later versions: GitLab compares branches by it.
    known_by = "wormhole_b0-n150-1x1\0a.py::a\0metric\0wall_time"
    assert issue.pop("fingerprint") == sha256(known_by.encode()).hexdigest()
    assert issue == {
        "description": "a.py::a (wormhole_b0-n150-1x1): REGRESSED: wall_time 12.00 ms, baseline "
        "10.00 ms: 20.0 % slower, limit 3.5 % (10 samples against 5 sessions); by op: Conv2d "
        "+61 us",
        "check_name": "ttnn-perf/REGRESSED",
        "severity": "major",
        "location": {"path": "models/a.py", "lines": {"begin": 12}},
    }


@pytest.mark.parametrize(
    ("run", "severities"),
    [
        (told(judged("a.py::a", FINE, verdict(Outcome.IMPROVED))), []),
        (told(judged("a.py::a", verdict(Outcome.NO_DATA))), ["major"]),
        (told(judged("a.py::a", verdict(Outcome.REGRESSED, PCC))), ["critical"]),
        (told(judged("a.py::a", verdict(Outcome.NO_BASELINE))), ["minor"]),
        (
            told(
                judged("a.py::a", verdict(Outcome.NO_BASELINE)), passes=True, missing=Missing.WARN
            ),
            ["info"],
        ),
        (
            told(judged("a.py::a", findings=tuple(finding(severity=each) for each in Severity))),
            ["major", "minor", "info"],
        ),
        (told(judged("a.py::a", problems=("a mistake", "another"))), ["major", "major"]),
    ],
)
def test_severity_follows_what_it_means(run: CiReport, severities: list[str]) -> None:
    assert [issue["severity"] for issue in issues(run)] == severities


def test_same_trouble_in_two_runs_is_one() -> None:
    first = told(judged("a.py::a", verdict(Outcome.REGRESSED), findings=(finding(),)))
    later = told(
        judged("a.py::a", verdict(Outcome.NO_DATA), line=99, findings=(finding(reason="13 %"),))
    )
    marks = [[issue["fingerprint"] for issue in issues(run)] for run in (first, later)]
    assert marks[0] == marks[1]
    assert len(set(marks[0])) == 2


def test_line_that_is_not_known_is_the_first() -> None:
    (issue,) = issues(told(judged("a.py::a", verdict(Outcome.NO_DATA), line=None)))
    assert issue["location"]["lines"] == {"begin": 1}
