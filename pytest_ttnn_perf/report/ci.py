"""A judged run for CI systems: annotations, GitLab code quality, JUnit properties."""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.core.finding import Severity
from pytest_ttnn_perf.core.hardware import CiJob
from pytest_ttnn_perf.core.metric import Kind, median
from pytest_ttnn_perf.core.observation import Location
from pytest_ttnn_perf.core.settings import Missing
from pytest_ttnn_perf.core.text import counted, shortened, visible
from pytest_ttnn_perf.core.verdict import QUIET, WITHOUT_BASELINE, Outcome, Reason
from pytest_ttnn_perf.report.findings import title
from pytest_ttnn_perf.report.sentences import remedy, sentence, worst_first
from pytest_ttnn_perf.report.tables import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.core.finding import Finding
    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import JudgedTest, Run
    from pytest_ttnn_perf.core.verdict import Verdict
    from pytest_ttnn_perf.report.terminal import SummaryOptions


class Level(Enum):
    """How much something asks for attention."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class CiReport(Struct, frozen=True):
    """A judged run, and how it is reported.

    ``differences`` is what is not as it was when the baselines were accepted; ``record`` where the
    whole run can be read. ``enforced``: errors of the checklist fail their test.
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
        """All tests, in the order in which they ran."""
        return list(self.run.tests.values())

    @property
    def headline(self) -> str:
        """How it went in one line, and for how many tests."""
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
        """Whether the run fails: by a test, by its machine, or as some of it is missing."""
        options = self.summary_options
        slower = options.shift is not None and options.shift.worse
        return bool(options.failed or options.health.lost or slower) or not self.run.complete

    def place(self, judged: JudgedTest) -> Location:
        """Return where a test is written, from the repository's root; else what its id tells."""
        test, found = judged.observation.test, judged.observation.location
        file = found.file if found else test.partition("::")[0]
        return Location(self.job.path(file), found.line if found else None)

    def failed(self, judged: JudgedTest) -> bool:
        """Return whether a test failed."""
        return judged.observation.test in self.summary_options.failed

    def level(self, judged: JudgedTest, verdict: Verdict) -> Level | None:
        """Return how much a verdict asks for attention; None for not at all."""
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
        """Return the same for what the checklist found."""
        if not finding.stands or finding.severity is Severity.INFO:
            return None
        return Level.ERROR if finding.fails and self.enforced else Level.WARNING


#: GitHub shows no more of one kind for one step.
_MOST: Final = 10
_LONGEST_TITLE: Final = 120


class Annotation(NamedTuple):
    """What is said of one test, or of none, at one level."""

    level: Level
    title: str
    lines: tuple[str, ...]
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        """Return the command, which is one line whatever is in it."""
        named = {"file": self.file, "line": self.line, "title": self.title}
        properties = ",".join(
            f"{name}={escape_property(visible(str(value)))}"
            for name, value in named.items()
            if value is not None
        )
        message = escape_data("\n".join(map(visible, self.lines)))
        return f"::{self.level.value} {properties}::{message}"


def annotation_lines(report: CiReport, *, failures: bool = True) -> Iterator[str]:
    """Yield the annotations of a run, errors first; no more than are shown, the rest counted.

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
        from pytest_ttnn_perf.report.terminal import shift_line

        yield Annotation(level, "ttnn-perf: environment shifted", (shift_line(shift),))
    lost = report.summary_options.health.lost
    if lost:
        what = f"{counted(len(lost), 'test')} with a baseline did not run, and required is set"
        yield Annotation(Level.ERROR, "ttnn-perf", (what, *lost[:_MOST]))
    if not report.run.complete:
        text = f"the run was cut short after {counted(len(report.tests), 'test')}"
        yield Annotation(Level.ERROR, "ttnn-perf", (text,))


def _of_test(report: CiReport, judged: JudgedTest) -> Iterator[Annotation]:
    """Yield one annotation for each level at which there is something to say of a test."""
    for level in Level:
        verdicts = [v for v in judged.verdicts if report.level(judged, v) is level]
        errors = [f for f in judged.findings if report.level_of_finding(f) is level]
        findings = errors if level is Level.ERROR else []  # warnings: once for all tests
        lines = list(judged.observation.problems) if level is Level.ERROR else []
        lines += [line for finding in findings for line in _finding_lines(finding)]
        lines += _verdict_lines(report, judged, verdicts)
        names = [verdict.outcome.value for verdict in verdicts] + [f.code for f in findings]
        if lines:
            what = ", ".join(dict.fromkeys(names)) or "ttnn-perf"
            yield _place(report, judged, Annotation(level, what, tuple(lines)))


def _of_rules(report: CiReport) -> Iterator[Annotation]:
    """Yield one warning for each rule, beside the first test that it is about.

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


def _finding_lines(finding: Finding) -> Iterator[str]:
    yield title(finding)
    if finding.fix is not None:
        yield f"  fix: {finding.fix}"


def _verdict_lines(report: CiReport, judged: JudgedTest, verdicts: list[Verdict]) -> Iterator[str]:
    of = judged.observation
    updates = report.summary_options.rerun.updates(of.test, of.hardware)
    remedies: dict[str, None] = {}
    for verdict in worst_first(verdicts):
        yield f"{verdict.outcome.value}: {sentence(verdict)}"
        advice = None if judged.observation.problems else remedy(verdict, updates)
        remedies |= {advice: None} if advice else {}
    if judged.by_op is not None and any(verdict.is_of_changed_time for verdict in verdicts):
        yield f"  by op: {judged.by_op}"
    yield from (f"  {advice}" for advice in remedies)


