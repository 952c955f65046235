"""A run for those who review a change: what matters in ten seconds, the rest folded away."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, visible
from pytest_ttnn_perf.report.checklist import (
    PROGRESS_TITLES,
    advice_lines,
    drift_line,
    evidence_lines,
    first_step,
    progress_cells,
    shift_line,
    title,
)
from pytest_ttnn_perf.report.ci import MISSING, Level
from pytest_ttnn_perf.report.markup import (
    COMMENT_BYTES,
    FOLDED,
    Section,
    code,
    fence,
    fenced,
    fit_to_size,
    heading_rows,
    prose,
    row,
    spans,
    summary,
)
from pytest_ttnn_perf.report.numbers import format_change, format_fraction, format_value
from pytest_ttnn_perf.report.sentences import remedy_of, sentence
from pytest_ttnn_perf.report.terminal import count_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.records.finding import Finding
    from pytest_ttnn_perf.records.observation import JudgedTest
    from pytest_ttnn_perf.records.verdict import Verdict
    from pytest_ttnn_perf.report.ci import CiReport


#: How many tests with the same finding are named; the others are counted.
_MOST_TESTS: Final = 10
#: How many findings of one rule are told; tests often differ in their numbers only.
_MOST_FINDINGS: Final = 5


def findings_section(report: CiReport) -> Section | None:
    """Lay out what was found, rule by rule, errors first; None if nothing was."""
    rules = _by_rule(report)
    if not rules:
        return None
    levels = Counter(report.level_of_finding(next(iter(found))) for found in rules.values())
    kinds = (Level.ERROR, Level.WARNING)
    told_counts = ", ".join(counted(levels[k], k.value) for k in kinds if levels[k])
    items = [
        _rule(report, found)
        for kind in kinds
        for found in rules.values()
        if report.level_of_finding(next(iter(found))) is kind
    ]
    return Section(f"\n### Checklist: {told_counts}\n\n", tuple(items), noun="rule")


def progress_section(report: CiReport) -> Section | None:
    """Lay out how far each model has come, folded away; None where nothing is known."""
    progress = report.summary_options.progress
    if not progress:
        return None
    head = summary("Optimization progress") + heading_rows((*PROGRESS_TITLES, "first"))
    rows = (
        row((code(test), *progress_cells(each), prose("; ".join(first_step(each)) or "-")))
        for test, each in progress
    )
    return Section(f"\n{head}", tuple(rows), FOLDED, noun="row")


def _by_rule(report: CiReport) -> dict[tuple[str, Level | None], dict[Finding, list[str]]]:
    """Return what asks for attention, by rule; just the same in several tests is said once."""
    found: dict[tuple[str, Level | None], dict[Finding, list[str]]] = {}
    for judged in report.tests:
        for finding in judged.findings:
            level = report.level_of_finding(finding)
            if level is not None:
                same = found.setdefault((finding.code, level), {})
                same.setdefault(finding, []).append(judged.observation.test)
    return found


def _rule(report: CiReport, found: dict[Finding, list[str]]) -> str:
    first = next(iter(found))
    tests = list(dict.fromkeys(test for names in found.values() for test in names))
    shown = f"{first.code} {first.name} ({first.severity.value}): {counted(len(tests), 'test')}"
    opened = summary(shown)
    if report.level_of_finding(first) is Level.ERROR:
        opened = opened.replace("<details>", "<details open>", 1)
    lines = [opened]
    for finding, names in list(found.items())[:_MOST_FINDINGS]:
        what = title(finding).partition("): ")[2]
        lines.append(f"- {spans(what)}\n  - in {_named(names)}\n")
        lines += [f"  - {spans(text.strip())}\n" for text in evidence_lines(finding)]
    more = len(found) - _MOST_FINDINGS
    lines += [f"- and {more:,} more like these\n"] if more > 0 else []
    lines += list(_advice(first))
    return "".join([*lines, FOLDED, "\n"])


def _advice(finding: Finding) -> Iterator[str]:
    for text in advice_lines(finding):
        kind, _, rest = text.strip().partition(": ")
        yield f"\n{kind.capitalize()}: {code(rest) if kind == 'see' else spans(rest)}\n"


def _named(tests: list[str]) -> str:
    more = len(tests) - _MOST_TESTS
    named = ", ".join(map(code, tests[:_MOST_TESTS]))
    return f"{named} and {more:,} more" if more > 0 else named


_TITLES: Final = ("test", "metric", "baseline", "now", "change", "limit", "verdict")
_NUMERIC: Final = frozenset({2, 3, 4, 5})
#: So many failures are told in full; those after them are folded away.
_OPEN: Final = 3


def failed_sections(report: CiReport) -> Iterator[Section]:
    """Lay out what failed: a table first, then each test with what did it and what to run."""
    failing = [(judged, _failing(report, judged)) for judged in report.tests]
    failing = [(judged, found) for judged, found in failing if found or judged.observation.problems]
    if not failing:
        return
    rows = [text for judged, found in failing for text in _failed_rows(judged, found)]
    yield Section("\n### Failed\n\n" + _heading(), tuple(rows), noun="row")
    blocks = [_block(report, judged, found) for judged, found in failing]
    yield Section("\n", tuple(blocks[:_OPEN]), noun="test")
    if blocks[_OPEN:]:
        more = summary(f"What to run for {counted(len(blocks) - _OPEN, 'more test')}")
        yield Section(f"\n{more}", tuple(blocks[_OPEN:]), FOLDED, noun="test")


def improved_sections(report: CiReport) -> Iterator[Section]:
    """Lay out what got better, with the commands that keep it."""
    better = _at(report, Level.NOTICE)
    if not better:
        return
    rows = [_row(judged, verdict) for judged, found in better for verdict in found]
    yield Section("\n### Improved\n\n" + _heading(), tuple(rows), noun="row")
    rerun = report.summary_options.rerun
    commands = [rerun.updates(judged.observation.test).keep for judged, _ in better]
    yield from _commands("\nKeep it with:\n\n", commands)


def missing_sections(report: CiReport) -> Iterator[Section]:
    """Lay out the tests that there is nothing to compare with."""
    found = [
        (judged, [v for v in judged.verdicts if v.outcome in MISSING and report.level(judged, v)])
        for judged in report.tests
    ]
    found = [(judged, verdicts) for judged, verdicts in found if verdicts]
    if not found:
        return
    fails = any(report.level(judged, v) is Level.ERROR for judged, vs in found for v in vs)
    title = f"Without a baseline: {counted(len(found), 'test')}{', failed' if fails else ''}"
    rows = [row((code(j.observation.test), _names(vs), prose(sentence(vs[0])))) for j, vs in found]
    table = heading_rows(("test", "metrics", "why"))
    yield Section(f"\n### {title}\n\n{summary('Which')}{table}", tuple(rows), FOLDED, noun="row")
    commands = [
        each.command
        for judged, verdicts in found
        if (
            each := remedy_of(
                verdicts[0], report.summary_options.rerun.updates(judged.observation.test)
            )
        )
        and each.command
    ]
    yield from _commands("\nRecord them with:\n\n", commands)


def metrics_section(report: CiReport) -> Section:
    """Lay out everything that was judged, folded away."""
    rows = tuple(_row(judged, each) for judged in report.tests for each in judged.verdicts)
    head = summary(f"All metrics: {len(rows):,}")
    return Section(f"\n{head}{_heading()}", rows, FOLDED, noun="row")


def _failing(report: CiReport, judged: JudgedTest) -> list[Verdict]:
    return [
        verdict
        for verdict in judged.verdicts
        if report.level(judged, verdict) is Level.ERROR and verdict.outcome not in MISSING
    ]


def _at(report: CiReport, level: Level) -> list[tuple[JudgedTest, list[Verdict]]]:
    found = [
        (judged, [v for v in judged.verdicts if report.level(judged, v) is level])
        for judged in report.tests
    ]
    return [(judged, verdicts) for judged, verdicts in found if verdicts]


def _heading() -> str:
    return heading_rows(_TITLES, right=_NUMERIC)


def _row(judged: JudgedTest, verdict: Verdict) -> str:
    cells = (
        format_value(verdict.metric, verdict.centre),
        format_value(verdict.metric, verdict.observed, beside=verdict.centre),
        format_change(verdict.change_as_read),
        format_fraction(verdict.limit_as_read),
    )
    test, name = code(judged.observation.test), code(verdict.metric.name)
    return row((test, name, *map(prose, cells), verdict.outcome.value))


def _failed_rows(judged: JudgedTest, found: Sequence[Verdict]) -> Iterator[str]:
    for problem in judged.observation.problems:
        yield row((code(judged.observation.test), "-", "-", "-", "-", "-", prose(problem)))
    for verdict in found:
        yield _row(judged, verdict)


def _block(report: CiReport, judged: JudgedTest, found: Sequence[Verdict]) -> str:
    """Return what is to be known of one failed test: why, which ops did it, and what to run."""
    observation = judged.observation
    lines = [f"**{code(observation.test)}**\n\n"]
    lines += [f"- {prose(problem)}\n" for problem in observation.problems]
    lines += [f"- {verdict.outcome.value}: {prose(sentence(verdict))}\n" for verdict in found]
    if judged.by_op is not None and any(verdict.is_of_changed_time for verdict in found):
        lines.append(f"- by op: {prose(judged.by_op)}\n")
    rerun = report.summary_options.rerun
    if not observation.problems:  # a mistake in the test comes first
        updates = rerun.updates(observation.test)
        for each in dict.fromkeys(filter(None, (remedy_of(v, updates) for v in found))):
            advice = each.advice[:1].upper() + each.advice[1:]
            lines.append(f"\n{prose(advice)}{':' if each.command else '.'}\n")
            lines += [f"\n{fenced([each.command])}"] if each.command else []
    profile = rerun.full_profile(observation)
    lines += [f"\nFull profile:\n\n{fenced([profile])}"] if profile else []
    return "".join([*lines, "\n"])


def _commands(head: str, commands: Iterable[str]) -> Iterator[Section]:
    unique = list(dict.fromkeys(map(visible, commands)))
    if unique:
        opening, closing = fence(unique)
        lines = tuple(f"{command}\n" for command in unique)
        yield Section(head + opening, lines, closing, noun="command")


def _names(verdicts: Iterable[Verdict]) -> str:
    return ", ".join(code(verdict.metric.name) for verdict in verdicts)


_PASSED: Final = "✅"
_FAILED: Final = "❌"
_WARNED: Final = "⚠️"
#: As many characters of a commit as people compare.
_COMMIT: Final = 12


def markdown_text(report: CiReport, *, most_bytes: int = COMMENT_BYTES) -> str:
    """Return the report of a run, cut to what its reader can take; empty if that is nothing."""
    parts = list(_parts(report))
    quiet = not parts
    environment = [Section(text) for text in [_environment(report)] if text]
    metrics = [metrics_section(report)] if any(judged.verdicts for judged in report.tests) else []
    folded = [part for part in (progress_section(report), _drifts(report)) if part]
    sections = [Section(_headline(report, quiet=quiet)), *parts, *environment, *folded, *metrics]
    whole = code(report.record) if report.record else None
    return fit_to_size(sections, _closing(report), most_bytes=most_bytes, whole=whole)


def _parts(report: CiReport) -> Iterator[Section]:
    """Yield what is worth reading; nothing where everything is as before."""
    yield from failed_sections(report)
    yield from _lost(report)
    yield from _machine(report)
    yield from improved_sections(report)
    found = findings_section(report)
    if found:
        yield found
    yield from missing_sections(report)


def _headline(report: CiReport, *, quiet: bool) -> str:
    """Say in one line how it went, and for how many tests."""
    gated = sum(1 for judged in report.tests if judged.verdicts)
    text, sign = f"{counted(gated, 'test')} gated, all passed", _PASSED
    shift, failed = report.summary_options.shift, len(report.summary_options.failed)
    if failed:
        of = counted(len(report.tests), "test")
        text, sign = f"{failed} of {of} failed", _FAILED
    elif report.summary_options.health.lost:
        lost = counted(len(report.summary_options.health.lost), "test")
        text, sign = f"{lost} with a baseline did not run, and required is set", _FAILED
    elif shift is not None and shift.worse:
        text = f"environment shifted; {counted(gated, 'test')} gated, none failed by name"
        sign = _FAILED
    elif not gated:
        text, sign = "no test was gated", _WARNED
    if not report.run.complete:
        text, sign = f"the run was cut short: {text}", _FAILED
    if quiet:
        return f"{sign} **ttnn-perf: {text}**\n"
    return f"## {sign} ttnn-perf: {text}\n\n{prose(count_line(report.tests, failed=failed))}\n"


def _lost(report: CiReport) -> Iterator[Section]:
    """Name the tests that are required and did not run."""
    lost = report.summary_options.health.lost
    if lost:
        head = f"\n### Did not run: {counted(len(lost), 'test')} with a baseline\n\n"
        yield Section(head, tuple(f"- {code(test)}\n" for test in lost), noun="test")


def _machine(report: CiReport) -> Iterator[Section]:
    """Say what is the machine's and not one test's."""
    summary_options = report.summary_options
    if summary_options.shift is not None:
        text = f"\n### Environment shifted\n\n{prose(shift_line(summary_options.shift))}\n"
        turns = "The machine, or a change that all tests share? Compare in turns:"
        text += f"\n{turns}\n\n{fenced(['ttnn-perf ab REF'])}"
        yield Section(
            f"{text}\nIf it is to stay:\n\n{fenced([summary_options.rerun.accept_all()])}"
        )


def _drifts(report: CiReport) -> Section | None:
    drifts = report.summary_options.drifts
    lines = tuple(f"- {prose(drift_line(drift))}\n" for drift in drifts)
    return Section(f"\n{summary(f'Drift: {len(drifts)}')}", lines, FOLDED) if drifts else None


def _environment(report: CiReport) -> str:
    """Say where it ran, and what is not as it was when the baselines were accepted."""
    environment = report.run.environment
    own = (judged.observation.hardware or report.run.hardware for judged in report.tests)
    keys = sorted({hardware.key for hardware in own if hardware})
    facts = [code(key) for key in keys]
    if environment.ttnn:
        facts.append(f"ttnn {prose(environment.ttnn)}")
    if environment.commit:
        changed = " with changes" if environment.dirty else ""
        facts.append(f"commit {code(environment.commit[:_COMMIT])}{changed}")
    if environment.runner:
        facts.append(f"runner {code(environment.runner)}")
    if not facts:
        return ""
    differs = "; ".join(map(prose, report.differences))
    said = f"Not as when the baselines were accepted: {differs}.\n" if differs else ""
    return f"\n**Environment:** {' · '.join(facts)}\n{said}"


def _closing(report: CiReport) -> str:
    """Name the record, in which everything is."""
    version = report.run.environment.plugin
    parts = [f"run record {code(report.record)}"] if report.record else []
    parts.append(f"pytest-ttnn-perf {prose(version)}" if version else "pytest-ttnn-perf")
    return f"\n<sub>{' · '.join(parts)}</sub>\n"
