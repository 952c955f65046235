"""What a rule is: a function with a code and limits, that asks one question with four answers."""

from __future__ import annotations

import inspect
import re
from dataclasses import field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.records.finding import Evidence, Finding, RuleOutcome, Severity, Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Saving
    from pytest_ttnn_perf.records.finding import Input


#: How many places a finding names; the others are counted.
MOST_EVIDENCE: Final = 5
#: What each first digit of a code is about.
STEPS: Final = {
    "0": "validity",
    "1": "data formats",
    "2": "layouts",
    "3": "memory, sharding and cores",
    "4": "trace and host",
    "5": "command queues and transfers",
    "6": "convolutions",
    "7": "several devices",
    "8": "kernels",
    "9": "correctness and targets",
}
_SENTENCE_END: Final = re.compile(r"(?<=\.)\s")
#: What the function of a rule can take: a part of the subject by its name, or all of it.
#: ``step`` is the op table of one step, on all devices, of the region that ``ops`` are of.
_INPUTS: Final = frozenset({"subject", "step", *(part.name for part in fields(Subject))})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a rule says of one subject; ``value`` against ``limit``, both in ``unit``.

    ``severity`` is set where it is other than the rule's own. ``savings`` are estimates of what
    doing as the rule says would save of each op: nanoseconds of one step by row of its table;
    ``waiting_ns`` is what it would save of the time in which no op runs. ``arithmetic`` says in a
    line how they come about; None where no saving can be said. ``at_most``: they are upper bounds,
    and come after all that can be estimated. ``fix`` is what to do where that depends on what was
    found; None for what the page of the rule says. ``always_told``: it gets its lines although it
    says no saving, since something else hides what it would save.
    """

    outcome: RuleOutcome
    reason: str | None = None
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    evidence: tuple[Evidence, ...] = ()
    severity: Severity | None = None
    savings: Mapping[int, float] = field(default_factory=dict)
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
        """Answer that nothing is wrong."""
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
        """Return this with what it would save, if it is a finding."""
        if self.outcome is not RuleOutcome.FOUND:
            return self
        return replace(
            self, savings=savings, waiting_ns=waiting_ns, arithmetic=arithmetic, at_most=at_most
        )

    def with_fix(self, fix: str) -> Answer:
        """Return this with what to do about what was found, if anything was."""
        return replace(self, fix=fix) if fix and self.outcome is RuleOutcome.FOUND else self

    @classmethod
    def not_measured(cls, reason: str) -> Answer:
        """Answer that it cannot be told."""
        return cls(RuleOutcome.NOT_MEASURED, reason)

    @classmethod
    def not_applicable(cls, reason: str) -> Answer:
        """Answer that the question does not arise."""
        return cls(RuleOutcome.NOT_APPLICABLE, reason)


@dataclass(frozen=True, slots=True)
class Limit:
    """What a number is compared with. Users set ``value``; ``source`` tells where it comes from."""

    value: float
    unit: str
    source: str

    def at_most(self, value: float, sentence: str, evidence: Iterable[Evidence] = ()) -> Answer:
        """Answer with a finding where a value is above the limit."""
        return self.clean(value) if value <= self.value else self.found(value, sentence, evidence)

    def at_least(self, value: float, sentence: str, evidence: Iterable[Evidence] = ()) -> Answer:
        """Answer with a finding where a value is below the limit."""
        return self.clean(value) if value >= self.value else self.found(value, sentence, evidence)

    def clean(self, value: float | None, *, reason: str | None = None) -> Answer:
        """Answer that a value is within the limit."""
        return Answer.clean(value, limit=self.value, unit=self.unit, reason=reason)

    def found(
        self, value: float | None, sentence: str, evidence: Iterable[Evidence] = ()
    ) -> Answer:
        """Answer that a value is beyond the limit; None is one that does not exist."""
        return Answer.found(
            sentence, value=value, limit=self.value, unit=self.unit, evidence=evidence
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """One question; ``rule`` makes it of a function, ``look``, that takes ``inputs`` and limits.

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
        """Answer for a subject that has at least one of the inputs needed."""
        return self.look(*(_part(subject, name) for name in self.inputs), **self.limits)

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
        """Whether it looks at what the findings of other rules leave."""
        return "claimed" in self.inputs

    @property
    def step(self) -> str:
        """What the rule is about."""
        return STEPS[self.code[3]]

    @property
    def page(self) -> str:
        """The documentation."""
        return inspect.cleandoc(self.look.__doc__ or "")

    @property
    def fix(self) -> str:
        """The first sentence of what to do."""
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
    if name == "step":
        if subject.ops is None:
            return None
        from pytest_ttnn_perf.analysis.ops.regions import step_of

        return step_of(subject.ops)
    return getattr(subject, name)


def finding_of(
    rule: Rule,
    answer: Answer,
    *,
    region: str = "",
    saving: Saving | None = None,
    step_ns: float | None = None,
) -> Finding:
    """Return an answer as the finding of its rule."""
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
        saving_ns=None if saving is None else saving.saving_ns,
        adds_ns=None if saving is None else saving.adds_ns,
        gaps_ns=0.0 if saving is None else saving.gaps_ns,
        arithmetic=answer.arithmetic,
        step_ns=None if saving is None else step_ns,
        at_most=answer.at_most,
    )


class Trouble(NamedTuple):
    """One of the things that are wrong, with its own number, limit and unit."""

    text: str
    value: float | None = None
    limit: float | None = None
    unit: str = ""


def found_troubles(troubles: Sequence[Trouble]) -> Answer:
    """Answer that all of these are wrong; the value is that of the first, which proves most."""
    first = troubles[0]
    return Answer.found(
        "; ".join(trouble.text for trouble in troubles),
        value=first.value,
        limit=first.limit,
        unit=first.unit,
        evidence=(Evidence(trouble.text, trouble.value, trouble.unit) for trouble in troubles),
    )