def _place(report: CiReport, judged: JudgedTest, annotation: Annotation) -> Annotation:
    test = judged.observation.test
    _, _, name = test.partition("::")
    where = report.place(judged)
    return annotation._replace(
        title=shortened(visible(f"{annotation.title} {name or test}"), _LONGEST_TITLE),
        file=where.file,
        line=where.line,
    )


_OF_FINDING: Final = {
    Severity.ERROR: "major",
    Severity.WARNING: "minor",
    Severity.INFO: "info",
}
_LONGEST_ID: Final = 200


def gitlab_text(report: CiReport) -> str:
    """Return the code quality report: what got worse or has no result, and all findings."""
    issues = [issue for judged in report.tests for issue in _issues(report, judged)]
    return json_text(issues)


def _issues(report: CiReport, judged: JudgedTest) -> Iterator[dict[str, object]]:
    for number, problem in enumerate(judged.observation.problems):
        yield _issue(
            report, judged, ("problem", str(number)), "ttnn-perf/problem", problem, "major"
        )
    for verdict in judged.verdicts:
        level = report.level(judged, verdict)
        if level in {Level.ERROR, Level.WARNING}:
            check = f"ttnn-perf/{verdict.outcome.value}"
            text = f"{verdict.outcome.value}: {sentence(verdict)}"
            by_op = judged.by_op if verdict.is_of_changed_time else None
            text += f"; by op: {by_op}" if by_op else ""
            severity = _severity(verdict, level)
            yield _issue(report, judged, ("metric", verdict.metric.name), check, text, severity)
    for finding in judged.findings:
        if finding.stands:
            check = f"ttnn-perf/{finding.code}"
            severity = _OF_FINDING[finding.severity]
            yield _issue(report, judged, ("rule", finding.code), check, title(finding), severity)


def _severity(verdict: Verdict, level: Level | None) -> str:
    if level is Level.WARNING:
        return "info"
    if verdict.outcome in WITHOUT_BASELINE:
        return "minor"
    # A model that is wrong is worse than one that is slow.
    wrong = verdict.outcome is Outcome.REGRESSED and verdict.metric.kind is Kind.ACCURACY
    return "critical" if wrong else "major"


def _issue(
    report: CiReport,
    judged: JudgedTest,
    identity: tuple[str, str],
    check: str,
    text: str,
    severity: str,
) -> dict[str, object]:
    test, where = judged.observation.test, report.place(judged)
    # Neither value nor outcome nor line: the same trouble in two runs is one.
    own = judged.observation.hardware or report.run.hardware
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


_PREFIX: Final = "ttnn_perf"
_NO_METRIC: Final = "-"
#: Of several verdicts the first of these is the test's.
_WORST: Final = (
    Outcome.NO_DATA,
    Outcome.REGRESSED,
    Outcome.SHIFTED,
    Outcome.TOO_NOISY,
    Outcome.NOT_COMPARABLE,
    Outcome.NO_BASELINE,
    Outcome.IMPROVED,
    Outcome.WITHIN,
)


def property_pairs(judged: JudgedTest, hardware: Hardware | None) -> list[tuple[str, str]]:
    """Return what is known of a test; numbers are in the metric's own unit, as in the record."""
    pairs = []
    own = judged.observation.hardware or hardware
    if own is not None:
        pairs.append((f"{_PREFIX}.key", own.key))
    if judged.observation.node_id is not None:
        pairs.append((f"{_PREFIX}.identity", judged.observation.test))
    outcomes = {verdict.outcome for verdict in judged.verdicts}
    pairs += [(f"{_PREFIX}.verdict", outcome.value) for outcome in _WORST if outcome in outcomes][
        :1
    ]
    for verdict in judged.verdicts:
        # That of a test without any data is of no metric, and said already.
        pairs += _of_verdict(verdict) if verdict.metric.name != _NO_METRIC else []
    judged_names = {verdict.metric.name for verdict in judged.verdicts}
    for name, observed in judged.observation.metrics.items():
        if name not in judged_names and observed.samples:
            middle = float(median(observed.samples))
            pairs += _of_value(name, observed.metric.unit, middle)
    found = sorted(f.code for f in judged.findings if f.stands)
    pairs += [(f"{_PREFIX}.findings", ",".join(found))] if found else []
    # pytest takes care of values, but not of names.
    return [(visible(name), visible(value)) for name, value in pairs]


def _of_verdict(verdict: Verdict) -> Iterator[tuple[str, str]]:
    name = f"{_PREFIX}.{verdict.metric.name}"
    yield from _of_value(verdict.metric.name, verdict.metric.unit, verdict.observed)
    yield f"{name}.verdict", verdict.outcome.value
    if verdict.centre is not None:
        yield f"{name}.baseline", _number(verdict.centre)
    if verdict.change_as_read is not None:
        yield f"{name}.change_percent", _percent(verdict.change_as_read)
    if verdict.limit_as_read is not None:
        yield f"{name}.limit_percent", _percent(verdict.limit_as_read)


def _of_value(name: str, unit: str, value: float | None) -> Iterator[tuple[str, str]]:
    if value is not None:
        yield f"{_PREFIX}.{name}", _number(value)
        yield f"{_PREFIX}.{name}.unit", unit


def _percent(fraction: float) -> str:
    """Return per cent with four decimals, of which a dashboard needs no more."""
    return _number(round(fraction * 100, 4) + 0.0)


def _number(value: float) -> str:
    return f"{value:.10g}"
