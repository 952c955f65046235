"""A step of optimizing: what was changed, what came of it, and what it can be believed for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Annotated, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.json import Mark, Omit, decode, encode
from pytest_ttnn_perf.records.json_value import Value, decode_format
from pytest_ttnn_perf.records.metric import Better, Kind, Metric

#: The version of the step record's schema that this code writes.
STEP_FORMAT: Final = 1


class Decision(Enum):
    """What to do with a change. NOT_COMPARABLE: both sides were not measured alike."""

    KEEP = "KEEP"
    REVERT = "REVERT"
    CANNOT_TELL = "CANNOT_TELL"
    NOT_COMPARABLE = "NOT_COMPARABLE"


class Edit(Enum):
    """Why two sides are not comparable."""

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


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason why a step is not comparable: what it is called, and what was found where.

    ``edit`` is the text of an ``Edit``: records of before know more of them.
    """

    edit: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Effect:
    """What a step did to one metric of one test.

    ``change``, ``low`` and ``high`` are fractions as a reader finds them from two values: minus is
    lower. The interval is None where a metric is not compared by ratio. ``target`` and
    ``at_least`` are in the unit of the metric.
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
        """How much more there is than before, in the unit of the metric."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class StepFinding:
    """A finding of one test; ``saving_ns`` is what no other finding saves already.

    Of those that a step closed, the one that saves most counts whole: what it has in common with
    findings that stay is saved all the same. ``gaps_ns`` of it are gaps between ops.
    """

    test: str
    code: str
    name: str
    saving_ns: Omit[float | None] = None
    fix: Omit[str | None] = None
    region: Omit[str] = ""
    at_most: Omit[bool] = False
    gaps_ns: Omit[float] = 0.0

    @property
    def kernels_ns(self) -> float:
        """What it saves of kernel times."""
        return max(0.0, (self.saving_ns or 0.0) - self.gaps_ns)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the findings that a step closed promised, beside what was measured of ``metric``.

    ``at_most``: one of them promised no more than a bound.
    """

    test: str
    codes: tuple[str, ...]
    metric: str
    predicted_ns: float
    measured_ns: float
    at_most: Omit[bool] = False


@dataclass(frozen=True, slots=True)
class Situation:
    """Where one test stands after a step; None where that is not known.

    ``roofline_ns`` is the least time of its ops on the chip, of ``kernel_ns``.
    """

    test: Annotated[str, Mark.KEY]
    bottleneck: Omit[str | None] = None
    kernel_ns: Omit[float | None] = None
    roofline_ns: Omit[float | None] = None
    by_op: Omit[str | None] = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What both sides had in common: files, by the hash of their content.

    ``diff`` is a hash of all that the step changed.
    """

    diff: str
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A step. ``base`` and ``state`` are commits that hold both sides, ``*_tree`` their trees.

    ``head`` is what was checked out, and ``reasons`` say why the decision is what it is.
    ``candidates`` are the findings that would save most now.
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
    situations: Mapping[str, Situation] = field(default_factory=dict)
    receipt: Omit[Receipt | None] = None

    @property
    def is_kept(self) -> bool:
        """Whether it is part of what later steps are compared with."""
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
