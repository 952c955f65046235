"""Records of optimization steps, and the base of the next one."""

from __future__ import annotations

import json
from collections.abc import Mapping  # noqa: TC003  # read when a step is decoded
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Struct

from pytest_ttnn_perf.core.codec import Mark, Omit, Value, decode, decode_format, encode
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.files import read_json, write_text
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.gate.record import ignore_folder
from pytest_ttnn_perf.machine.git import Repository
from pytest_ttnn_perf.report.tables import format_change

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.machine.git import State

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

    ``change``, ``low`` and ``high`` are fractions as read from two values: minus is lower. The
    interval is None where a metric is not compared by ratio. ``target`` and ``at_least`` are in the
    unit of the metric.
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
        """The metric itself."""
        return Metric(self.metric, self.unit, self.better, self.kind)

    @property
    def delta(self) -> float | None:
        """The difference in the unit of the metric."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before


class StepFinding(Struct, frozen=True):
    """A finding of one test; ``saving_ns`` is without what others save.

    Of the findings that a step closed, the one that saves most counts whole: what it has in common
    with findings that stay is saved all the same. ``gaps_ns`` of it are gaps between ops.
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
    """The savings that closed findings promised, and the measured one.

    ``at_most``: one of them promised no more than a bound.
    """

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


class Receipt(Struct, frozen=True):
    """Content hashes of the files that both sides had in common.

    ``diff`` is a hash of all that the step changed.
    """

    diff: str
    files: Mapping[str, str] = {}


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
    receipt: Omit[Receipt | None] = None

    @property
    def is_kept(self) -> bool:
        """Later steps are compared with it."""
        return self.decision is Decision.KEEP


def encode_step(step: Step) -> dict[str, object]:
    """Encode a step record."""
    return {"format": STEP_FORMAT, **encode(step)}


def decode_step(document: object) -> Step:
    """Decode a step record.

    Raises:
        DecodeError: with the path of the value that is not what it should be.
    """
    decode_format(Value(document), current=STEP_FORMAT, what="a step record")
    return decode(Step, document)


def read_steps(artifacts: Path) -> list[Step]:
    """Return the recorded steps, oldest first.

    Raises:
        InputError: a record cannot be read.
    """
    return [read_json(file, decode_step) for file in sorted((artifacts / _FOLDER).glob("*.json"))]


def write_step(artifacts: Path, step: Step) -> Path:
    """Write a step record; return where."""
    ignore_folder(artifacts)
    file = artifacts / _FOLDER / f"{step.id}.json"
    write_text(file, json.dumps(encode_step(step), indent=1) + "\n")
    return file


def change_text(effect: Effect | None) -> str:
    """Return the change of a metric that has an interval."""
    return format_change(effect.change) if effect and effect.low is not None else "-"


def effect_interval(effect: Effect | None) -> str:
    """Return the interval of an effect."""
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
    """Return the state that the working tree is compared with.

    Raises:
        UsageError: nothing has changed since, or there is no such commit.
    """
    head = states.commit("HEAD")
    committed = states.of(head.id)
    is_committed = committed.tree == now.tree
    gone = gone_steps(states, now, steps)
    kept = next(
        (step for step in reversed(steps) if step.id not in gone and _may_be_base(states, step)),
        None,
    )
    if asked is not None:
        commit = states.commit(asked)
        base = Base(asked, states.of(commit.id), f"{commit.short} {commit.subject}".strip())
    elif kept is not None and (is_committed or kept.head == head.id):
        base = Base("kept", states.of(kept.state), f"kept step {kept.message!r}")
    elif not is_committed:
        last = next((step.message for step in reversed(steps) if step.id in gone), None)
        note = f"kept step {last!r} is not in this tree" if last is not None else None
        base = Base("HEAD", committed, f"{head.short} {head.subject}".strip(), note)
    else:
        fork = states.merge_base()
        if fork is None:
            message = (
                "nothing to try: the working tree is as committed, and no step was kept before; "
                "change the model, or name what to compare with: --base REF"
            )
            raise UsageError(message)
        commit = states.commit(fork)
        words = f"{commit.short} {commit.subject}, where the branch begins"
        base = Base("merge base", states.of(fork), words)
    if base.state.tree == now.tree:
        message = f"nothing to try: the working tree is the same as {base.words}"
        raise UsageError(message)
    return base


def steps_of_branch(folder: Path, steps: Sequence[Step]) -> tuple[list[Step], frozenset[str]]:
    """Return the steps that began in this history.

    With them the ids of those that were kept, and discarded since.
    """
    if not steps:
        return [], frozenset()
    states = Repository.around(folder)
    heads = {head: states.descends_from(head) for head in {step.head for step in steps}}
    found = [step for step in steps if heads[step.head]]
    try:
        now = states.now()
    except UsageError:  # untracked files are too large to look at: what is kept counts as kept
        return found, frozenset()
    return found, gone_steps(states, now, found)


def gone_steps(states: Repository, now: State, steps: Sequence[Step]) -> frozenset[str]:
    """Return the ids of kept steps that left nothing in what followed.

    They were discarded, or are on another branch: the next kept step began without them, or the
    working tree is without them.
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
    """Check that the files of a step are as committed before it.

    They may have been edited since: then they have none of the lines that are new since that
    commit, and all that are gone since. A later step may have gone on from it in the same lines:
    then those that are gone are not back.
    """
    if now.tree == step.state_tree:
        return False
    committed, after = states.of(step.head), states.of(step.state)
    for path, (_, changed) in states.changed_files(states.of(step.base), after).items():
        found = states.id_of(now, path)
        if found == states.id_of(committed, path) != changed:
            continue
        then, later, lines = (
            set(states.text(state, path).splitlines()) for state in (committed, after, now)
        )
        added, removed = later - then, then - later
        if found == changed or not (added or removed) or added & lines or removed - lines:
            return False
    return True
