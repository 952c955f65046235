"""Rules of the checklist, their inputs, and their findings."""

from __future__ import annotations

import inspect
import re
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import Coding, Omit
from pytest_ttnn_perf.core.errors import RuleError, UsageError
from pytest_ttnn_perf.core.hardware import Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_ttnn_perf.core.codec import Value
    from pytest_ttnn_perf.core.observation import Observation, Verdict
    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.core.settings import RuleSettings


_NO_NAME: Final = re.compile(r"[^a-z0-9]+")
#: What signposts of measurements begin with, which says nothing.
_PREFIX: Final = "perf_"


def region_name(signpost: str) -> str:
    """Return the name of the region that a signpost opens.

    >>> region_name("PERF_DECODE"), region_name("OftNet module")
    ('decode', 'oftnet_module')
    """
    return _NO_NAME.sub("_", signpost.lower()).strip("_").removeprefix(_PREFIX)


# What the checklist is asked about, what it found, and the progress and analyses made of it.


class Severity(Enum):
    """Errors fail their test; the others are printed only."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class RuleOutcome(Enum):
    """The four answers of a rule."""

    CLEAN = "CLEAN"
    FOUND = "FOUND"
    NOT_MEASURED = "NOT_MEASURED"
    NOT_APPLICABLE = "NOT_APPLICABLE"


#: Our own codes; nobody else's begin so.
OURS: Final = "TTP"
RULE_CODE: Final = re.compile(r"[A-Z]{3}[0-9]{3}")


class Family(Enum):
    """The subject of rules, in the order of their codes' first digits."""

    VALIDITY = "validity"
    FORMATS = "data formats"
    LAYOUTS = "layouts"
    MEMORY = "memory, sharding and cores"
    HOST = "trace and host"
    QUEUES = "command queues and transfers"
    CONVOLUTIONS = "convolutions"
    DEVICES = "several devices"
    KERNELS = "kernels"
    CORRECTNESS = "correctness and targets"

    @property
    def is_advice(self) -> bool:
        """True for rules on making a model or a kernel faster."""
        return self not in {Family.VALIDITY, Family.CORRECTNESS}

    @property
    def is_step(self) -> bool:
        return self.is_advice and self is not Family.KERNELS

    def has(self, code: str) -> bool:
        return code.startswith(OURS) and family_of(code) is self


def family_of(code: str) -> Family:
    """Return the family of a rule, also of another project's."""
    return list(Family)[int(code[3])]


#: Codes of rules that are part of another one now, which answers to them.
MERGED: Final = {
    "TTP005": "TTP001",
    "TTP008": "TTP010",
    "TTP009": "TTP010",
    "TTP102": "TTP104",
    "TTP201": "TTP203",
    "TTP301": "TTP303",
    "TTP304": "TTP303",
    "TTP306": "TTP305",
    "TTP312": "TTP314",
    "TTP313": "TTP314",
    "TTP501": "TTP502",
    "TTP602": "TTP607",
    "TTP604": "TTP603",
    "TTP606": "TTP607",
    "TTP903": "TTP901",
    "TTP904": "TTP907",
}


def current_code(code: str) -> str:
    """Return the code of the rule that a code stands for today.

    >>> current_code("TTP313"), current_code("TTP3")
    ('TTP314', 'TTP3')
    """
    return MERGED.get(code, code)


#: How the reason of a clean rule begins whose advice holds, and saves too little here.
TOO_SMALL: Final = "open, too small here to matter"


class Role(Enum):
    """Parts that rules play beyond their own finding, with the rules' numbers.

    They stand here and not at the rules, since a stored finding has a code alone, and reports are
    made without loading rules.
    """

    #: It asks what the gate judges too.
    REPEATS_VERDICT = "901"
    #: It repeats the line of a target.
    REPEATS_TARGET = "905"
    #: It asks about the machine: what it finds is said once, whichever test met it.
    ABOUT_MACHINE = "004 006"
    #: It looks at what its step is about. Others look at settings and at what is left to do: while
    #: all of these are silent, nothing that the others say makes the step done.
    DECIDES_STEP = "101 103 203 303 305 316 401 402 404 502 503 601 603 607 703 704 901"
    #: It keeps the final PCC open.
    GUARDS_PCC = "901 902 907 909"
    #: It says what no rule explains: where that is most of a step, silence means nothing.
    NAMES_UNEXPLAINED = "315"

    def has(self, code: str) -> bool:
        return code.removeprefix(OURS) in self.value.split()


