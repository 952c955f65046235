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
from pytest_ttnn_perf.report.sentences import remedy_of, sentence, worst_first
from pytest_ttnn_perf.report.tables import json_text
from pytest_ttnn_perf.report.terminal import shift_line

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
        return list(self.run.tests.values())

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
            text = f"environment shifted; {counted(gated, 'test')} gated, none failed individually"
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


#: GitHub shows no more of one kind for one step.
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
    """Yield the annotations of a run, errors first; count the rest.

    ``failures``: also of tests that failed, unless something else annotates those.
    """
    of_tests = [annotation for judged in report.tests for annotation in _of_test(report, judged)]
    found = [*_of_run(report), *of_tests, *_of_rules(report)]
    for level in Level:
        own = [annotation for annotation in found if annotation.level is level]
        if level is Level.ERROR and not failures:
            own = [annotation for annotation in own if annotation.file is None]
        if len(own) > _MOST:
            kept = own[: _MOST - 1]
            left = counted(len(own) - len(kept), f"more {level.value}")
            where = f"; all are in the summary and in {report.record}" if report.record else ""
            own = [*kept, Annotation(level, "ttnn-perf", (f"{left}{where}",))]
        yield from map(str, own)


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
        yield Annotation(level, "ttnn-perf: environment shifted", (shift_line(shift),))
    lost = report.summary_options.health.lost
    if lost:
        what = f"{counted(len(lost), 'test')} with a baseline did not run, and required is set"
        yield Annotation(Level.ERROR, "ttnn-perf", (what, *lost[:_MOST]))
    if not report.run.complete:
        text = f"the run was cut short after {counted(len(report.tests), 'test')}"
        yield Annotation(Level.ERROR, "ttnn-perf", (text,))


def _of_test(report: CiReport, judged: JudgedTest) -> Iterator[Annotation]:
    for level in Level:
        verdicts = [v for v in judged.verdicts if report.level(judged, v) is level]
        lines, names = [], [verdict.outcome.value for verdict in verdicts]
        if level is Level.ERROR:  # warnings of the checklist: once for all tests
            errors = [f for f in judged.findings if report.level_of_finding(f) is level]
            lines = list(judged.observation.problems)
            lines += [line for finding in errors for line in _finding_lines(finding)]
            names += [finding.code for finding in errors]
        lines += _verdict_lines(report, judged, verdicts)
        if lines:
            what = ", ".join(dict.fromkeys(names)) or "ttnn-perf"
            yield _place(report, judged, Annotation(level, what, tuple(lines)))


def _of_rules(report: CiReport) -> Iterator[Annotation]:
    """Yield one warning for each rule, at its first test.

    A rule often finds the same in most tests, and GitHub shows only so many.
    """
    found: dict[str, list[tuple[JudgedTest, Finding]]] = {}
    for judged in report.tests:
        for finding in judged.findings:
            if report.level_of_finding(finding) is Level.WARNING:
                found.setdefault(finding.code, []).append((judged, finding))
    for code, ((judged, finding), *others) in found.items():
        more = [f"  also in {counted(len(others), 'other test')}"] if others else []
        lines = (*_finding_lines(finding), *more)
        yield _place(report, judged, Annotation(Level.WARNING, code, lines))


def _finding_lines(finding: Finding) -> list[str]:
    return [title(finding), *([] if finding.fix is None else [f"  fix: {finding.fix}"])]


def _verdict_lines(report: CiReport, judged: JudgedTest, verdicts: list[Verdict]) -> Iterator[str]:
    of = judged.observation
    updates = report.summary_options.rerun.updates(of.test, of.hardware)
    ordered = worst_first(verdicts)
    yield from (f"{verdict.outcome.value}: {sentence(verdict)}" for verdict in ordered)
    if judged.by_op is not None and any(verdict.is_of_changed_time for verdict in verdicts):
        yield f"  by op: {judged.by_op}"
    if not of.problems:
        remedies = dict.fromkeys(remedy_of(verdict, updates) for verdict in ordered)
        yield from (f"  {remedy}" for remedy in remedies if remedy)


def _place(report: CiReport, judged: JudgedTest, annotation: Annotation) -> Annotation:
    test, where = judged.observation.test, report.place(judged)
    name = test.partition("::")[2] or test
    return annotation._replace(
        title=shortened(visible(f"{annotation.title} {name}"), _LONGEST_TITLE),
        file=where[0],
        line=where[1],
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
            text = f"{verdict.outcome.value}: {sentence(verdict)}"
            if judged.by_op and verdict.is_of_changed_time:
                text += f"; by op: {judged.by_op}"
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
