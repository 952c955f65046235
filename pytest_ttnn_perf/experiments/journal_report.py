"""The journal, laid out: for a terminal, for a pull request, and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.text import counted, visible
from pytest_ttnn_perf.experiments.journal import ways_of
from pytest_ttnn_perf.experiments.kept_state import read_steps, steps_of_branch
from pytest_ttnn_perf.records.step import STEP_FORMAT, Decision
from pytest_ttnn_perf.report.layout import BELOW, DROPPED, Fit, Line
from pytest_ttnn_perf.report.markdown import code, heading_rows, prose, table_row
from pytest_ttnn_perf.report.numbers import (
    Column,
    Columns,
    Listing,
    display_unit,
    format_change,
    format_ns,
    format_value,
)
from pytest_ttnn_perf.report.page.contents import PageJournal, PageStep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.experiments.journal import Part, Way
    from pytest_ttnn_perf.records.step import Effect, Step
    from pytest_ttnn_perf.report.layout import Block


_BAR: Final = 24
_UNEXPLAINED: Final = "not explained by steps"


def journal_listing(steps: Sequence[Step], ways: Sequence[Way]) -> Listing:
    """Lay out a journal for a terminal and for programs."""
    columns = part_columns()
    parts = [(way, part) for way in ways for part in way.parts]
    rows = tuple((way.test, *row) for way, part in parts for row in columns.rows([part]))
    headings = ("test", *columns.names)
    return Listing(tuple(_lines(steps, ways)), _document(steps, ways), headings, rows)


def _lines(steps: Sequence[Step], ways: Sequence[Way]) -> Iterator[Block]:
    yield _count_line(steps, ways)
    for way in ways:
        yield ""
        yield Line(_title(way), good=(way.to_target or 0.0) <= 0 and way.target is not None)
        yield ""
        yield from part_columns().table(way.parts)
        yield ""
        widest = max(len(name) for name, *_ in _waterfall(way))
        for name, value, bar in _waterfall(way):
            yield Line(f"  {name:<{widest}}  {value:>12}  {bar}".rstrip(), drawn=True)
        yield ""
        yield from _remaining(way)
    if not ways:
        yield from (f"{step.decision.value}: {step.message}" for step in steps)


def _count_line(steps: Sequence[Step], ways: Sequence[Way]) -> str:
    kept = sum(step.is_kept for step in steps)
    leading = len({part.step.id for way in ways for part in way.parts if part.leads})
    replaced = f", {kept - leading} kept and discarded since" if kept > leading else ""
    others = {
        decision: sum(step.decision is decision for step in steps)
        for decision in Decision
        if decision is not Decision.KEEP
    }
    more = "".join(f", {number} {each.value}" for each, number in others.items() if number)
    return f"{counted(len(steps), 'step')}: {leading} kept{replaced}{more}"


def _title(way: Way) -> str:
    metric = way.metric
    now = format_value(metric, way.now, beside=way.first)
    ends = f"{format_value(metric, way.first)} → {now}"
    return f"{way.test} {metric.name}: {ends} ({format_change(way.change)})"


def part_columns() -> Columns[Part]:
    """Return the columns of the steps of one test."""
    return Columns(
        Column("number", lambda p: p.number, "step", right=True),
        Column("message", lambda p: p.step.message, "change", fit=Fit(least=16)),
        Column("decision", lambda p: p.step.decision.value, "answer"),
        Column("effect", lambda p: p.effect and p.effect.change, "effect",
               lambda p: _change(p.effect), right=True),
        Column("low", lambda p: p.effect and p.effect.low, "interval",
               lambda p: _interval(p.effect), right=True, fit=DROPPED[1]),
        Column("high", lambda p: p.effect and p.effect.high),
        Column("device", lambda p: p.device and p.device.change, "device",
               lambda p: _change(p.device), right=True, fit=DROPPED[2]),
        Column("accuracy", lambda p: p.accuracy and p.accuracy.after, "accuracy",
               lambda p: _accuracy(p.accuracy), right=True, fit=DROPPED[3]),
        Column("counts", lambda p: p.counts),
        Column("why", _why, "why", fit=BELOW),
    )  # fmt: skip


def _why(part: Part) -> str:
    """Return why a step counts nothing, in its first reason."""
    step = part.step
    if step.is_kept and not part.leads:
        return "discarded: it is not in this tree, or a later step began where it did"
    if step.refusals:
        return f"{step.refusals[0].edit}: {step.refusals[0].sentence}"
    return "" if step.is_kept or not step.reasons else step.reasons[0]


def _change(effect: Effect | None) -> str:
    return format_change(effect.change) if effect and effect.low is not None else "-"


def _interval(effect: Effect | None) -> str:
    if effect is None or effect.low is None or effect.high is None:
        return "-"
    return f"{format_change(effect.low)} to {format_change(effect.high)}"


def _accuracy(effect: Effect | None) -> str:
    return format_value(effect.defined, effect.after) if effect else "-"


def _waterfall(way: Way) -> list[tuple[str, str, str]]:
    """Return the lines whose values sum: a name, a value and its bar, from where the last ended."""
    most = max(way.first, way.now, *_levels(way))
    metric = way.metric
    lines = [("baseline", format_value(metric, way.first), _bar(0.0, way.first, most))]
    level = way.first
    changes = [(part.step.message, part.counts) for part in way.parts if part.leads]
    for name, change in (*changes, (_UNEXPLAINED, way.unexplained)):
        value = _signed(format_value(metric, change, beside=way.first), change)
        lines.append((name[:40], value, _bar(level, level + change, most)))
        level += change
    return [
        *lines,
        ("now", format_value(metric, way.now, beside=way.first), _bar(0.0, level, most)),
    ]


def _levels(way: Way) -> Iterator[float]:
    level = way.first
    for part in way.parts:
        level += part.counts
        yield level


def _bar(start: float, end: float, most: float) -> str:
    left, right = (round(_BAR * place / most) for place in sorted((start, end)))
    return " " * left + "#" * (right - left)


def _signed(text: str, value: float) -> str:
    return f"+{text}" if value > 0 else text


def _remaining(way: Way) -> Iterator[str]:
    """Yield what is left: to the target, to the roofline, and what is in the way."""
    metric, missing = way.metric, way.to_target
    if missing is not None:
        target = format_value(metric, way.target)
        left = format_value(metric, abs(missing), beside=way.target)
        yield f"target {target}: {'reached' if missing <= 0 else f'{left} to go'}"
    situation = way.situation
    if situation is None:
        return
    if situation.kernel_ns is not None and situation.roofline_ns is not None:
        over = situation.kernel_ns - situation.roofline_ns
        yield (
            f"roofline: ops whose work is known take {format_ns(situation.kernel_ns)}, of which "
            f"{format_ns(max(over, 0.0))} are above the least the chip needs"
        )
    if situation.bottleneck is not None:
        yield f"bottleneck: {situation.bottleneck}"


def journal_markdown(steps: Sequence[Step], ways: Sequence[Way]) -> str:
    """Return a journal for the text of a pull request."""
    parts = ["### Optimization steps\n", f"{prose(_count_line(steps, ways))}\n"]
    for way in ways:
        title = _title(way).removeprefix(way.test).strip()
        parts += [f"#### {code(way.test)}\n", f"{prose(title)}\n"]
        parts += ["".join(_steps_markdown(way)), "".join(_waterfall_markdown(way))]
        remaining = "".join(f"- {prose(line)}\n" for line in _remaining(way))
        parts += [remaining] if remaining else []
    return "\n".join(parts)


def _steps_markdown(way: Way) -> Iterator[str]:
    titles = ("step", "change", "answer", code(way.metric.name), "interval", "device", "accuracy")
    yield heading_rows(titles, right=frozenset({0, 3, 4, 5, 6}))
    for part in way.parts:
        effect = part.effect
        cells = (
            str(part.number),
            part.step.message,
            part.step.decision.value,
            _change(effect),
            _interval(effect),
            _change(part.device),
            _accuracy(part.accuracy),
        )
        yield table_row([prose(cell) for cell in cells])


def _waterfall_markdown(way: Way) -> Iterator[str]:
    yield heading_rows(("from", code(way.metric.name)), right=frozenset({1}))
    for name, value, _ in _waterfall(way):
        yield table_row([prose(name), prose(value)])


def journals_of(artifacts: Path, folder: Path) -> tuple[tuple[PageJournal, ...], tuple[str, ...]]:
    """Return the ways of all tests that lead to what is checked out, for a page, and its notes.

    A record that cannot be read costs a page no more than these.
    """
    try:
        steps, gone = steps_of_branch(folder, read_steps(artifacts))
        return tuple(map(_page_journal, ways_of(steps, gone))), ()
    except UsageError:  # no repository is here, so no step leads to it
        return (), ()
    except InputError as error:
        return (), (f"no optimization steps: {error}",)


def _page_journal(way: Way) -> PageJournal:
    unit, scale = display_unit(way.metric, way.first)
    return PageJournal(
        visible(way.test),
        way.metric.name,
        unit,
        scale,
        way.first,
        way.now,
        tuple(map(_page_step, way.parts)),
        tuple(map(visible, _remaining(way))),
    )


def _page_step(part: Part) -> PageStep:
    step, effect, device, accuracy = part.step, part.effect, part.device, part.accuracy
    return PageStep(
        visible(step.message),
        step.decision.value,
        part.leads,
        change=effect.change if effect else None,
        low=effect.low if effect else None,
        high=effect.high if effect else None,
        device=device.change if device else None,
        accuracy=accuracy.after if accuracy else None,
        why=visible(_why(part)),
    )


def _document(steps: Sequence[Step], ways: Sequence[Way]) -> dict[str, object]:
    return {
        "format": STEP_FORMAT,
        "steps": [
            {
                "id": step.id,
                "at": step.at,
                "message": step.message,
                "decision": step.decision.value,
                "reasons": list(step.reasons),
                "refusals": [each.edit for each in step.refusals],
                "base": step.base,
                "state": step.state,
                "predictions": [
                    {
                        "test": each.test,
                        "codes": list(each.codes),
                        "metric": each.metric,
                        "predicted_ns": each.predicted_ns,
                        "measured_ns": each.measured_ns,
                    }
                    for each in step.predictions
                ],
            }
            for step in steps
        ],
        "tests": [_way_document(way) for way in ways],
    }


def _way_document(way: Way) -> dict[str, object]:
    situation = way.situation
    return {
        "test": way.test,
        "metric": way.metric.name,
        "unit": way.metric.unit,
        "first": way.first,
        "now": way.now,
        "change": way.change,
        "parts": part_columns().objects(way.parts),
        "unexplained": way.unexplained,
        "target": way.target,
        "to_target": way.to_target,
        "kernel_ns": situation and situation.kernel_ns,
        "roofline_ns": situation and situation.roofline_ns,
        "bottleneck": situation and situation.bottleneck,
    }