def _read_code(value: Value) -> str:
    if not RULE_CODE.fullmatch(value.string()):
        raise value.refusal("the code of a rule, such as TTP203")
    return value.string()


class Evidence(Struct, frozen=True):
    """One place where a rule's condition holds, with its own number.

    ``share`` is that number as a fraction of the time that the rule weighs; None for other numbers.
    ``ops`` are the numbers of its ops in the whole capture, the heaviest first; they do not count
    in comparisons.
    """

    subject: str
    value: float | None = None
    unit: str = ""
    share: Omit[float | None] = None
    ops: Omit[tuple[int, ...]] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Evidence) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[object, ...]:
        return self.subject, self.value, self.unit, self.share


class UnansweredRules(Struct, frozen=True):
    """Rules without an answer, all for one reason.

    Most rules say so of most tests; one record for all of a kind keeps that cheap.
    """

    outcome: RuleOutcome
    reason: str
    codes: Annotated[tuple[str, ...], Coding(lambda value: tuple(map(_read_code, value.array())))]
    region: Omit[str] = ""


class Finding(Struct, frozen=True):
    """The outcome of a rule; ``value`` and ``limit`` are in ``unit``.

    ``fix`` is what to do, ``waived`` the reason why the project does without. ``saving_ns`` is the
    estimated saving of a step of ``step_ns``, by the ``arithmetic``; ``at_most``: an upper bound,
    which comes after all estimates. ``adds_ns`` is the part of it that no finding with a larger
    saving has saved already; ``gaps_ns`` of that are gaps between ops, which are no part of kernel
    times. ``quiet``: it would add too little to be worth a line. ``covered_by`` is the rule whose
    finding saves the same, and ``also`` are the rules that this one covers.
    """

    code: Annotated[str, Coding(_read_code)]
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
    def family(self) -> Family:
        return family_of(self.code)

    @property
    def added_ns(self) -> float:
        """The saving beyond findings with a larger one; 0 if unknown."""
        return (self.saving_ns if self.adds_ns is None else self.adds_ns) or 0.0

    @property
    def stands(self) -> bool:
        return self.outcome is RuleOutcome.FOUND and self.waived is None

    @property
    def fails(self) -> bool:
        """True if it fails its test, where the checklist is enforced."""
        return self.stands and self.severity is Severity.ERROR


class Input(Enum):
    """The inputs that rules need, in the words of a reason."""

    OPS = "an op table"
    REPORT = "a report database"
    KERNELS = "output of tt-lang"
    TEST = "a measured test"
    DEVICE = "a device, or facts that are stated about one"
    SWEEP = "all points of a sweep"
    HELPERS = "a test that compares with a known PCC helper"


class Subject(Struct, frozen=True):
    """The inputs of a checklist; None for missing ones.

    ``ops`` are of one ``region``: of a test, its measured calls. ``facts`` were stated by the
    author or observed of the device. ``conflicts`` are variables that were set while times were
    taken; None if unknown. ``verdicts`` are None before the gate has judged. ``absent`` says why an
    input is missing, if that is known. ``claimed`` are the savings of other findings, by row of a
    step. ``axes`` are the effects of a sweep's axes, if the test is a point of one. ``counts_gaps``
    is false where another region of the capture is replayed: the profiler makes gaps outside a
    replay longer. ``helper_pccs`` are wrong PCCs of helpers; None where no helper was observed.
    """

    ops: OpTable | None = None
    report: Any = None
    kernels: Any = None
    observation: Observation | None = None
    facts: Mapping[str, Scalar] = {}
    conflicts: tuple[Any, ...] | None = None
    verdicts: tuple[Verdict, ...] | None = None
    absent: Mapping[Input, str] = {}
    region: str = ""
    claimed: Mapping[int, float] | None = None
    counts_gaps: bool = True
    helper_pccs: tuple[Any, ...] | None = None
    axes: tuple[Any, ...] | None = None

    def has(self, needed: Input) -> bool:
        """Return whether an input is there; op tables need device ops."""
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

    def why_absent(self, *needs: Input) -> str:
        """Say why none of these inputs is there; empty if one is."""
        if not needs or any(map(self.has, needs)):
            return ""
        known = [self.absent[needed] for needed in needs if needed in self.absent]
        return known[0] if known else f"needs {' or '.join(needed.value for needed in needs)}"


