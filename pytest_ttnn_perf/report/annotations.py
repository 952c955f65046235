"""Annotations of GitHub: a line of output each, which it shows beside the line of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._support.visible import shortened, visible
from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.report.checklist import title
from pytest_ttnn_perf.report.progress import shift_line
from pytest_ttnn_perf.report.remedies import remedy
from pytest_ttnn_perf.report.sentences import sentence
from pytest_ttnn_perf.report.told import Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.finding import Finding
    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.verdict import Verdict
    from pytest_ttnn_perf.report.told import Told

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


def annotation_lines(told: Told, *, failures: bool = True) -> Iterator[str]:
    """Yield the annotations of a run, errors first; no more than are shown, the rest counted.

    ``failures``: also of tests that failed, unless something else annotates those.
    """
    of_tests = [each for judged in told.tests for each in _of_test(told, judged)]
    found = [*_of_run(told), *of_tests, *_of_rules(told)]
    for level in Level:
        own = [each for each in found if each.level is level]
        if level is Level.ERROR and not failures:
            own = [each for each in own if each.file is None]
        if len(own) > _MOST:
            kept = own[: _MOST - 1]
            left = counted(len(own) - len(kept), f"more {level.value}")
            where = f"; all are in the summary and in {told.record}" if told.record else ""
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


def _of_run(told: Told) -> Iterator[Annotation]:
    shift = told.manner.shift
    if shift is not None and shift.worse:
        # Where a test failed, that is what the job failed for.
        level = Level.WARNING if told.manner.failed else Level.ERROR
        yield Annotation(level, "ttnn-perf: environment shifted", (shift_line(shift),))
    lost = told.manner.lapses.lost
    if lost:
        what = f"{counted(len(lost), 'test')} with a baseline did not run, and required is set"
        yield Annotation(Level.ERROR, "ttnn-perf", (what, *lost[:_MOST]))
    if not told.run.complete:
        text = f"the run was cut short after {counted(len(told.tests), 'test')}"
        yield Annotation(Level.ERROR, "ttnn-perf", (text,))


def _of_test(told: Told, judged: JudgedTest) -> Iterator[Annotation]:
    """Yield one annotation for each level at which there is something to say of a test."""
    for level in Level:
        verdicts = [v for v in judged.verdicts if told.level(judged, v) is level]
        errors = [f for f in judged.findings if told.level_of_finding(f) is level]
        findings = errors if level is Level.ERROR else []  # warnings: once for all tests
        lines = list(judged.observation.problems) if level is Level.ERROR else []
        lines += [line for finding in findings for line in _finding_lines(finding)]
        lines += _verdict_lines(told, judged, verdicts)
        names = [verdict.outcome.value for verdict in verdicts] + [f.code for f in findings]
        if lines:
            what = ", ".join(dict.fromkeys(names)) or "ttnn-perf"
            yield _placed(told, judged, Annotation(level, what, tuple(lines)))


def _of_rules(told: Told) -> Iterator[Annotation]:
    """Yield one warning for each rule, beside the first test that it is about.

    A rule often finds the same in most tests, and GitHub shows only so many.
    """
    found: dict[str, list[tuple[JudgedTest, Finding]]] = {}
    for judged in told.tests:
        for finding in judged.findings:
            if told.level_of_finding(finding) is Level.WARNING:
                found.setdefault(finding.code, []).append((judged, finding))
    for code, ((judged, finding), *others) in found.items():
        more = [f"  also in {counted(len(others), 'other test')}"] if others else []
        lines = (*_finding_lines(finding), *more)
        yield _placed(told, judged, Annotation(Level.WARNING, code, lines))


def _finding_lines(finding: Finding) -> Iterator[str]:
    yield title(finding)
    if finding.fix is not None:
        yield f"  fix: {finding.fix}"


def _verdict_lines(told: Told, judged: JudgedTest, verdicts: list[Verdict]) -> Iterator[str]:
    updates = told.manner.rerun.updates(judged.observation.test)
    remedies: dict[str, None] = {}
    for verdict in verdicts:
        yield f"{verdict.outcome.value}: {sentence(verdict)}"
        advice = None if judged.observation.problems else remedy(verdict, updates)
        remedies |= {advice: None} if advice else {}
    if judged.by_op is not None and any(verdict.is_of_changed_time for verdict in verdicts):
        yield f"  by op: {judged.by_op}"
    yield from (f"  {advice}" for advice in remedies)


def _placed(told: Told, judged: JudgedTest, annotation: Annotation) -> Annotation:
    test = judged.observation.test
    _, _, name = test.partition("::")
    where = told.place(judged)
    return annotation._replace(
        title=shortened(visible(f"{annotation.title} {name or test}"), _LONGEST_TITLE),
        file=where.file,
        line=where.line,
    )
