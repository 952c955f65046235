"""The journal: kept steps from the first measurement to the last.

For each test the parts sum to the whole: what no kept step explains, such as drift of the machine
or commits that were not tried, has a line of its own.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Better, Kind, split_metric
from pytest_ttnn_perf.core.text import counted, visible
from pytest_ttnn_perf.experiments.steps import (
    STEP_FORMAT,
    Decision,
    change_text,
    effect_interval,
    main_time,
    read_steps,
    steps_of_branch,
)
from pytest_ttnn_perf.report.markdown import code, heading_rows, prose, table_row
from pytest_ttnn_perf.report.tables import (
    BELOW,
    DROPPED,
    Column,
    Columns,
    Fit,
    Line,
    Listing,
    display_unit,
    format_change,
    format_ns,
    format_value,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.experiments.steps import Effect, Situation, Step
    from pytest_ttnn_perf.report.tables import Block


#: Sums of floats are off by less.
_ROUNDING: Final = 1e-12


class Part(Struct, frozen=True):
    """One step of a test; ``effect`` is that on its main metric.

    ``counts`` is what it adds to the whole, in the unit of the metric: nothing where it does not
    ``lead`` to what there is now.
    """

    number: int
    step: Step
    leads: bool
    effect: Effect | None
    device: Effect | None
    accuracy: Effect | None
    counts: float


class Way(Struct, frozen=True):
    """The steps of one test, which sum from ``first`` to ``now``."""

    test: str
    metric: Metric
    first: float
    now: float
    parts: tuple[Part, ...]
    target: float | None
    situation: Situation | None

    @property
    def unexplained(self) -> float:
        """The change that the kept steps do not explain."""
        rest = self.now - self.first - sum(part.counts for part in self.parts)
        return 0.0 if abs(rest) < _ROUNDING * self.first else rest

    @property
    def change(self) -> float:
        """Relative change since the beginning."""
        return self.now / self.first - 1

    @property
    def to_target(self) -> float | None:
        """The distance to the target; not above 0 once reached."""
        if self.target is None:
            return None
        missing = self.now - self.target
        return -missing if self.metric.better is Better.HIGHER else missing


def ways_of(steps: Sequence[Step], gone: Collection[str] = ()) -> list[Way]:
    """Return the way of each test that steps have measured.

    ``gone`` are the ids of kept steps that were discarded since.
    """
    tests = dict.fromkeys(effect.test for step in steps for effect in step.effects)
    leading = leading_steps([step for step in steps if step.id not in gone])
    return [way for test in tests if (way := _way(test, steps, leading)) is not None]


def leading_steps(steps: Sequence[Step]) -> frozenset[str]:
    """Return the ids of steps that lead to the last kept state.

    One that begins where another began is tried in its place, or for the second time: the other,
    and all that followed it, lead nowhere. After commits that were not tried, a step goes on from
    the last one.
    """
    now: tuple[Step, ...] = ()
    leading_to: dict[str, tuple[Step, ...]] = {}
    for step in steps:
        if step.is_kept:
            before = leading_to.setdefault(step.base_tree, now)
            now = leading_to[step.state_tree] = (*before, step)
    return frozenset(step.id for step in now)


def _way(test: str, steps: Sequence[Step], leading: frozenset[str]) -> Way | None:
    main = (_main_effect(test, step.effects) for step in steps)
    name = next((effect.metric for effect in main if effect), "")
    parts = [
        _part(number, step, test, name, leads=step.id in leading)
        for number, step in enumerate(steps, start=1)
    ]
    measured = [
        (part, part.effect)
        for part in parts
        if part.effect and part.effect.before and part.effect.after is not None
    ]
    if not measured:
        return None
    first = measured[0][1]
    # A step that was not kept has measured once more what there is without it, unless it began
    # where a kept one did: then it is from before that. Nor is an old commit what there is now.
    left = {part.step.base_tree for part, _ in measured if part.leads}
    reached = {part.step.state_tree for part, _ in measured if part.leads}
    now, target = first.before, first.target
    for part, effect in measured:
        step = part.step
        is_now = step.base_tree in reached or step.base == step.head
        if part.leads:
            now, target = effect.after, effect.target
        elif not step.is_kept and step.base_tree not in left and is_now:
            now, target = effect.before, effect.target
    assert first.before is not None
    assert now is not None
    kept = (part.step for part, _ in measured if part.leads)
    situations = [step.situations[test] for step in kept if test in step.situations]
    situation = situations[-1] if situations else None
    return Way(test, first.defined, first.before, now, tuple(parts), target, situation)


def _main_effect(test: str, effects: Sequence[Effect]) -> Effect | None:
    rates = (e for e in effects if e.test == test and e.kind is Kind.THROUGHPUT)
    return main_time(test, effects) or next(rates, None)


def _part(number: int, step: Step, test: str, name: str, *, leads: bool) -> Part:
    own = {effect.metric: effect for effect in step.effects if effect.test == test}
    effect = own.get(name)
    accuracy = next((each for each in own.values() if each.kind is Kind.ACCURACY), None)
    kernels = [each for metric, each in own.items() if split_metric(metric)[0] == KERNEL_TIME]
    # Where several regions have kernel times, no one of them is that of the test.
    device = own.get(KERNEL_TIME) or (kernels[0] if len(kernels) == 1 else None)
    counts = effect.delta if effect is not None and leads else None
    return Part(number, step, leads, effect, device, accuracy, counts or 0.0)


_BAR: Final = 24
_UNEXPLAINED: Final = "not explained by steps"


def journal_listing(steps: Sequence[Step], ways: Sequence[Way]) -> Listing:
    """Lay out a journal for a terminal and for programs."""
    parts = [(way, part) for way in ways for part in way.parts]
    rows = tuple((way.test, *row) for way, part in parts for row in _PARTS.rows([part]))
    headings = ("test", *_PARTS.names)
    return Listing(tuple(_lines(steps, ways)), _document(steps, ways), headings, rows)


def _lines(steps: Sequence[Step], ways: Sequence[Way]) -> Iterator[Block]:
    yield _count_line(steps, ways)
    for way in ways:
        yield ""
        yield Line(_title(way), good=(way.to_target or 0.0) <= 0 and way.target is not None)
        yield ""
        yield from _PARTS.table(way.parts)
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


def _why(part: Part) -> str:
    """Return why a step counts nothing, in its first reason."""
    step = part.step
    if step.is_kept and not part.leads:
        return "discarded: it is not in this tree, or a later step began where it did"
    if step.refusals:
        return f"{step.refusals[0].edit}: {step.refusals[0].sentence}"
    return "" if step.is_kept or not step.reasons else step.reasons[0]


def _accuracy(effect: Effect | None) -> str:
    return format_value(effect.defined, effect.after) if effect else "-"


_PARTS: Final[Columns[Part]] = Columns(
    Column("number", lambda p: p.number, "step", right=True),
    Column("message", lambda p: p.step.message, "change", fit=Fit(least=16)),
    Column("decision", lambda p: p.step.decision.value, "answer"),
    Column("effect", lambda p: p.effect and p.effect.change, "effect",
           lambda p: change_text(p.effect), right=True),
    Column("low", lambda p: p.effect and p.effect.low, "interval",
           lambda p: effect_interval(p.effect), right=True, fit=DROPPED[1]),
    Column("high", lambda p: p.effect and p.effect.high),
    Column("device", lambda p: p.device and p.device.change, "device",
           lambda p: change_text(p.device), right=True, fit=DROPPED[2]),
    Column("accuracy", lambda p: p.accuracy and p.accuracy.after, "accuracy",
           lambda p: _accuracy(p.accuracy), right=True, fit=DROPPED[3]),
    Column("counts", lambda p: p.counts),
    Column("why", _why, "why", fit=BELOW),
)  # fmt: skip


def _waterfall(way: Way) -> list[tuple[str, str, str]]:
    """Return lines whose values sum: a name, a value and its bar."""
    changes = [(part.step.message, part.counts) for part in way.parts if part.leads]
    changes.append((_UNEXPLAINED, way.unexplained))
    levels = [*accumulate((change for _, change in changes), initial=way.first)]
    most, metric = max(*levels[:-1], way.now), way.metric

    def bar(start: float, end: float) -> str:
        left, right = (round(_BAR * place / most) for place in sorted((start, end)))
        return " " * left + "#" * (right - left)

    lines = [("baseline", format_value(metric, way.first), bar(0.0, way.first))]
    for (name, change), (start, end) in zip(changes, pairwise(levels), strict=True):
        value = f"{'+' if change > 0 else ''}{format_value(metric, change, beside=way.first)}"
        lines.append((name[:40], value, bar(start, end)))
    now = format_value(metric, way.now, beside=way.first)
    return [*lines, ("now", now, bar(0.0, levels[-1]))]


def _remaining(way: Way) -> Iterator[str]:
    """Yield the distances to target and roofline, and the bottleneck."""
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
        name = code(way.metric.name)
        titles = ("step", "change", "answer", name, "interval", "device", "accuracy")
        rows = [heading_rows(titles, right=frozenset({0, 3, 4, 5, 6}))]
        for part in way.parts:
            cells = (
                str(part.number),
                part.step.message,
                part.step.decision.value,
                change_text(part.effect),
                effect_interval(part.effect),
                change_text(part.device),
                _accuracy(part.accuracy),
            )
            rows.append(table_row([prose(cell) for cell in cells]))
        sums = [heading_rows(("from", name), right=frozenset({1}))]
        sums += [table_row([prose(name), prose(value)]) for name, value, _ in _waterfall(way)]
        title = _title(way).removeprefix(way.test).strip()
        parts += [f"#### {code(way.test)}\n", f"{prose(title)}\n", "".join(rows), "".join(sums)]
        remaining = "".join(f"- {prose(line)}\n" for line in _remaining(way))
        parts += [remaining] if remaining else []
    return "\n".join(parts)


def journals_of(
    artifacts: Path, folder: Path
) -> tuple[tuple[dict[str, Any], ...], tuple[str, ...]]:
    """Return the ways of all tests for a page, and its notes.

    A record that cannot be read costs a page no more than these.
    """
    try:
        steps, gone = steps_of_branch(folder, read_steps(artifacts))
        return tuple(map(_page_journal, ways_of(steps, gone))), ()
    except UsageError:  # no repository is here, so no step leads to it
        return (), ()
    except InputError as error:
        return (), (f"no optimization steps: {error}",)


def _page_journal(way: Way) -> dict[str, Any]:
    unit, scale = display_unit(way.metric, way.first)
    return {
        "test": visible(way.test),
        "metric": way.metric.name,
        "unit": unit,
        "scale": scale,
        "first": way.first,
        "now": way.now,
        "steps": [
            {
                "message": visible(part.step.message),
                "decision": part.step.decision.value,
                "kept": part.leads,
                "change": part.effect.change if part.effect else None,
                "low": part.effect.low if part.effect else None,
                "high": part.effect.high if part.effect else None,
                "device": part.device.change if part.device else None,
                "accuracy": part.accuracy.after if part.accuracy else None,
                "why": visible(_why(part)),
            }
            for part in way.parts
        ],
        "remaining": [visible(line) for line in _remaining(way)],
    }


def _document(steps: Sequence[Step], ways: Sequence[Way]) -> dict[str, object]:
    return {
        "format": STEP_FORMAT,
        "steps": [
            {
                **_members(step, "id", "at", "message"),
                "decision": step.decision.value,
                "reasons": list(step.reasons),
                "refusals": [each.edit for each in step.refusals],
                **_members(step, "base", "state"),
                "predictions": [
                    _members(each, "test", "codes", "metric", "predicted_ns", "measured_ns")
                    for each in step.predictions
                ],
            }
            for step in steps
        ],
        "tests": [
            {
                "test": way.test,
                "metric": way.metric.name,
                "unit": way.metric.unit,
                **_members(way, "first", "now", "change"),
                "parts": _PARTS.objects(way.parts),
                **_members(way, "unexplained", "target", "to_target"),
                **_members(way.situation, "kernel_ns", "roofline_ns", "bottleneck"),
            }
            for way in ways
        ],
    }


def _members(record: object, *names: str) -> dict[str, object]:
    return {name: getattr(record, name, None) for name in names}