#: How many places a finding names; the others are counted.
MOST_EVIDENCE: Final = 5
_SENTENCE_END: Final = re.compile(r"(?<=\.)\s")
#: Inputs of rules that are worked out from a subject, by their names; whoever asks rules adds them.
#: ``step`` is the op table of one step, on all devices, of the region that ``ops`` are of.
DERIVED: Final[dict[str, Callable[[Subject], object]]] = {}
#: What the function of a rule can take: a part of the subject by its name, or all of it.
_INPUTS: Final = frozenset({"subject", "step", *Subject.__struct_fields__})


class Answer(Struct, frozen=True):
    """The answer of a rule; ``value`` and ``limit`` are in ``unit``.

    ``severity`` is set if it is not the rule's own. ``savings`` are estimates for each op:
    nanoseconds of one step by row of its table; ``waiting_ns`` is saved of the time in which no op
    runs. ``arithmetic`` says in a line how they come about; None for no saving. ``at_most``: upper
    bounds, which come after all estimates. ``fix`` replaces that of the rule's page.
    ``always_told``: it gets its lines although it has no saving, since something else hides that.
    """

    outcome: RuleOutcome
    reason: str | None = None
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    evidence: tuple[Evidence, ...] = ()
    severity: Severity | None = None
    savings: Mapping[int, float] = {}
    waiting_ns: float = 0.0
    arithmetic: str | None = None
    fix: str | None = None
    always_told: bool = False
    at_most: bool = False

    @classmethod
    def clean(
        cls,
        value: float | None = None,
        *,
        limit: float | None = None,
        unit: str = "",
        reason: str | None = None,
    ) -> Answer:
        return cls(RuleOutcome.CLEAN, reason, value, limit, unit)

    @classmethod
    def found(
        cls,
        reason: str,
        *,
        value: float | None = None,
        limit: float | None = None,
        unit: str = "",
        evidence: Iterable[Evidence] = (),
    ) -> Answer:
        """Answer that something is wrong; the evidence that weighs most comes first."""
        most = tuple(evidence)[:MOST_EVIDENCE]
        return cls(RuleOutcome.FOUND, reason, value, limit, unit, most)

    def saving(
        self,
        savings: Mapping[int, float],
        arithmetic: str,
        *,
        waiting_ns: float = 0.0,
        at_most: bool = False,
    ) -> Answer:
        if self.outcome is not RuleOutcome.FOUND:
            return self
        return replace(
            self, savings=savings, waiting_ns=waiting_ns, arithmetic=arithmetic, at_most=at_most
        )

    def with_fix(self, fix: str) -> Answer:
        return replace(self, fix=fix) if fix and self.outcome is RuleOutcome.FOUND else self

    @classmethod
    def not_measured(cls, reason: str) -> Answer:
        return cls(RuleOutcome.NOT_MEASURED, reason)

    @classmethod
    def not_applicable(cls, reason: str) -> Answer:
        return cls(RuleOutcome.NOT_APPLICABLE, reason)


class UnmeasuredError(Exception):
    """The reason why a rule cannot be answered."""


class Limit(Struct, frozen=True):
    """A limit; users set ``value``, ``source`` is where the default comes from."""

    value: float
    unit: str
    source: str

    def at_most(self, value: float, sentence: str, evidence: Iterable[Evidence] = ()) -> Answer:
        return self.clean(value) if value <= self.value else self.found(value, sentence, evidence)

    def at_least(self, value: float, sentence: str, evidence: Iterable[Evidence] = ()) -> Answer:
        return self.clean(value) if value >= self.value else self.found(value, sentence, evidence)

    def clean(self, value: float | None, *, reason: str | None = None) -> Answer:
        return Answer.clean(value, limit=self.value, unit=self.unit, reason=reason)

    def found(
        self, value: float | None, sentence: str, evidence: Iterable[Evidence] = ()
    ) -> Answer:
        return Answer.found(
            sentence, value=value, limit=self.value, unit=self.unit, evidence=evidence
        )


