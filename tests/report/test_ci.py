"""What CI systems are told: annotations, code quality, properties."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.core.finding import Severity
from pytest_ttnn_perf.core.observation import Outcome, Shift
from pytest_ttnn_perf.core.settings import Missing
from pytest_ttnn_perf.gate.record import CiJob
from pytest_ttnn_perf.report.ci import annotation_lines, gitlab_text
from pytest_ttnn_perf.report.run import property_pairs
from tests.harness.ci_report import PCC, finding, judged, told, verdict

if TYPE_CHECKING:
    from pytest_ttnn_perf.report.ci import CiReport


FINE = verdict(Outcome.WITHIN)


def test_no_more_than_github_shows_and_the_rest_is_counted() -> None:
    tests = [
        *(judged(f"a.py::slow{n}", verdict(Outcome.REGRESSED)) for n in range(13)),
        judged("a.py::fast", verdict(Outcome.IMPROVED)),
        judged("a.py::noted", FINE, findings=(finding("TTP001", Severity.ERROR),)),
    ]
    lines = list(annotation_lines(told(*tests, enforced=False)))
    assert [line.partition(" ")[0] for line in lines] == ["::error"] * 10
    where = "all are in the summary and in .ttnn_perf/runs/run.json"
    assert lines[9] == f"::error title=ttnn-perf::4 more errors; {where}"


@pytest.mark.parametrize(("failing", "level"), [(False, "error"), (True, "warning")])
def test_shifted_machine_is_told_of_no_file(failing: bool, level: str) -> None:
    outcome = Outcome.REGRESSED if failing else Outcome.WITHIN
    run = told(judged("a.py::a", verdict(outcome)), shift=Shift(0.08, 6, 7))
    # That of the test itself is left to whatever else annotates failures.
    (line,) = annotation_lines(run, failures=False)
    title, *advice = line.split("%0A  ")
    assert title == (
        f"::{level} title=ttnn-perf%3A all tests slower::6 of 7 tests 8.0 %25 slower: "
        "the machine, or a change they share"
    )
    assert (
        'accept the slower times: pytest --ttnn-perf-update=all --ttnn-perf-reason "why"' in advice
    )


def test_verdict_of_a_test_is_that_of_its_worst_metric() -> None:
    found = judged("a.py::a", verdict(Outcome.IMPROVED), verdict(Outcome.TOO_NOISY))
    assert dict(property_pairs(found, None))["ttnn_perf.verdict"] == "TOO_NOISY"


def issues(run: CiReport) -> list[dict[str, Any]]:
    found = json.loads(gitlab_text(run))
    assert isinstance(found, list)
    return found


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


def test_issue_has_all_that_gitlab_asks_for() -> None:
    slower = judged("a.py::a", verdict(Outcome.REGRESSED), by_op="Conv2d +61 us")
    (issue,) = issues(told(slower, job=CiJob(folder="models")))
    # Known by key, test and metric, also to later versions: GitLab compares branches by it.
    known_by = "wormhole_b0-n150-1x1\0a.py::a\0metric\0wall_time"
    assert issue.pop("fingerprint") == sha256(known_by.encode()).hexdigest()
    assert issue == {
        "description": "a.py::a (wormhole_b0-n150-1x1): REGRESSED: wall_time 20.0 % slower, limit "
        "3.5 % (12.00 ms, baseline 10.00 ms); cause: Conv2d +61 us",
        "check_name": "ttnn-perf/REGRESSED",
        "severity": "major",
        "location": {"path": "models/a.py", "lines": {"begin": 12}},
    }


def test_run_that_was_cut_short_is_an_error() -> None:
    (line,) = annotation_lines(told(judged("a.py::a", FINE), complete=False))
    assert line == "::error title=ttnn-perf::the run was cut short after 1 test"
