"""A run as Markdown: important things first, the rest folded away.

Untrusted text stays text: one row is one line, and nothing in it becomes markup.
"""

from __future__ import annotations

import re
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.core.observation import WITHOUT_BASELINE
from pytest_ttnn_perf.core.text import counted, inert, shortened
from pytest_ttnn_perf.report.ci import Level
from pytest_ttnn_perf.report.findings import (
    advice_lines,
    evidence_lines,
    title,
)
from pytest_ttnn_perf.report.sentences import (
    label,
    remedy_of,
    sentence,
)
from pytest_ttnn_perf.report.tables import format_change, format_fraction, format_value
from pytest_ttnn_perf.report.terminal import (
    by_remedy,
    count_line,
    shift_advice,
    shift_line,
    verdict_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.core.finding import Finding
    from pytest_ttnn_perf.core.observation import JudgedTest, Verdict
    from pytest_ttnn_perf.report.ci import CiReport


#: The longest id that is shown whole in a table or a heading; commands are never cut.
_LONGEST_ID: Final = 120
#: Marks that Markdown may take for its own. An underscore inside a word is none.
_MARKS: Final = re.compile(r"[\\`*\[\]~$]|(?<![^\W_])_|_(?![^\W_])")
#: A person who would be called, or an issue that would be linked.
_REFERENCE: Final = re.compile(r"([@#])(?=\w)")
_UNSAFE: Final = re.compile(r"[^\w .\-=,/]|_")


def prose(text: str) -> str:
    r"""Return untrusted text for a sentence or a cell.

    >>> prose("<b>|*a* wall_time")
    '&lt;b&gt;&#124;\\*a\\* wall_time'
    """
    marked = _MARKS.sub(lambda found: "\\" + found[0], inert(text))
    safe = escape(marked, quote=False)
    return _REFERENCE.sub(r"\1<!-- -->", safe).replace("|", "&#124;")


def code(text: str, *, most: int = _LONGEST_ID) -> str:
    r"""Return untrusted text as code, also in a cell.

    Letters that could end a code span or a cell are spelt in HTML, as all renderers read it.

    >>> code("test_model[8]"), code("a|b")
    ('`test_model[8]`', '<code>a&#124;b</code>')
    """
    shown = shortened(inert(text), most)
    if not shown.strip() or shown == "-":
        return "-"
    if "`" not in shown and "|" not in shown:
        return f"`{shown}`"
    return f"<code>{_UNSAFE.sub(lambda found: f'&#{ord(found[0])};', shown)}</code>"


def spans(text: str) -> str:
    r"""Return a sentence in which backticks mark code.

    >>> spans("Call `check_pcc(a, b)` *once*.")
    'Call `check_pcc(a, b)` \\*once\\*.'
    """
    parts = inert(text).split("`")
    if len(parts) % 2 == 0:  # one of them has no partner
        return prose(text)
    longest = max(map(len, parts))
    return "".join(
        code(part, most=longest) if index % 2 else prose(part) for index, part in enumerate(parts)
    )


#: Ends what is folded away.
_FOLDED: Final = "\n</details>\n"


def _summary(text: str) -> str:
    return f"<details><summary>{escape(inert(text))}</summary>\n\n"


def table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def heading_rows(titles: Sequence[str], *, right: frozenset[int] = frozenset()) -> str:
    rules = ("---:" if index in right else "---" for index in range(len(titles)))
    return table_row(titles) + f"|{'|'.join(rules)}|\n"


def _fence(commands: Sequence[str]) -> tuple[str, str]:
    longest = max((len(run) for text in commands for run in re.findall("`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}sh\n", f"{ticks}\n"


def _code_block(command: str) -> str:
    opening, closing = _fence([command])
    return f"\n{opening}{inert(command)}\n{closing}"


#: The limit of GitHub for a comment, with a line of the action; a summary has more room.
COMMENT_BYTES: Final = 65_536 - 256
#: Room that is kept for saying what was left out.
_NOTE_BYTES: Final = 300


class Section(NamedTuple):
    """A part of a report; ``items`` may be cut from the end."""

    head: str
    items: tuple[str, ...] = ()
    tail: str = ""
    noun: str = "line"


def _fit_to_size(
    sections: Iterable[Section], closing: str, *, most_bytes: int, whole: str | None
) -> str:
    """Join sections, cutting the last ones; ``whole`` is the full report."""
    where = f"; the whole is in {whole}" if whole else ""
    room = most_bytes - _size(closing) - _NOTE_BYTES - _size(where)
    parts: list[str] = []
    omitted = 0
    for section in sections:
        # A note of its own may follow each section that is cut, and one that counts the others.
        left = room - _NOTE_BYTES - _size(where) - _size(section.head + section.tail)
        sizes = accumulate(map(_size, section.items))
        kept = sum(size <= left for size in sizes)
        if left < 0 or (section.items and not kept):
            omitted += max(1, len(section.items))
            continue
        text = section.head + "".join(section.items[:kept]) + section.tail
        if kept < len(section.items):
            count = f"{len(section.items) - kept:,} of {len(section.items):,} {section.noun}s"
            text += f"\n*{count} left out{where}.*\n"
        parts.append(text)
        room -= _size(text)
    if omitted:
        parts.append(f"\n*{omitted:,} more lines left out{where}.*\n")
    text = re.sub(r"\n{3,}", "\n\n", "".join(parts) + closing)
    return text if _size(text) <= most_bytes else ""


def _size(text: str) -> int:
    return len(text.encode("utf-8", errors="replace"))


#: How many tests with the same finding are named; the others are counted.
_MOST_TESTS: Final = 10
#: How many findings of one rule are listed; tests often differ in their numbers only.
_MOST_FINDINGS: Final = 5


def _findings_section(report: CiReport) -> Iterator[Section]:
    rules: dict[Level, dict[str, dict[Finding, list[str]]]] = {Level.ERROR: {}, Level.WARNING: {}}
    for judged in report.tests:
        for finding in judged.findings:
            level = report.level_of_finding(finding)
            if level is not None:  # just the same in several tests is said once
                same = rules[level].setdefault(finding.code, {})
                same.setdefault(finding, []).append(judged.observation.test)
    counts = ", ".join(counted(len(found), k.value) for k, found in rules.items() if found)
    if not counts:
        return
    items = (
        _rule(found, is_open=level is Level.ERROR)
        for level, by_code in rules.items()
        for found in by_code.values()
    )
    yield Section(f"\n### Checklist: {counts}\n\n", tuple(items), noun="rule")


def _rule(found: dict[Finding, list[str]], *, is_open: bool) -> str:
    first = next(iter(found))
    tests = list(dict.fromkeys(test for names in found.values() for test in names))
    shown = f"{first.code} {first.name} ({first.severity.value}): {counted(len(tests), 'test')}"
    lines = [_summary(shown)]
    if is_open:
        lines[0] = lines[0].replace("<details>", "<details open>", 1)
    for finding, names in list(found.items())[:_MOST_FINDINGS]:
        what = title(finding).partition("): ")[2]
        named, more = ", ".join(map(code, names[:_MOST_TESTS])), len(names) - _MOST_TESTS
        named += f" and {more:,} more" if more > 0 else ""
        lines.append(f"- {spans(what)}\n  - in {named}\n")
        lines += [f"  - {spans(text.strip())}\n" for text in evidence_lines(finding)]
    more = len(found) - _MOST_FINDINGS
    lines += [f"- and {more:,} more like these\n"] if more > 0 else []
    for text in advice_lines(first):
        kind, _, rest = text.strip().partition(": ")
        lines.append(f"\n{kind.capitalize()}: {code(rest) if kind == 'see' else spans(rest)}\n")
    return "".join([*lines, _FOLDED, "\n"])


_HEADING: Final = heading_rows(
    ("test", "metric", "baseline", "now", "change", "limit", "verdict"),
    right=frozenset({2, 3, 4, 5}),
)
#: So many failures are shown in full; those after them are folded away.
_OPEN: Final = 3


def _failed_sections(report: CiReport) -> Iterator[Section]:
    failing = []
    for judged in report.tests:
        worse = [v for v in _at(report, judged, Level.ERROR) if v.outcome not in WITHOUT_BASELINE]
        if worse or judged.observation.problems:
            failing.append((judged, worse))
    if not failing:
        return
    rows = []
    for judged, worse in failing:
        test = code(judged.observation.test)
        rows += [table_row((test, *["-"] * 5, prose(text))) for text in judged.observation.problems]
        rows += [_row(judged, verdict) for verdict in worse]
    yield Section("\n### Failed\n\n" + _HEADING, tuple(rows), noun="row")
    blocks = [_block(report, judged, found) for judged, found in failing]
    yield Section("\n", tuple(blocks[:_OPEN]), noun="test")
    if blocks[_OPEN:]:
        more = _summary(f"What to run for {counted(len(blocks) - _OPEN, 'more test')}")
        yield Section(f"\n{more}", tuple(blocks[_OPEN:]), _FOLDED, noun="test")


def _improved_sections(report: CiReport) -> Iterator[Section]:
    better = [j for j in report.tests if _at(report, j, Level.NOTICE)]
    if not better:
        return
    rows = [_row(judged, v) for judged in better for v in _at(report, judged, Level.NOTICE)]
    yield Section("\n### Improved\n\n" + _HEADING, tuple(rows), noun="row")
    rerun = report.summary_options.rerun
    commands = [rerun.updates(judged.observation.test).keep for judged in better]
    yield from _commands("\nKeep it with:\n\n", commands)


def _missing_sections(report: CiReport) -> Iterator[Section]:
    found = []
    for judged in report.tests:
        missing = [v for v in judged.verdicts if v.outcome in WITHOUT_BASELINE]
        verdicts = [verdict for verdict in missing if report.level(judged, verdict)]
        found += [(judged, verdicts)] if verdicts else []
    if not found:
        return
    fails = any(report.level(judged, v) is Level.ERROR for judged, vs in found for v in vs)
    title = f"Without a baseline: {counted(len(found), 'test')}{', failed' if fails else ''}"
    rows: list[str] = []
    commands: dict[str, list[str]] = {}
    for judged, verdicts in found:
        test, first = judged.observation.test, verdicts[0]
        metrics = ", ".join(code(verdict.metric.name) for verdict in verdicts)
        rows.append(table_row((code(test), metrics, prose(sentence(first)))))
        remedy = remedy_of(first, report.summary_options.rerun.updates(test))
        if remedy and remedy.command:
            commands.setdefault(remedy.advice, []).append(remedy.command)
    table = heading_rows(("test", "metrics", "why"))
    yield Section(f"\n### {title}\n\n{_summary('Which')}{table}", tuple(rows), _FOLDED, noun="row")
    for advice, own in commands.items():
        yield from _commands(f"\n{advice[:1].upper()}{advice[1:]}:\n\n", own)


def _at(report: CiReport, judged: JudgedTest, level: Level) -> list[Verdict]:
    return [verdict for verdict in judged.verdicts if report.level(judged, verdict) is level]


def _row(judged: JudgedTest, verdict: Verdict) -> str:
    cells = (
        format_value(verdict.metric, verdict.centre),
        format_value(verdict.metric, verdict.observed, beside=verdict.centre),
        format_change(verdict.change_as_read),
        format_fraction(verdict.limit_as_read),
    )
    test, name = code(judged.observation.test), code(verdict.metric.name)
    return table_row((test, name, *map(prose, cells), label(verdict, judged)))


def _block(report: CiReport, judged: JudgedTest, found: Sequence[Verdict]) -> str:
    observation, rerun = judged.observation, report.summary_options.rerun
    lines = [f"**{code(observation.test)}**\n\n"]
    lines += [f"- {prose(problem)}\n" for problem in observation.problems]
    groups = by_remedy(judged, found, rerun=rerun, blocked=False)
    for text, command, verdict in verdict_lines(judged, groups, rerun=rerun):
        if command is None:
            lines.append(f"- {f'{label(verdict)}: ' if verdict else ''}{prose(text)}\n")
        else:
            lines.append(f"\n{prose(text[:1].upper() + text[1:])}:\n{_code_block(command)}")
    return "".join([*lines, "\n"])


def _commands(head: str, commands: Iterable[str]) -> Iterator[Section]:
    unique = list(dict.fromkeys(map(inert, commands)))
    if unique:
        opening, closing = _fence(unique)
        lines = tuple(f"{command}\n" for command in unique)
        yield Section(head + opening, lines, closing, noun="command")


#: As many characters of a commit as people compare.
_COMMIT: Final = 12


def markdown_text(report: CiReport, *, most_bytes: int = COMMENT_BYTES) -> str:
    options = report.summary_options
    news = [
        *_failed_sections(report),
        *_lost(report),
        *_machine(report),
        *_improved_sections(report),
        *_findings_section(report),
        *_missing_sections(report),
    ]
    folded = [*_environment(report)]
    rows = [_row(judged, verdict) for judged in report.tests for verdict in judged.verdicts]
    if rows:
        head = f"\n{_summary(f'All metrics: {len(rows):,}')}{_HEADING}"
        folded.append(Section(head, tuple(rows), _FOLDED, noun="row"))
    gated = any(judged.verdicts for judged in report.tests)
    sign = "❌" if report.is_bad else "✅" if gated else "⚠️"
    headline = f"{sign} **ttnn-perf: {report.headline}**\n"
    if news:
        counts = count_line(report.tests, failed=len(options.failed))
        headline = f"## {sign} ttnn-perf: {report.headline}\n\n{prose(counts)}\n"
    version = report.run.environment.plugin
    parts = [f"run record {code(report.record)}"] if report.record else []
    parts.append(f"pytest-ttnn-perf {prose(version)}" if version else "pytest-ttnn-perf")
    return _fit_to_size(
        [Section(headline), *news, *folded],
        f"\n<sub>{' · '.join(parts)}</sub>\n",
        most_bytes=most_bytes,
        whole=code(report.record) if report.record else None,
    )


def _lost(report: CiReport) -> Iterator[Section]:
    lost = report.summary_options.health.lost
    if lost:
        head = f"\n### Did not run: {counted(len(lost), 'test')} with a baseline\n\n"
        yield Section(head, tuple(f"- {code(test)}\n" for test in lost), noun="test")


def _machine(report: CiReport) -> Iterator[Section]:
    options = report.summary_options
    if options.shift is not None:
        rerun = options.rerun
        text = f"\n### All tests {'slower' if options.shift.worse else 'faster'}\n\n"
        text += f"{prose(shift_line(options.shift))}\n"
        advice = shift_advice(options.shift, report.tests, rerun, failed=bool(options.failed))
        for line, command in advice:
            text += f"\n{prose(line[:1].upper() + line[1:])}{':' if command else ''}\n"
            text += _code_block(command) if command else ""
        yield Section(text)


def _environment(report: CiReport) -> Iterator[Section]:
    environment = report.run.environment
    own = (judged.observation.hardware or report.run.hardware for judged in report.tests)
    facts = [code(key) for key in sorted({hardware.key for hardware in own if hardware})]
    if environment.ttnn:
        facts.append(f"ttnn {prose(environment.ttnn)}")
    if environment.commit:
        changed = " with changes" if environment.dirty else ""
        facts.append(f"commit {code(environment.commit[:_COMMIT])}{changed}")
    if environment.runner:
        facts.append(f"runner {code(environment.runner)}")
    if facts:
        differs = "; ".join(map(prose, report.differences))
        changed = f"Changed since the baselines were accepted: {differs}.\n" if differs else ""
        yield Section(f"\n**Environment:** {' · '.join(facts)}\n{changed}")
