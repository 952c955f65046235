"""The journal: kept steps from the first measurement to the last.

For each test the parts sum to the whole: what no kept step explains, such as drift of the machine
or commits that were not tried, has a line of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping  # noqa: TC003  # read when a step is decoded
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import Mark, Omit, Value, decode, decode_format, encode
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.files import read_json, write_text
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Better, Kind, Metric, split_metric
from pytest_ttnn_perf.core.text import counted, duration
from pytest_ttnn_perf.experiments.repository import Repository
from pytest_ttnn_perf.gate.record import ignore_folder
from pytest_ttnn_perf.report.tables import (
    BELOW,
    DROPPED,
    Column,
    Columns,
    Fit,
    Line,
    Listing,
    format_change,
    format_value,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.experiments.repository import State
    from pytest_ttnn_perf.report.tables import Block


#: The version of the step record's schema that this code writes.
STEP_FORMAT: Final = 1
_FOLDER: Final = "steps"


class Decision(Enum):
    """The advice on a change; NOT_COMPARABLE if sides were not measured alike."""

    KEEP = "KEEP"
    REVERT = "REVERT"
    CANNOT_TELL = "CANNOT_TELL"
    NOT_COMPARABLE = "NOT_COMPARABLE"


class Edit(Enum):
    """The reason why two sides are not comparable."""

    TEST = "test edited"
    CONFTEST = "conftest edited"
    CONFIGURATION = "configuration edited"
    BASELINES = "baselines edited"
    TOLERANCE = "tolerance changed"
    LIMIT = "limit changed"
    WAIVER = "waiver changed"
    INPUTS = "inputs changed"
    WARMUP = "warm-up changed"
    ITERATIONS = "iterations changed"
    METRICS = "metric no longer gated"


class Refusal(Struct, frozen=True):
    """A reason why a step is not comparable.

    ``edit`` is the text of an ``Edit``: records of before know more of them.
    """

    edit: str
    sentence: str


class Effect(Struct, frozen=True):
    """The effect of a step on one metric of one test.

    ``change``, ``low`` and ``high`` are fractions, minus is lower; None where a metric is not
    compared by ratio. ``target`` and ``at_least`` are in the unit of the metric.
    """

    test: str
    metric: str
    unit: str
    better: Better
    kind: Kind
    outcome: str
    before: float | None
    after: float | None
    change: Omit[float | None] = None
    low: Omit[float | None] = None
    high: Omit[float | None] = None
    rounds: Omit[int] = 0
    target: Omit[float | None] = None
    at_least: Omit[float | None] = None

    @property
    def defined(self) -> Metric:
        return Metric(self.metric, self.unit, self.better, self.kind)

    @property
    def delta(self) -> float | None:
        if self.before is None or self.after is None:
            return None
        return self.after - self.before


class StepFinding(Struct, frozen=True):
    """A finding of one test; ``saving_ns`` is without what others save.

    Of those that a step closed, the one that saves most counts whole. ``gaps_ns`` of it are gaps
    between ops.
    """

    test: str
    code: str
    name: str
    saving_ns: Omit[float | None] = None
    fix: Omit[str | None] = None
    region: Omit[str] = ""
    at_most: Omit[bool] = False
    gaps_ns: Omit[float] = 0.0


class Prediction(Struct, frozen=True):
    """The savings that closed findings promised, and the measured one."""

    test: str
    codes: tuple[str, ...]
    metric: str
    predicted_ns: float
    measured_ns: float
    at_most: Omit[bool] = False


class Situation(Struct, frozen=True):
    """The state of one test after a step; None where unknown.

    ``roofline_ns`` is the least time of its ops on the chip, of ``kernel_ns``.
    """

    test: Annotated[str, Mark.KEY]
    bottleneck: Omit[str | None] = None
    kernel_ns: Omit[float | None] = None
    roofline_ns: Omit[float | None] = None
    by_op: Omit[str | None] = None
    clock_mhz: Omit[float | None] = None


class Step(Struct, frozen=True):
    """A step; ``base`` and ``state`` are commits that hold both sides.

    ``head`` is what was checked out. ``candidates`` are the findings that would save most now.
    """

    id: str
    at: str
    message: str
    decision: Decision
    reasons: tuple[str, ...]
    base: str
    base_tree: str
    state: str
    state_tree: str
    head: str
    rounds: int
    effects: tuple[Effect, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    opened: tuple[StepFinding, ...] = ()
    closed: tuple[StepFinding, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    candidates: tuple[StepFinding, ...] = ()
    situations: Mapping[str, Situation] = {}
    order_seed: Omit[int | None] = None
    approved_by: Omit[str | None] = None

    @property
    def is_kept(self) -> bool:
        return self.decision is Decision.KEEP


def decode_step(document: object) -> Step:
    decode_format(Value(document), current=STEP_FORMAT, what="a step record")
    return decode(Step, document)


def read_steps(artifacts: Path) -> list[Step]:
    return [read_json(file, decode_step) for file in sorted((artifacts / _FOLDER).glob("*.json"))]


def write_step(artifacts: Path, step: Step) -> Path:
    ignore_folder(artifacts)
    file = artifacts / _FOLDER / f"{step.id}.json"
    document = {"format": STEP_FORMAT, **encode(step)}
    write_text(file, json.dumps(document, indent=1) + "\n")
    return file


def change_text(effect: Effect | None) -> str:
    return format_change(effect.change) if effect and effect.low is not None else "-"


def effect_interval(effect: Effect | None) -> str:
    if effect is None or effect.low is None or effect.high is None:
        return "-"
    return f"{format_change(effect.low)} to {format_change(effect.high)}"


#: The times of a test, the one that its users wait for first.
_MAIN: Final = ("wall_time", "throughput_time", "sim_time", "sim_throughput_time", "call_time")


def main_time(test: str, effects: Sequence[Effect]) -> Effect | None:
    """Return the effect on the time that matters most; None without any."""
    own = [each for each in effects if each.test == test and each.kind is Kind.TIME]
    order = {name: place for place, name in enumerate(_MAIN)}
    return min(own, key=lambda effect: order.get(effect.metric, len(_MAIN)), default=None)


# The base: what is committed is kept. So is a state with KEEP, until something else is committed: a
# user may commit each kept step, or none of them.


class Base(Struct, frozen=True):
    """The state that a step is compared with."""

    name: str
    state: State
    words: str
    note: str | None = None


def base_of(states: Repository, now: State, steps: Sequence[Step], asked: str | None) -> Base:
    head = states.commit("HEAD")
    is_committed = states.of(head.id).tree == now.tree
    gone = gone_steps(states, now, steps)
    kept = next((s for s in reversed(steps) if s.id not in gone and _may_be_base(states, s)), None)
    if asked is not None:
        base = _commit_base(states, asked, asked)
    elif kept is not None and (is_committed or kept.head == head.id):
        base = Base("kept", states.of(kept.state), f"kept step {kept.message!r}")
    elif not is_committed:
        base = _commit_base(states, "HEAD", "HEAD")
        last = next((step.message for step in reversed(steps) if step.id in gone), None)
        if last is not None:
            base = replace(base, note=f"kept step {last!r} is not in this tree")
    elif (fork := states.merge_base()) is not None:
        base = _commit_base(states, "merge base", fork)
        base = replace(base, words=f"{base.words}, where the branch begins")
    else:
        raise UsageError(
            "nothing to try: the working tree is as committed, and no step was kept before; "
            "change the model, or name what to compare with: --base REF"
        )
    if base.state.tree == now.tree:
        raise UsageError(f"nothing to try: the working tree is the same as {base.words}")
    return base


def _commit_base(states: Repository, name: str, ref: str) -> Base:
    commit = states.commit(ref)
    return Base(name, states.of(commit.id), f"{commit.short} {commit.subject}".strip())


def steps_of_branch(folder: Path, steps: Sequence[Step]) -> tuple[list[Step], frozenset[str]]:
    """Return the steps of this history, and the ids of discarded ones."""
    if not steps:
        return [], frozenset()
    states = Repository.around(folder)
    heads = {head: states.descends_from(head) for head in {step.head for step in steps}}
    found = [step for step in steps if heads[step.head]]
    return found, gone_steps(states, states.now(), found)


def gone_steps(states: Repository, now: State, steps: Sequence[Step]) -> frozenset[str]:
    """Return the ids of kept steps that left nothing in what followed.

    The next kept step began without them, or the working tree is without them.
    """
    gone = []
    for step in reversed(steps):
        if _may_be_base(states, step):
            if _is_undone(states, step, now):
                gone.append(step.id)
            else:
                now = states.of(step.base)
    return frozenset(gone)


def _may_be_base(states: Repository, step: Step) -> bool:
    return step.is_kept and states.descends_from(step.head) and states.has(step.state)


def _is_undone(states: Repository, step: Step, now: State) -> bool:
    """Check that a step's own lines are gone, and removed ones back.

    Lines are those that differ from the commit before it: a later step may have gone on from it in
    the same lines.
    """
    committed, after = states.of(step.head), states.of(step.state)
    for path in states.changed_files(states.of(step.base), after):
        then, later, lines = (
            set(states.text(state, path).splitlines()) for state in (committed, after, now)
        )
        added, removed = later - then, then - later
        if not (added or removed) or added & lines or removed - lines:
            return False
    return True


#: Sums of floats are off by less.
_ROUNDING: Final = 1e-12


class Part(Struct, frozen=True):
    """One step of a test, with its effects on what matters most.

    It ``leads`` to what there is now, or counts nothing.
    """

    number: int
    step: Step
    leads: bool
    effect: Effect | None
    device: Effect | None
    accuracy: Effect | None

    @property
    def counts(self) -> float:
        return (self.leads and self.effect and self.effect.delta) or 0.0


class Figures(NamedTuple):
    """Numbers of a kernel before a step, or after it."""

    cycles: float | None
    gb_s: float | None
    cores: float | None


def _figures(part: Part) -> tuple[Figures, Figures] | None:
    """Return the known numbers of the only kernel of a test."""
    if part.device is None:
        return None
    own = {each.metric: each for each in part.step.effects if each.test == part.device.test}
    situation, found = part.step.situations.get(part.device.test), []
    for side in ("before", "after"):
        time_ns, read, written, cores = (
            getattr(own.get(name), side, None) for name in (KERNEL_TIME, *_TRAFFIC, "kernel_cores")
        )
        clock_mhz = situation and situation.clock_mhz
        cycles = time_ns * clock_mhz / 1000 if time_ns and clock_mhz else None
        moved = None if read is None or written is None else read + written
        rate = moved / time_ns if moved is not None and time_ns else None
        found.append(Figures(cycles, rate, cores))
    return found[0], found[1]


_TRAFFIC: Final = ("kernel_dram_read_bytes", "kernel_dram_write_bytes")


def _figure(name: str, shape: str) -> Column[Part]:
    """Return the column of a number before and after each step."""

    def pair(part: Part) -> list[float | None] | None:
        sides = [getattr(side, name) for side in _figures(part) or ()]
        return sides if any(each is not None for each in sides) else None

    def text(part: Part) -> str:
        sides = ("?" if each is None else format(each, shape) for each in pair(part) or ())
        return " → ".join(sides) or "-"

    heading = "GB/s" if name == "gb_s" else name
    return Column(name, pair, heading, text, right=True, fit=DROPPED[1])


def _part(number: int, step: Step, test: str, metric: str, *, leads: bool) -> Part:
    own = {each.metric: each for each in step.effects if each.test == test}
    # Where several regions have kernel times, no one of them is that of the test.
    kernels = [effect for name, effect in own.items() if split_metric(name)[0] == KERNEL_TIME]
    device = own.get(KERNEL_TIME) or (kernels[0] if len(kernels) == 1 else None)
    accuracy = next((each for each in own.values() if each.kind is Kind.ACCURACY), None)
    return Part(number, step, leads, own.get(metric), device, accuracy)


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
        return self.now / self.first - 1

    @property
    def to_target(self) -> float | None:
        """The distance to the target; not above 0 once reached."""
        if self.target is None:
            return None
        missing = self.now - self.target
        return -missing if self.metric.better is Better.HIGHER else missing


def ways_of(steps: Sequence[Step], gone: Collection[str] = ()) -> list[Way]:
    """Return the ways of all tests; steps that are ``gone`` count nothing."""
    tests = dict.fromkeys(effect.test for step in steps for effect in step.effects)
    return [way for test in tests if (way := _way(test, steps, gone)) is not None]


def _way(test: str, steps: Sequence[Step], gone: Collection[str]) -> Way | None:
    main = (_main_effect(test, step.effects) for step in steps)
    name = next((effect.metric for effect in main if effect), "")
    parts = [
        _part(number, step, test, name, leads=step.is_kept and step.id not in gone)
        for number, step in enumerate(steps, start=1)
    ]
    measured = [
        (part, effect, effect.before, effect.after)
        for part in parts
        if (effect := part.effect) and effect.before and effect.after is not None
    ]
    if not measured:
        return None
    # A step that was not kept has measured once more what there is without it, unless it began
    # where a kept one did: then it is from before that. Nor is an old commit what there is now.
    left = {part.step.base_tree for part, *_ in measured if part.leads}
    reached = {part.step.state_tree for part, *_ in measured if part.leads}
    _, effect, first, _ = measured[0]
    metric, now, target, situation = effect.defined, first, effect.target, None
    for part, effect, before, after in measured:
        step = part.step
        is_now = step.base_tree in reached or step.base == step.head
        if part.leads:
            now, target = after, effect.target
            situation = step.situations.get(test, situation)
        elif not step.is_kept and step.base_tree not in left and is_now:
            now, target = before, effect.target
    return Way(test, metric, first, now, tuple(parts), target, situation)


def _main_effect(test: str, effects: Sequence[Effect]) -> Effect | None:
    rates = (e for e in effects if e.test == test and e.kind is Kind.THROUGHPUT)
    return main_time(test, effects) or next(rates, None)


def journal_listing(steps: Sequence[Step], ways: Sequence[Way]) -> Listing:
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
        yield from _remaining(way)
    if not ways:
        yield from (f"{step.decision.value}: {step.message}" for step in steps)


def _count_line(steps: Sequence[Step], ways: Sequence[Way]) -> str:
    numbers = Counter(step.decision for step in steps)
    kept = numbers.pop(Decision.KEEP, 0)
    leading = len({part.step.id for way in ways for part in way.parts if part.leads})
    replaced = f", {kept - leading} kept and discarded since" if kept > leading else ""
    more = "".join(f", {numbers[each]} {each.value}" for each in Decision if numbers[each])
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
    if step.is_kept or not step.reasons:
        return f"approved by {step.approved_by}" if step.approved_by else ""
    return step.reasons[0]


def _signed(metric: Metric, value: float, beside: float | None) -> str:
    return f"{'+' if value > 0 else ''}{format_value(metric, value, beside=beside)}"


def _counts(part: Part) -> str:
    effect = part.effect
    if effect is None or not part.leads:
        return "-"
    return _signed(effect.defined, part.counts, effect.before)


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
           lambda p: format_value(p.accuracy.defined, p.accuracy.after) if p.accuracy else "-",
           right=True, fit=DROPPED[3]),
    *(_figure(*each) for each in (("cycles", ",.0f"), ("gb_s", ".1f"), ("cores", ",.0f"))),
    Column("counts", lambda p: p.counts, "counts", _counts, right=True),
    Column("why", _why, "why", fit=BELOW),
)  # fmt: skip


def _remaining(way: Way) -> Iterator[str]:
    metric, missing = way.metric, way.to_target
    yield f"not explained by steps: {_signed(metric, way.unexplained, way.first)}"
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
            f"roofline: ops whose work is known take {duration(situation.kernel_ns)}, of which "
            f"{duration(max(over, 0.0))} are above the least the chip needs"
        )
    if situation.bottleneck is not None:
        yield f"bottleneck: {situation.bottleneck}"


def _document(steps: Sequence[Step], ways: Sequence[Way]) -> dict[str, object]:
    return {
        "format": STEP_FORMAT,
        "steps": [
            {
                **_members(step, "id", "at", "message", "approved_by"),
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
