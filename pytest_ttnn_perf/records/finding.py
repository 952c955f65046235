"""What the checklist is asked about, what it found, and the progress and analyses made of it."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.json import Coded, Omit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.records.hardware import Conflict, Scalar
    from pytest_ttnn_perf.records.json_value import Value
    from pytest_ttnn_perf.records.observation import Observation
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.sweep import AxisEffect
    from pytest_ttnn_perf.records.ttlang import TtlangLog
    from pytest_ttnn_perf.records.ttnn_report import Report
    from pytest_ttnn_perf.records.verdict import Verdict


class Severity(Enum):
    """Whether a finding fails its test (error) or is printed only."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class RuleOutcome(Enum):
    """How the evaluation of one rule ended."""

    CLEAN = "CLEAN"
    FOUND = "FOUND"
    NOT_MEASURED = "NOT_MEASURED"
    NOT_APPLICABLE = "NOT_APPLICABLE"


def _read_code(value: Value) -> str:
    """Read the code of a rule, whose first digit tells the step that it is about."""
    code = value.string()
    if not _is_code(code):
        raise value.refusal("the code of a rule, such as TTP203")
    return code


@lru_cache(maxsize=1024)
def _is_code(text: str) -> bool:
    digits = text[3:]
    return len(text) == 6 and text[:3].isupper() and digits.isascii() and digits.isdecimal()


def _read_codes(value: Value) -> tuple[str, ...]:
    # Every test of a record has some sixty: look closer only where one is none.
    raw = value.raw
    if isinstance(raw, list) and all(type(code) is str and _is_code(code) for code in raw):
        return tuple(raw)
    return tuple(map(_read_code, value.array()))


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place where a rule's condition holds, with its own number.

    ``share`` is that number as a fraction of the time that the rule weighs; None where it is no
    time. ``ops`` are the numbers of the ops that it is of in the whole capture, the heaviest first;
    the same is found whatever they are.
    """

    subject: str
    value: float | None = None
    unit: str = ""
    share: Omit[float | None] = None
    ops: Omit[tuple[int, ...]] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Rules that have no answer, all for one reason: not measured, or not applicable.

    Most rules say so of most tests; one record for all of a kind keeps that cheap. ``region`` is
    the part of a capture that it is of.
    """

    outcome: RuleOutcome
    reason: str
    codes: Annotated[tuple[str, ...], Coded(_read_codes)]
    region: Omit[str] = ""