class Rule(Struct, frozen=True):
    """One question, made by ``rule`` of a function.

    One of the inputs in ``needs`` must be there; a rule without any is always asked.
    """

    code: str
    name: str
    severity: Severity
    needs: tuple[Input, ...]
    look: Callable[..., Answer]
    inputs: tuple[str, ...]
    limits: Mapping[str, Limit]

    def check(self, subject: Subject) -> Answer:
        """Answer for a subject that has one of the inputs needed.

        Raises:
            RuleError: the rule itself is wrong.
        """
        try:
            return self.look(*(_part(subject, name) for name in self.inputs), **self.limits)
        except UnmeasuredError as reason:
            return Answer.not_measured(str(reason))
        except Exception as cause:
            raise RuleError(self.code, cause) from cause

    def with_limits(self, **values: float) -> Rule:
        """Return the rule with other limits.

        Raises:
            UsageError: it has no limit of that name.
        """
        unknown = sorted(values.keys() - self.limits.keys())
        if unknown:
            names = ", ".join(self.limits) or "none"
            message = f"rules.{self.code}: it has no limit {unknown[0]!r}; its limits: {names}"
            raise UsageError(message)
        given = {name: replace(self.limits[name], value=value) for name, value in values.items()}
        return replace(self, limits={**self.limits, **given})

    @property
    def looks_at_others(self) -> bool:
        """True if it looks at the remainder of other findings."""
        return "claimed" in self.inputs

    @property
    def step(self) -> str:
        return family_of(self.code).value

    @property
    def page(self) -> str:
        return inspect.cleandoc(self.look.__doc__ or "")

    @property
    def fix(self) -> str:
        """The first sentence of the advice."""
        return _first_advice(self.look.__doc__ or "")


@cache
def _first_advice(page: str) -> str:
    advice = inspect.cleandoc(page).partition("## What to do\n")[2].partition("\n\n")[0]
    return _SENTENCE_END.split(" ".join(advice.split()), maxsplit=1)[0]


def rule(
    code: str, name: str, severity: Severity, *needs: Input
) -> Callable[[Callable[..., Answer]], Rule]:
    """Make a rule of a function that answers.

    Its arguments are named as what they take of a ``Subject`` (``ops``, ``facts`` ...) or
    ``subject``, all of it. What the rule needs as its only input is never None. Its keywords are
    its limits, with their defaults. Its docstring is its page, under fixed headings.
    """

    def make_rule(look: Callable[..., Answer]) -> Rule:
        inputs = look.__code__.co_varnames[: look.__code__.co_argcount]
        if not _INPUTS.issuperset(inputs):
            message = (
                f"{code}: it takes {', '.join(inputs)}; there are {', '.join(sorted(_INPUTS))}"
            )
            raise TypeError(message)
        return Rule(code, name, severity, needs, look, inputs, look.__kwdefaults__ or {})

    return make_rule


def _part(subject: Subject, name: str) -> object:
    if name == "subject":
        return subject
    return DERIVED[name](subject) if name in DERIVED else getattr(subject, name)


class Answers(NamedTuple):
    """The findings of rules, and the rules without an answer."""

    findings: tuple[Finding, ...]
    unanswered: tuple[UnansweredRules, ...]


def as_configured(
    findings: tuple[Finding, ...],
    rules: Mapping[str, RuleSettings],
    waived: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Apply the severities and waivers that the project and the test configure."""
    if not rules and not waived:
        return findings
    configured: list[Finding] = []
    for finding in findings:
        rule = rules.get(finding.code)
        waiver = (waived or {}).get(finding.code) or (rule and rule.waive)
        if finding.outcome is not RuleOutcome.FOUND:
            waiver = None
        severity = (rule and rule.severity) or finding.severity
        set_so = replace(finding, severity=severity, waived=waiver)
        # What fails a test is never left out.
        configured.append(replace(set_so, quiet=False) if set_so.fails else set_so)
    return tuple(configured)


def finding_of(rule: Rule, answer: Answer, *, region: str = "") -> Finding:
    return Finding(
        rule.code,
        rule.name,
        answer.severity or rule.severity,
        answer.outcome,
        answer.reason,
        answer.value,
        answer.limit,
        answer.unit,
        answer.evidence,
        (answer.fix or rule.fix) if answer.outcome is RuleOutcome.FOUND else None,
        region=region,
        arithmetic=answer.arithmetic,
        at_most=answer.at_most,
    )
