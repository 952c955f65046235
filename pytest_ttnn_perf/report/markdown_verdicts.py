"""What the gate found, in Markdown: what failed and what to run, what got better, the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.visible import visible
from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.report.fitting import Section
from pytest_ttnn_perf.report.markup import (
    FOLDED,
    code,
    fence,
    fenced,
    heading_rows,
    prose,
    row,
    summary,
)
from pytest_ttnn_perf.report.numbers import format_change, format_fraction, format_value
from pytest_ttnn_perf.report.remedies import remedy_of
from pytest_ttnn_perf.report.sentences import sentence
from pytest_ttnn_perf.report.told import MISSING, Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.verdict import Verdict
    from pytest_ttnn_perf.report.told import Told

_TITLES: Final = ("test", "metric", "baseline", "now", "change", "limit", "verdict")
_NUMERIC: Final = frozenset({2, 3, 4, 5})
#: So many failures are told in full; those after them are folded away.
_OPEN: Final = 3


def failed_sections(told: Told) -> Iterator[Section]:
    """Lay out what failed: a table first, then each test with what did it and what to run."""
    failing = [(judged, _failing(told, judged)) for judged in told.tests]
    failing = [(judged, found) for judged, found in failing if found or judged.observation.problems]
    if not failing:
        return
    rows = [text for judged, found in failing for text in _failed_rows(judged, found)]
    yield Section("\n### Failed\n\n" + _heading(), tuple(rows), noun="row")
    blocks = [_block(told, judged, found) for judged, found in failing]
    yield Section("\n", tuple(blocks[:_OPEN]), noun="test")
    if blocks[_OPEN:]:
        more = summary(f"What to run for {counted(len(blocks) - _OPEN, 'more test')}")
        yield Section(f"\n{more}", tuple(blocks[_OPEN:]), FOLDED, noun="test")


def improved_sections(told: Told) -> Iterator[Section]:
    """Lay out what got better, with the commands that keep it."""
    better = _at(told, Level.NOTICE)
    if not better:
        return
    rows = [_row(judged, verdict) for judged, found in better for verdict in found]
    yield Section("\n### Improved\n\n" + _heading(), tuple(rows), noun="row")
    rerun = told.manner.rerun
    commands = [rerun.updates(judged.observation.test).keep for judged, _ in better]
    yield from _commands("\nKeep it with:\n\n", commands)


def missing_sections(told: Told) -> Iterator[Section]:
    """Lay out the tests that there is nothing to compare with."""
    found = [
        (judged, [v for v in judged.verdicts if v.outcome in MISSING and told.level(judged, v)])
        for judged in told.tests
    ]
    found = [(judged, verdicts) for judged, verdicts in found if verdicts]
    if not found:
        return
    fails = any(told.level(judged, v) is Level.ERROR for judged, vs in found for v in vs)
    title = f"Without a baseline: {counted(len(found), 'test')}{', failed' if fails else ''}"
    rows = [row((code(j.observation.test), _names(vs), prose(sentence(vs[0])))) for j, vs in found]
    table = heading_rows(("test", "metrics", "why"))
    yield Section(f"\n### {title}\n\n{summary('Which')}{table}", tuple(rows), FOLDED, noun="row")
    commands = [
        each.command
        for judged, verdicts in found
        if (each := remedy_of(verdicts[0], told.manner.rerun.updates(judged.observation.test)))
        and each.command
    ]
    yield from _commands("\nRecord them with:\n\n", commands)


def metrics_section(told: Told) -> Section:
    """Lay out everything that was judged, folded away."""
    rows = tuple(_row(judged, each) for judged in told.tests for each in judged.verdicts)
    head = summary(f"All metrics: {len(rows):,}")
    return Section(f"\n{head}{_heading()}", rows, FOLDED, noun="row")


def _failing(told: Told, judged: JudgedTest) -> list[Verdict]:
    return [
        verdict
        for verdict in judged.verdicts
        if told.level(judged, verdict) is Level.ERROR and verdict.outcome not in MISSING
    ]


def _at(told: Told, level: Level) -> list[tuple[JudgedTest, list[Verdict]]]:
    found = [
        (judged, [v for v in judged.verdicts if told.level(judged, v) is level])
        for judged in told.tests
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


def _block(told: Told, judged: JudgedTest, found: Sequence[Verdict]) -> str:
    """Return what is to be known of one failed test: why, which ops did it, and what to run."""
    observation = judged.observation
    lines = [f"**{code(observation.test)}**\n\n"]
    lines += [f"- {prose(problem)}\n" for problem in observation.problems]
    lines += [f"- {verdict.outcome.value}: {prose(sentence(verdict))}\n" for verdict in found]
    if judged.by_op is not None and any(verdict.is_of_changed_time for verdict in found):
        lines.append(f"- by op: {prose(judged.by_op)}\n")
    rerun = told.manner.rerun
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