@dataclass(frozen=True, slots=True)
class NeedlessWaiver:
    """A waiver that hides nothing; ``test`` is None for one of the configuration.

    What is not ``known`` is no rule at all.
    """

    code: str
    test: str | None
    known: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one rule on one test; ``value`` and ``limit`` are in ``unit``.

    ``fix`` says what to do about what was found, ``waived`` why the project does without that.
    ``region`` is the part of a capture that it is of. ``saving_ns`` is what doing so is estimated
    to save of a step of ``step_ns``, by the ``arithmetic``; None where that cannot be said.
    ``at_most``: it is an upper bound, which comes after all estimates. ``adds_ns`` is how much of
    it no finding with a larger saving has saved already. ``gaps_ns`` of what it adds are gaps
    between ops, which are no part of kernel times. ``quiet``: it would add too little to be worth a
    line, or cannot say that it would save anything. ``covered_by`` is the rule whose finding saves
    what this one would, and ``also`` are the rules that this one covers.
    """

    code: Annotated[str, Coded(_read_code)]
    name: str
    severity: Severity
    outcome: RuleOutcome
    reason: Omit[str | None] = None
    value: Omit[float | None] = None
    limit: Omit[float | None] = None
    unit: Omit[str] = ""
    evidence: Omit[tuple[Evidence, ...]] = ()
    fix: Omit[str | None] = None
    waived: Omit[str | None] = None
    region: Omit[str] = ""
    saving_ns: Omit[float | None] = None
    adds_ns: Omit[float | None] = None
    arithmetic: Omit[str | None] = None
    quiet: Omit[bool] = False
    step_ns: Omit[float | None] = None
    at_most: Omit[bool] = False
    covered_by: Omit[str | None] = None
    also: Omit[tuple[str, ...]] = ()
    gaps_ns: Omit[float] = 0.0

    @property
    def stands(self) -> bool:
        """Whether something was found that nobody waived."""
        return self.outcome is RuleOutcome.FOUND and self.waived is None

    @property
    def fails(self) -> bool:
        """Whether it fails its test, where the checklist is enforced."""
        return self.stands and self.severity is Severity.ERROR


class Input(Enum):
    """What rules need, in the words of a reason."""

    OPS = "an op table"
    REPORT = "a report database"
    KERNELS = "output of tt-lang"
    TEST = "a measured test"
    DEVICE = "a device, or facts that are stated about one"
    SWEEP = "all points of a sweep"
    HELPERS = "a test that compares with a known PCC helper"


@dataclass(frozen=True, slots=True)
class HelperPcc:
    """A PCC that a helper of the project told, and that the values do not confirm.

    ``told`` is None where the helper gave no number; ``ours`` is NaN where the PCC does not exist.
    ``sentence`` says what the helper passed over.
    """

    metric: str
    helper: str
    told: float | None
    ours: float
    sentence: str


@dataclass(frozen=True, slots=True)
class Subject:
    """The inputs of a checklist; None for those that there are none of.

    ``ops`` are of one ``region``: of a test, its measured calls. ``facts`` are what the author
    stated and what was observed of the device (``num_command_queues``, ``use_trace`` ...).
    ``conflicts`` are variables that were set while times were taken; None where nobody looked.
    ``verdicts`` are what the gate says of the test's metrics; None where it was not judged yet.
    ``absent`` says why an input is not there, if that is known. ``claimed`` is what findings would
    save of ops, by row of a step, for the rules that look at what the others leave; None where no
    other was asked. ``axes`` is what each axis of a sweep changed, where the test is a point of one
    and all are measured. ``counts_gaps`` is false where another region of the capture is replayed:
    the profiler makes gaps outside a replay longer. ``helper_pccs`` are what helpers told wrongly;
    None where none was observed.
    """

    ops: OpTable | None = None
    report: Report | None = None
    kernels: TtlangLog | None = None
    observation: Observation | None = None
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] | None = None
    verdicts: tuple[Verdict, ...] | None = None
    absent: Mapping[Input, str] = field(default_factory=dict)
    region: str = ""
    claimed: Mapping[int, float] | None = None
    counts_gaps: bool = True
    helper_pccs: tuple[HelperPcc, ...] | None = None
    axes: tuple[AxisEffect, ...] | None = None

    def has(self, needed: Input) -> bool:
        """Tell whether an input is there; a table without ops of a device is none."""
        match needed:
            case Input.OPS:
                return self.ops is not None and bool(self.ops.devices)
            case Input.REPORT:
                return self.report is not None
            case Input.KERNELS:
                return self.kernels is not None
            case Input.TEST:
                return self.observation is not None
            case Input.SWEEP:
                return self.axes is not None
            case Input.DEVICE:
                artifacts = (self.ops, self.report, self.kernels)
                return bool(self.facts) or any(artifact is not None for artifact in artifacts)
            case Input.HELPERS:
                return self.helper_pccs is not None

    def why_absent(self, needed: Input) -> str:
        """Say why an input is not there."""
        return self.absent.get(needed, f"needs {needed.value}")


class State(Enum):
    """What is known of a step."""

    DONE = "done"
    OPEN = "open"
    NOT_MEASURED = "not measured"
    NOT_APPLICABLE = "not applicable"


class ModelKind(Enum):
    """What decides which step pays most."""

    HOST_BOUND = "host-bound model"
    LLM = "LLM"
    CNN = "CNN"
    MEMORY_BOUND = "memory-bound model"


@dataclass(frozen=True, slots=True)
class Step:
    """A step; ``open_rules`` are the codes of the rules that keep it open, or from being done.

    Of a step that is done, ``unmeasured`` rules could not tell.
    """

    name: str
    state: State
    open_rules: tuple[str, ...] = ()
    unmeasured: int = 0


@dataclass(frozen=True, slots=True)
class First:
    """The finding to begin with: what it adds to all others, of a step of its region.

    ``saving_ns`` is None where no finding says what it would save.
    """

    code: str
    name: str
    region: str = ""
    saving_ns: float | None = None
    step_ns: float | None = None
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """From the first measurement to the last check; ``steps`` are in the order of their numbers.

    ``kind`` is None where the ops do not tell it. ``first`` is the finding to begin with; None
    where no step is open. ``invalid`` are the rules that say that the numbers cannot be trusted,
    which comes before any step.
    """

    baseline: Step
    steps: tuple[Step, ...]
    pcc: Step
    kind: ModelKind | None = None
    first: First | None = None
    invalid: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[Step, ...]:
        """Everything in the order in which it is done."""
        return (self.baseline, *self.steps, self.pcc)


#: What can be looked at: known without reading the code that looks.
NAMES: Final = (
    *("dtype", "fidelity", "layout", "padding", "sharding", "reshards", "memory", "host-overhead"),
    *("trace", "queues", "conv", "matmul", "devices", "cores", "dram", "bottlenecks"),
    *("mesh", "l1", "overlap"),
)


class AnalysisOutcome(Enum):
    """Whether there is anything to tell."""

    MEASURED = "MEASURED"
    NOT_MEASURED = "NOT_MEASURED"
    NOT_APPLICABLE = "NOT_APPLICABLE"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the whole; fractions have a unit "of" something."""

    label: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Row:
    """One bar of a section. ``count`` is of the ops, tensors or calls that make up the value."""

    label: str
    value: float
    share: float | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Section:
    """Rows in the order in which they are worth reading.

    Values are in ``unit``, and shares are fractions ``of`` something, such as "of kernel time".
    """

    heading: str
    unit: str
    rows: tuple[Row, ...]
    of: str = ""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is to be said on one subject; ``reason`` says why there is nothing."""

    name: str
    title: str
    outcome: AnalysisOutcome = AnalysisOutcome.MEASURED
    reason: str | None = None
    figures: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
