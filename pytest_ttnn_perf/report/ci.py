"""A judged run for CI systems: annotations, GitLab code quality, JUnit properties."""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.core.finding import Severity
from pytest_ttnn_perf.core.metric import Kind
from pytest_ttnn_perf.core.observation import QUIET, WITHOUT_BASELINE, Outcome, Reason
from pytest_ttnn_perf.core.settings import Missing
from pytest_ttnn_perf.core.text import counted, shortened, visible
from pytest_ttnn_perf.gate.record import CiJob
from pytest_ttnn_perf.report.findings import title
from pytest_ttnn_perf.report.sentences import label, sentence, worst_first, worst_tests_first
from pytest_ttnn_perf.report.tables import json_text
from pytest_ttnn_perf.report.terminal import failure_text, indented, shift_advice, shift_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.core.finding import Finding
    from pytest_ttnn_perf.core.observation import JudgedTest, Location, Run, Verdict
    from pytest_ttnn_perf.report.terminal import SummaryOptions


class Level(Enum):
    """The attention that something asks for."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class CiReport(Struct, frozen=True):
    """A judged run for reports.

    ``differences`` are those of the environment since the baselines were accepted; ``record`` is
    the file with the whole run. ``enforced``: errors of the checklist fail their test.
    """

    run: Run
    summary_options: SummaryOptions
    missing: Missing = Missing.FAIL
    enforced: bool = True
    differences: tuple[str, ...] = ()
    record: str | None = None
    job: CiJob = CiJob()

    @property
    def tests(self) -> list[JudgedTest]:
        return worst_tests_first(self.run.tests.values(), self.summary_options.failed)

    @property
    def headline(self) -> str:
        gated = sum(1 for judged in self.tests if judged.verdicts)
        options = self.summary_options
        text = f"{counted(gated, 'test')} gated, all passed"
        if options.failed:
            text = f"{len(options.failed)} of {counted(len(self.tests), 'test')} failed"
        elif options.health.lost:
            lost = counted(len(options.health.lost), "test")
            text = f"{lost} with a baseline did not run, and required is set"
        elif options.shift is not None and options.shift.worse:
            text = f"{shift_line(options.shift)}; no single test failed"
        elif not gated:
            text = "no test was gated"
        return text if self.run.complete else f"the run was cut short: {text}"

    @property
    def is_bad(self) -> bool:
        options = self.summary_options
        slower = options.shift is not None and options.shift.worse
        return bool(options.failed or options.health.lost or slower) or not self.run.complete

    def place(self, judged: JudgedTest) -> Location:
        test, found = judged.observation.test, judged.observation.location
        file, line = found or (test.partition("::")[0], None)
        return self.job.path(file), line

    def failed(self, judged: JudgedTest) -> bool:
        return judged.observation.test in self.summary_options.failed

    def level(self, judged: JudgedTest, verdict: Verdict) -> Level | None:
        if verdict.metric.name in judged.written or verdict.outcome in QUIET:
            return None
        if verdict.outcome is Outcome.IMPROVED:
            # One by one, the gains of a fast machine would be accepted after all.
            return None if self.summary_options.shift else Level.NOTICE
        if verdict.outcome in WITHOUT_BASELINE and verdict.reason is not Reason.OTHER_DEFINITION:
            if self.missing is Missing.IGNORE:
                return None
            fails = self.missing is Missing.FAIL and self.failed(judged)
            return Level.ERROR if fails else Level.WARNING
        return Level.ERROR if self.failed(judged) else Level.WARNING

    def level_of_finding(self, finding: Finding) -> Level | None:
        if not finding.stands or finding.severity is Severity.INFO:
            return None
        return Level.ERROR if finding.fails and self.enforced else Level.WARNING


#: GitHub shows no more errors for one step.
_MOST: Final = 10
_LONGEST_TITLE: Final = 120


class Annotation(NamedTuple):
    """A message of GitHub about one test, or about the run."""

    level: Level
    title: str
    lines: tuple[str, ...]
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        named = {"file": self.file, "line": self.line, "title": self.title}
        properties = ",".join(
            f"{name}={escape_property(visible(str(value)))}"
            for name, value in named.items()
            if value is not None
        )
        message = escape_data("\n".join(map(visible, self.lines)))
        return f"::{self.level.value} {properties}::{message}"


def annotation_lines(report: CiReport, *, failures: bool = True) -> Iterator[str]:
    """Yield the annotations of a run; count those beyond GitHub's limit.

    ``failures``: also of tests that failed, unless something else annotates those.
    """
    found = list(_of_run(report))
    if failures:
        found += [each for judged in report.tests for each in _of_test(report, judged)]
    if len(found) > _MOST:
        left = counted(len(found) - _MOST + 1, "more error")
        where = f"; all are in the summary and in {report.record}" if report.record else ""
        found[_MOST - 1 :] = [Annotation(Level.ERROR, "ttnn-perf", (f"{left}{where}",))]
    yield from map(str, found)


def escape_data(text: str) -> str:
    r"""Return text as GitHub reads it in a message.

    >>> escape_data("50 %\nless")
    '50 %25%0Aless'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Return text as GitHub reads it in a property.

    >>> escape_property("a.py::b,c")
    'a.py%3A%3Ab%2Cc'
    """
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def _of_run(report: CiReport) -> Iterator[Annotation]:
    shift = report.summary_options.shift
    if shift is not None and shift.worse:
        # Where a test failed, that is what the job failed for.
        level = Level.WARNING if report.summary_options.failed else Level.ERROR
        advice = shift_advice(
            shift, report.tests, report.summary_options.rerun, failed=level is Level.WARNING
        )
        lines = (indented(*each) for each in advice)
        yield Annotation(level, "ttnn-perf: all tests slower", (shift_line(shift), *lines))
    lost = report.summary_options.health.lost
    if lost:
        what = f"{counted(len(lost), 'test')} with a baseline did not run, and required is set"
        yield Annotation(Level.ERROR, "ttnn-perf", (what, *lost[:_MOST]))
    if not report.run.complete:
        text = f"the run was cut short after {counted(len(report.tests), 'test')}"
        yield Annotation(Level.ERROR, "ttnn-perf", (text,))


def _of_test(report: CiReport, judged: JudgedTest) -> Iterator[Annotation]:
    verdicts = [v for v in judged.verdicts if report.level(judged, v) is Level.ERROR]
    findings = [f for f in judged.findings if report.level_of_finding(f) is Level.ERROR]
    if not (verdicts or findings or judged.observation.problems):
        return
    rerun, where = report.summary_options.rerun, report.place(judged)
    text = failure_text(judged, verdicts, findings=findings, rerun=rerun)
    names = [*map(label, worst_first(verdicts)), *(each.code for each in findings)]
    test = judged.observation.test
    title = f"{', '.join(dict.fromkeys(names)) or 'ttnn-perf'} {test.partition('::')[2] or test}"
    yield Annotation(
        Level.ERROR,
        shortened(visible(title), _LONGEST_TITLE),
        tuple(text.splitlines()),
        *where,
    )


_OF_FINDING: Final = {
    Severity.ERROR: "major",
    Severity.WARNING: "minor",
    Severity.INFO: "info",
}
_LONGEST_ID: Final = 200


def gitlab_text(report: CiReport) -> str:
    return json_text([issue for judged in report.tests for issue in _issues(report, judged)])


def _issues(report: CiReport, judged: JudgedTest) -> Iterator[dict[str, object]]:
    own = judged.observation.hardware or report.run.hardware
    key = own.key if own else ""
    test, where = judged.observation.test, report.place(judged)

    def issue(kind: str, name: str, check: str, text: str, severity: str) -> dict[str, object]:
        # Neither value nor outcome nor line: the same trouble in two runs is one; but one test on
        # two systems has two troubles.
        known_by = "\0".join((key, test, kind, name)).encode("utf-8", errors="surrogatepass")
        return {
            "description": f"{shortened(visible(test), _LONGEST_ID)} ({key}): {visible(text)}",
            "check_name": visible(f"ttnn-perf/{check}"),
            "fingerprint": hashlib.sha256(known_by).hexdigest(),
            "severity": severity,
            "location": {"path": visible(where[0]), "lines": {"begin": where[1] or 1}},
        }

    for number, problem in enumerate(judged.observation.problems):
        yield issue("problem", str(number), "problem", problem, "major")
    for verdict in judged.verdicts:
        level = report.level(judged, verdict)
        if level in {Level.ERROR, Level.WARNING}:
            text = f"{label(verdict)}: {sentence(verdict)}"
            if judged.by_op and verdict.is_of_changed_time:
                text += f"; cause: {judged.by_op}"
            # A model that is wrong is worse than one that is slow.
            wrong = verdict.outcome is Outcome.REGRESSED and verdict.metric.kind is Kind.ACCURACY
            severity = "critical" if wrong else "major"
            if verdict.outcome in WITHOUT_BASELINE:
                severity = "minor"
            if level is Level.WARNING:
                severity = "info"
            yield issue("metric", verdict.metric.name, verdict.outcome.value, text, severity)
    for finding in judged.findings:
        if finding.stands:
            severity = _OF_FINDING[finding.severity]
            yield issue("rule", finding.code, finding.code, title(finding), severity)
