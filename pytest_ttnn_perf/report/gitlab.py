"""GitLab's code quality report, which it shows in merge requests and compares between branches."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.visible import shortened, visible
from pytest_ttnn_perf.model.finding import Severity
from pytest_ttnn_perf.model.metric import Kind
from pytest_ttnn_perf.model.verdict import Outcome
from pytest_ttnn_perf.report.checklist import title
from pytest_ttnn_perf.report.sentences import sentence
from pytest_ttnn_perf.report.told import MISSING, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.verdict import Verdict
    from pytest_ttnn_perf.report.told import Told

_OF_FINDING: Final = {
    Severity.ERROR: "major",
    Severity.WARNING: "minor",
    Severity.INFO: "info",
}
_LONGEST_ID: Final = 200


def gitlab_text(told: Told) -> str:
    """Return the report: what got worse or could not be told, and what the checklist found."""
    issues = [issue for judged in told.tests for issue in _issues(told, judged)]
    return json.dumps(issues, indent=2) + "\n"


def _issues(told: Told, judged: JudgedTest) -> Iterator[dict[str, object]]:
    for number, problem in enumerate(judged.observation.problems):
        yield _issue(told, judged, ("problem", str(number)), "ttnn-perf/problem", problem, "major")
    for verdict in judged.verdicts:
        level = told.level(judged, verdict)
        if level in {Level.ERROR, Level.WARNING}:
            check = f"ttnn-perf/{verdict.outcome.value}"
            text = f"{verdict.outcome.value}: {sentence(verdict)}"
            by_op = judged.by_op if verdict.is_of_changed_time else None
            text += f"; by op: {by_op}" if by_op else ""
            severity = _severity(verdict, level)
            yield _issue(told, judged, ("metric", verdict.metric.name), check, text, severity)
    for finding in judged.findings:
        if finding.stands:
            check = f"ttnn-perf/{finding.code}"
            severity = _OF_FINDING[finding.severity]
            yield _issue(told, judged, ("rule", finding.code), check, title(finding), severity)


def _severity(verdict: Verdict, level: Level | None) -> str:
    if level is Level.WARNING:
        return "info"
    if verdict.outcome in MISSING:
        return "minor"
    # A model that is wrong is worse than one that is slow.
    wrong = verdict.outcome is Outcome.REGRESSED and verdict.metric.kind is Kind.ACCURACY
    return "critical" if wrong else "major"


def _issue(
    told: Told, judged: JudgedTest, identity: tuple[str, str], check: str, text: str, severity: str
) -> dict[str, object]:
    test, where = judged.observation.test, told.place(judged)
    # Neither value nor outcome nor line: the same trouble in two runs is one.
    own = judged.observation.hardware or told.run.hardware
    key = own.key if own else ""  # one test on two systems has two troubles
    known_by = "\0".join((key, test, *identity)).encode("utf-8", errors="surrogatepass")
    return {
        "description": f"{shortened(visible(test), _LONGEST_ID)} ({key}): {visible(text)}",
        "check_name": visible(check),
        "fingerprint": hashlib.sha256(known_by).hexdigest(),
        "severity": severity,
        "location": {
            "path": visible(where.file),
            "lines": {"begin": where.line or 1},
        },
    }
